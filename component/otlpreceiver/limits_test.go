package otlpreceiver

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/zstd"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"inquest/record"
)

// filled returns a request of exactly size bytes: one record with a long body.
func filled(size int) []byte {
	n := size - 64
	for {
		b := inScope(msg(2, msg(5, msg(1, bytes.Repeat([]byte{'x'}, n)))))
		if len(b) == size {
			return b
		}
		n += size - len(b)
	}
}

func TestSizeLimits(t *testing.T) {
	if testing.Short() {
		t.Skip("sends hundreds of megabytes")
	}
	r := start(t, nil)
	f := func(size, wantHTTP int, wantGRPC codes.Code) {
		t.Helper()
		body := filled(size)
		kept := 0
		if wantHTTP == 200 {
			kept = 1
		}
		got := r.post(t, "/v1/logs", body, "Content-Type", typeProto)
		if got.code != wantHTTP || r.records() != kept {
			t.Errorf("%d bytes over HTTP: answer %.300s", size, got)
		}
		if wantHTTP == 413 && !strings.Contains(string(got.body), fmt.Sprintf("more than %d bytes: send smaller batches or raise protocols::http::max_request_body_size", record.MaxBatchSize)) {
			t.Errorf("%d bytes over HTTP: answer %.300s", size, got)
		}
		_, err := r.invoke(logsSignal.service, body, grpc.MaxCallSendMsgSize(1<<30))
		if status.Code(err) != wantGRPC || r.records() != kept {
			t.Errorf("%d bytes over gRPC: answer %v", size, err)
		}
	}
	f(record.MaxBatchSize, 200, codes.OK)
	f(record.MaxBatchSize+1, 413, codes.ResourceExhausted)
}

func TestCompression(t *testing.T) {
	r := start(t, nil)
	f := func(encoding string, compress func([]byte) []byte) {
		t.Helper()
		for _, body := range [][]byte{protoOf(logsSignal, sampleLogs()), filled(3 << 20)} {
			got := r.post(t, "/v1/logs", compress(body), "Content-Type", typeProto, "Content-Encoding", encoding)
			if got.code != 200 || r.records() == 0 {
				t.Errorf("%s: answer %s", encoding, got)
			}
		}
	}
	f("", bytes.Clone)
	f("identity", bytes.Clone)
	f("gzip", gzipped)
	f("zstd", zstded)
	f("snappy", func(b []byte) []byte { return snappy.Encode(nil, b) })
	f("deflate", func(b []byte) []byte {
		var buf bytes.Buffer
		w := zlib.NewWriter(&buf)
		w.Write(b)
		w.Close()
		return buf.Bytes()
	})
}

func gzipped(b []byte) []byte {
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	w.Write(b)
	w.Close()
	return buf.Bytes()
}

func zstded(b []byte) []byte {
	w := must(zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1)))
	defer w.Close()
	return w.EncodeAll(b, nil)
}

// bomb compresses size zero bytes, without holding them.
func bomb(size int64, open func(io.Writer) io.WriteCloser) []byte {
	var buf bytes.Buffer
	w := open(&buf)
	io.CopyN(w, zeros{}, size)
	w.Close()
	return buf.Bytes()
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// peak returns by how many bytes the heap grew at most while fn ran.
func peak(fn func()) uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	before, highest := m.HeapAlloc, uint64(0)
	done, seen := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(seen)
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			highest = max(highest, m.HeapAlloc)
			select {
			case <-done:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	fn()
	close(done)
	<-seen
	return max(highest, before) - before
}

// A small body that decompresses to gigabytes is refused, in bounded memory.
func TestCompressionBombs(t *testing.T) {
	if testing.Short() {
		t.Skip("compresses gigabytes")
	}
	const size, limit, bound = 1 << 30, 8 << 20, 64 << 20
	r := start(t, func(c *Config) {
		c.Protocols.GRPC.Get().MaxRecvMsgSizeMiB = limit >> 20
		c.Protocols.HTTP.Get().MaxRequestBodySize = limit
	})
	bombs := map[string][]byte{
		"gzip": bomb(size, func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }),
		"zstd": bomb(size, func(w io.Writer) io.WriteCloser {
			return must(zstd.NewWriter(w, zstd.WithEncoderConcurrency(1)))
		}),
		"deflate": bomb(size, func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) }),
		"snappy":  append([]byte{0x80, 0x80, 0x80, 0x80, 0x04}, make([]byte, 100)...), // says 1 GiB
	}
	for encoding, body := range bombs {
		var got reply
		grown := peak(func() {
			got = r.post(t, "/v1/logs", body, "Content-Type", typeProto, "Content-Encoding", encoding)
		})
		if got.code != 413 || !strings.Contains(string(got.body), "max_request_body_size") {
			t.Errorf("%s over HTTP: answer %s", encoding, got)
		}
		if grown > bound {
			t.Errorf("%s over HTTP: heap grew by %d MiB, want at most %d", encoding, grown>>20, bound>>20)
		}
	}
	// The clients' compressors are streams too: a message that is already
	// compressed cannot be handed to them, so they compress the bomb themselves.
	body := make([]byte, 256<<20)
	for _, compressor := range []string{"gzip", "zstd", "snappy"} {
		var err error
		grown := peak(func() {
			_, err = r.invoke(logsSignal.service, body, grpc.UseCompressor(compressor), grpc.MaxCallSendMsgSize(1<<30))
		})
		if status.Code(err) != codes.ResourceExhausted {
			t.Errorf("%s over gRPC: answer %v", compressor, err)
		}
		if grown > bound {
			t.Errorf("%s over gRPC: heap grew by %d MiB, want at most %d", compressor, grown>>20, bound>>20)
		}
	}
	if n := r.records(); n != 0 {
		t.Errorf("%d records kept, want none", n)
	}
}

// Bad and good requests at once: each has its own answer and every good record
// arrives.
func TestConcurrentRequests(t *testing.T) {
	r := start(t, nil)
	const senders, each = 8, 50
	errs := make(chan error, senders)
	for range senders {
		go func() {
			for i := range each {
				if _, err := r.invoke(logsSignal.service, inScope(goodLog, msg(2, num(1, 1)))); err != nil {
					errs <- err
					return
				}
				if i%10 == 0 {
					if _, err := r.invoke(tracesSignal.service, []byte("hello")); status.Code(err) != codes.InvalidArgument {
						errs <- fmt.Errorf("malformed request is answered with %w", err)
						return
					}
				}
			}
			errs <- nil
		}()
	}
	for range senders {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if n := r.records(); n != senders*each {
		t.Errorf("%d records kept, want %d", n, senders*each)
	}
}

// A request under way when the receiver shuts down is still answered.
func TestShutdownWaits(t *testing.T) {
	r := start(t, nil)
	entered, release := make(chan struct{}), make(chan struct{})
	r.before = func(context.Context) error {
		close(entered)
		<-release
		return nil
	}
	answered := make(chan error, 1)
	go func() {
		_, err := r.invoke(logsSignal.service, inScope(goodLog))
		answered <- err
	}()
	<-entered
	stopped := make(chan error, 1)
	go func() { stopped <- r.Shutdown(context.Background()) }()
	select {
	case <-stopped:
		t.Error("Shutdown returned before the request was answered")
	case <-time.After(50 * time.Millisecond):
	}
	close(release)
	if err := <-answered; err != nil {
		t.Errorf("request is answered with %v", err)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}
