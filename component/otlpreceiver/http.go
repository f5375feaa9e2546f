package otlpreceiver

import (
	"bytes"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

const (
	typeProto = "application/x-protobuf"
	typeJSON  = "application/json"
)

// serveHTTP returns the handler of one signal.
func serveHTTP(e endpoint) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			http.Error(w, "send OTLP requests with POST", http.StatusMethodNotAllowed)
			return
		}
		enc, ok := encodingOf(r)
		if !ok {
			http.Error(w, fmt.Sprintf("content type %.100q is not OTLP: send %s or %s",
				r.Header.Get("Content-Type"), typeProto, typeJSON), http.StatusUnsupportedMediaType)
			return
		}
		buf := bodies.Get().(*bytes.Buffer)
		defer putBody(buf)
		body, err := readBody(buf, r)
		if err != nil {
			writeError(w, enc, bodyError(err))
			return
		}
		resp, err := e.export(r.Context(), body, enc)
		if err != nil {
			writeError(w, enc, err)
			return
		}
		marshal := resp.MarshalProto
		if enc == jsonText {
			marshal = resp.MarshalJSON
		}
		// The data is taken at this point; an answer that cannot be encoded
		// makes the sender repeat the request, which loses nothing.
		msg, err := marshal()
		if err != nil {
			writeError(w, enc, err)
			return
		}
		write(w, enc, http.StatusOK, msg)
	}
}

func encodingOf(r *http.Request) (encoding, bool) {
	mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case err != nil:
		return 0, false
	case mediaType == typeProto:
		return protobuf, true
	case mediaType == typeJSON:
		return jsonText, true
	}
	return 0, false
}

// readAhead is the largest body for which room is made before it arrived.
const readAhead = 4 << 20

// bodies are the buffers of requests that have been answered. Nothing keeps a
// body for longer, see [endpoint].
var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func putBody(buf *bytes.Buffer) {
	if buf.Cap() <= 2*readAhead {
		buf.Reset()
		bodies.Put(buf)
	}
}

// readBody reads the body into buf, decompressed and within the server's limit.
func readBody(buf *bytes.Buffer, r *http.Request) ([]byte, error) {
	if n := r.ContentLength; n > 0 && n <= readAhead {
		buf.Grow(int(n) + bytes.MinRead)
	}
	_, err := buf.ReadFrom(r.Body)
	return buf.Bytes(), err
}

// bodyError says what a body that could not be read means for its sender.
func bodyError(err error) error {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return bodyTooLarge(fmt.Sprintf("more than %d bytes", tooLarge.Limit))
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return bodyTooLarge("more than the limit after decompression")
	}
	return malformed("request body cannot be read: %v", err)
}

func bodyTooLarge(what string) error {
	return &refusal{
		code: codes.ResourceExhausted,
		http: http.StatusRequestEntityTooLarge,
		text: "request body has " + what + ": send smaller batches or raise protocols::http::max_request_body_size",
	}
}

// serveError answers requests that end before they reach their handler: not
// authenticated, or not to be decompressed.
func serveError(w http.ResponseWriter, r *http.Request, text string, code int) {
	err := &refusal{code: codes.InvalidArgument, http: code, text: text}
	switch {
	case code == http.StatusUnauthorized:
		err.code = codes.Unauthenticated
	case strings.HasPrefix(text, "unsupported Content-Encoding"):
		err.http = http.StatusUnsupportedMediaType
	case strings.Contains(text, "size exceed"):
		writeError(w, encodingOrJSON(r), bodyTooLarge("more than the limit after decompression"))
		return
	}
	writeError(w, encodingOrJSON(r), err)
}

func encodingOrJSON(r *http.Request) encoding {
	if enc, ok := encodingOf(r); ok {
		return enc
	}
	return jsonText
}

// writeError answers with a google.rpc.Status in the request's own encoding.
func writeError(w http.ResponseWriter, enc encoding, err error) {
	st, code := answer(err)
	if delay := retryDelay(st); delay > 0 {
		seconds := int64((delay + time.Second - 1) / time.Second)
		w.Header().Set("Retry-After", strconv.FormatInt(seconds, 10))
	}
	msg, err := marshalStatus(st, enc)
	if err != nil {
		http.Error(w, st.Message(), code)
		return
	}
	write(w, enc, code, msg)
}

func marshalStatus(st *status.Status, enc encoding) ([]byte, error) {
	if enc == jsonText {
		return protojson.Marshal(st.Proto())
	}
	return proto.Marshal(st.Proto())
}

func write(w http.ResponseWriter, enc encoding, code int, msg []byte) {
	contentType := typeProto
	if enc == jsonText {
		contentType = typeJSON
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(code)
	w.Write(msg) // the sender is gone when this fails, and will ask again
}
