package api

import (
	"bufio"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"inquest/api/apitype"
	"inquest/record"
	"inquest/store"
)

const (
	defaultRows = 1000
	mediaNDJSON = "application/x-ndjson"
	mediaJSON   = "application/json"
)

// errCut ends a query whose answer is longer than the limit.
var errCut = errors.New("the limit is reached")

// queryRecords answers a LogsQL query with one JSON object a row: as lines, or
// as one array where the caller accepts only JSON.
func (s *server) queryRecords(w http.ResponseWriter, r *http.Request) error {
	q, limit, err := s.recordQuery(r)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Trailer", strings.Join([]string{apitype.TrailerRows, apitype.TrailerCut, apitype.TrailerError}, ", "))
	h.Set(apitype.HeaderLimit, strconv.Itoa(limit))
	out := newRowWriter(w, acceptsArray(r.Header.Get("Accept")))
	err = s.cfg.Records.QueryRecords(r.Context(), q, func(fields []record.Field) error {
		if out.rows == limit {
			return errCut
		}
		return out.row(fields)
	})
	cut := errors.Is(err, errCut)
	if err != nil && !cut {
		if !out.begun {
			h.Del("Trailer")
			h.Del(apitype.HeaderLimit)
			return err
		}
		e := classify(r.Context(), err)
		out.fail(e)
		h.Set(apitype.TrailerError, headerText(e.Error()))
		return err
	}
	h.Set(apitype.TrailerRows, strconv.Itoa(out.rows))
	h.Set(apitype.TrailerCut, strconv.FormatBool(cut))
	return out.end()
}

// recordQuery reads the parameters of a record query.
func (s *server) recordQuery(r *http.Request) (store.RecordQuery, int, error) {
	var q store.RecordQuery
	text, err := queryParam(r, "error")
	if err != nil {
		return q, 0, err
	}
	from, to, err := s.rangeParams(r, time.Time{}, time.Time{})
	if err != nil {
		return q, 0, err
	}
	limit, err := intParam(r, "limit", defaultRows, s.limits.Rows)
	if err != nil {
		return q, 0, err
	}
	if limit == 0 {
		return q, 0, badParam("limit", errorf("it must be at least 1"))
	}
	switch order := r.Form.Get("order"); order {
	case "":
	case "newest", "oldest":
		text += sortBy(record.FieldTime, order == "newest", limit+1)
	default:
		return q, 0, badParam("order", errorf("%q is not newest or oldest", order))
	}
	// One row more than asked for tells whether the limit cuts.
	return store.RecordQuery{LogsQL: text, From: from, To: to, Limit: limit + 1}, limit, nil
}

// acceptsArray tells whether the caller prefers one JSON document to lines.
func acceptsArray(accept string) bool {
	for part := range strings.SplitSeq(accept, ",") {
		media, _, _ := strings.Cut(part, ";")
		switch strings.TrimSpace(media) {
		case mediaNDJSON, "application/jsonl", "application/stream+json":
			return false
		case mediaJSON:
			return true
		}
	}
	return false
}

// headerText makes text fit for a header.
func headerText(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return ' '
		}
		return r
	}, s)
	return s[:min(len(s), 1000)]
}

// rowWriter writes rows as they come.
type rowWriter struct {
	w     http.ResponseWriter
	ctl   *http.ResponseController
	buf   *bufio.Writer
	array bool
	begun bool
	rows  int
	line  []byte
	last  time.Time // of the last flush
}

// flushInterval is how long a row may wait for others before it is sent.
const flushInterval = 500 * time.Millisecond

func newRowWriter(w http.ResponseWriter, array bool) *rowWriter {
	return &rowWriter{w: w, ctl: http.NewResponseController(w), buf: bufio.NewWriterSize(w, 64<<10), array: array}
}

func (o *rowWriter) begin() {
	if o.begun {
		return
	}
	o.begun = true
	o.last = time.Now()
	if o.array {
		o.w.Header().Set("Content-Type", mediaJSON)
		o.buf.WriteByte('[')
	} else {
		o.w.Header().Set("Content-Type", mediaNDJSON)
	}
}

func (o *rowWriter) row(fields []record.Field) error {
	o.begin()
	line := o.line[:0]
	if o.array && o.rows > 0 {
		line = append(line, ',', '\n')
	}
	line = appendRow(line, fields)
	if !o.array {
		line = append(line, '\n')
	}
	o.line = line
	o.rows++
	if _, err := o.buf.Write(line); err != nil {
		return err
	}
	if now := time.Now(); now.Sub(o.last) > flushInterval {
		o.last = now
		if err := o.buf.Flush(); err != nil {
			return err
		}
		return o.ctl.Flush()
	}
	return nil
}

func (o *rowWriter) end() error {
	o.begin()
	if o.array {
		o.buf.WriteString("]\n")
	}
	return o.buf.Flush()
}

// fail ends an answer that cannot be completed so that no reader takes it for
// whole: an array stays open, lines end with an error.
func (o *rowWriter) fail(e *apiError) {
	if !o.array {
		line, err := json.Marshal(apitype.Error{Status: "error", ErrorType: e.kind, Error: e.Error(), Hint: e.hint})
		if err == nil {
			o.buf.Write(append(line, '\n'))
		}
	}
	o.buf.Flush() //nolint:errcheck // the caller is told by the trailer, or is gone
}

// appendRow appends a row as a JSON object. Absent fields are left out.
func appendRow(dst []byte, fields []record.Field) []byte {
	dst = append(dst, '{')
	first := true
	for _, f := range fields {
		if f.Value == "" {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = appendString(dst, f.Name)
		dst = append(dst, ':')
		dst = appendString(dst, f.Value)
	}
	return append(dst, '}')
}
