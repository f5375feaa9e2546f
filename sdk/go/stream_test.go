package inquest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// lastSpan returns the span that ended last.
func (m *memory) lastSpan(t *testing.T) (sdktrace.ReadOnlySpan, map[string]string) {
	t.Helper()
	ended := m.spans.Ended()
	if len(ended) == 0 {
		t.Fatal("no span has ended")
	}
	s := ended[len(ended)-1]
	return s, attributesOf(s.Attributes())
}

// body is a reader of pieces, one for each Read, that ends with err.
type body struct {
	pieces []string
	err    error
	closed bool
}

func (b *body) Read(p []byte) (int, error) {
	if len(b.pieces) == 0 {
		return 0, b.err
	}
	n := copy(p, b.pieces[0])
	b.pieces = b.pieces[1:]
	return n, nil
}

func (b *body) Close() error {
	b.closed = true
	return nil
}

const (
	sseOne  = "data: {\"choices\":[{\"delta\":{\"content\":\"hé\"},\"token_ids\":[1,2]}]}\n\n"
	sseTwo  = "data: {\"choices\":[{\"delta\":{\"content\":\"!\"},\"logprobs\":{\"content\":[{}]}}]}\n\n"
	sseUse  = "data: {\"choices\":[],\"usage\":{\"completion_tokens\":3}}\n\n"
	sseLess = "data: {\"choices\":[],\"usage\":{\"completion_tokens\":2}}\n\n"
	sseDone = "data: [DONE]\n\n"
)

func TestStreamReader(t *testing.T) {
	m := newMemory(t)
	ctx := WithRequest(t.Context(), Request{ID: "r-1"})
	opts := StreamOptions{Name: "chat", WantEnd: true, Tracer: m.traces}
	f := func(pieces []string, end error, reads int, want map[string]string) {
		t.Helper()
		from := &body{pieces: pieces, err: end}
		r := StreamReader(ctx, from, opts, SSE())
		buf := make([]byte, 1000)
		for range reads {
			if _, err := r.Read(buf); err != nil {
				break
			}
		}
		r.Close()
		span, got := m.lastSpan(t)
		for k, v := range want {
			if got[k] != v {
				t.Errorf("%q: %s = %q, want %q", pieces, k, got[k], v)
			}
		}
		if got[KeyRequestID] != "r-1" || span.Name() != "chat" || !from.closed {
			t.Errorf("span %s %v, source closed %v", span.Name(), got, from.closed)
		}
	}
	whole := []string{sseOne, sseTwo, sseUse, sseDone}
	f(whole, io.EOF, 9, map[string]string{
		"stream.outcome": "completed", "stream.chunks": "4", "stream.characters": "3",
		"stream.tokens.client": "3", "stream.tokens.server": "3", "stream.tokens.mismatch": "0",
	})
	f([]string{sseOne, sseTwo, sseLess, sseDone}, io.EOF, 9, map[string]string{"stream.tokens.mismatch": "-1"})
	f([]string{sseOne[:30], sseOne[30:] + sseDone}, io.EOF, 9, map[string]string{"stream.outcome": "completed", "stream.tokens.client": "2", "stream.characters": "2"})
	f(whole, io.EOF, 2, map[string]string{"stream.outcome": "partial", "stream.end_reason": "closed early", "stream.chunks": "2"})
	f(whole, io.EOF, 4, map[string]string{"stream.outcome": "completed", "stream.end_reason": "closed after the end mark"})
	f(whole[:3], io.EOF, 9, map[string]string{"stream.outcome": "partial", "stream.end_reason": "ended without the end mark"})
	f(whole[:1], io.ErrUnexpectedEOF, 9, map[string]string{"stream.outcome": "partial", "stream.chunks": "1"})
	f(whole[:1], errors.New("reset"), 9, map[string]string{"stream.outcome": "error", "stream.end_reason": "reset"})
	f(whole[:1], fmt.Errorf("read: %w", context.Canceled), 9, map[string]string{"stream.outcome": "cancelled"})
	f(nil, io.EOF, 9, map[string]string{"stream.outcome": "partial", "stream.chunks": "0", "stream.time_to_first_chunk_ms": ""})
}

// TestStreamBytes hands on the same bytes, whatever the size of the reads.
func TestStreamBytes(t *testing.T) {
	m := newMemory(t)
	want := strings.Repeat(sseOne+sseTwo, 20) + sseUse + sseDone
	r := StreamReader(t.Context(), io.NopCloser(iotest.OneByteReader(strings.NewReader(want))), StreamOptions{Tracer: m.traces}, SSE())
	got, err := io.ReadAll(r)
	if err != nil || string(got) != want {
		t.Errorf("%d bytes of %d: %v", len(got), len(want), err)
	}
	span, attrs := m.lastSpan(t)
	if attrs["stream.tokens.client"] != "60" || attrs["stream.chunks"] != fmt.Sprint(len(want)) {
		t.Errorf("%v", attrs)
	}
	// The events cover every chunk once, and are few.
	sum := 0
	for _, e := range span.Events() {
		for _, kv := range e.Attributes {
			if kv.Key == "stream.chunks" {
				sum += int(kv.Value.AsInt64())
			}
		}
	}
	if sum != len(want) || len(span.Events()) > 64 {
		t.Errorf("%d events cover %d of %d chunks", len(span.Events()), sum, len(want))
	}
}

func TestStreamSeq(t *testing.T) {
	m := newMemory(t)
	broken := errors.New("broken")
	seq := func(n int, end error) iter.Seq2[string, error] {
		return func(yield func(string, error) bool) {
			for range n {
				if !yield("chunk", nil) {
					return
				}
			}
			if end != nil {
				yield("", end)
			}
		}
	}
	f := func(n int, end error, take int, want, chunks string) {
		t.Helper()
		got := 0
		for _, err := range StreamSeq(t.Context(), seq(n, end), StreamOptions{Tracer: m.traces, Logs: m.logs, LogChunks: true}, func(s string) Chunk { return Text([]byte(s)) }) {
			if err != nil && err != end { //nolint:errorlint // the same value is wanted
				t.Errorf("got %v", err)
			}
			if got++; got == take {
				break
			}
		}
		if _, a := m.lastSpan(t); a["stream.outcome"] != want || a["stream.chunks"] != chunks {
			t.Errorf("%d chunks, %v, take %d: %v", n, end, take, a)
		}
	}
	f(3, nil, -1, "completed", "3")
	f(3, nil, 2, "partial", "2")
	f(2, broken, -1, "error", "2")
	f(0, nil, -1, "completed", "0")
	// Each chunk is a log record, bound to the stream's span.
	if len(m.records) != 7 {
		t.Fatalf("%d log records", len(m.records))
	}
	for _, r := range m.records {
		if !r.TraceID().IsValid() || !r.SpanID().IsValid() || r.EventName() != "stream.chunk" {
			t.Errorf("a chunk without a trace: %s", r.EventName())
		}
	}
	func() {
		defer func() { recover() }()
		for range StreamSeq(t.Context(), seq(3, nil), StreamOptions{Tracer: m.traces}, func(string) Chunk { return Chunk{} }) {
			panic("the consumer")
		}
	}()
	if _, a := m.lastSpan(t); a["stream.outcome"] != "partial" {
		t.Errorf("after a panic: %v", a)
	}
}

// TestStreamTimes measures in the synthetic time of a bubble.
func TestStreamTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t)
		s := NewStream(t.Context(), StreamOptions{Tracer: m.traces})
		time.Sleep(70 * time.Millisecond)
		for range 99 {
			s.Chunk(Chunk{Bytes: 1})
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(490 * time.Millisecond)
		s.Chunk(Chunk{Bytes: 1})
		s.End(nil)
		s.Chunk(Chunk{Bytes: 1}) // too late
		s.End(errors.New("twice"))
		_, a := m.lastSpan(t)
		f := func(key string, want, within float64) {
			t.Helper()
			var got float64
			fmt.Sscan(a[key], &got)
			if got < want*(1-within) || got > want*(1+within) {
				t.Errorf("%s = %s, want %g", key, a[key], want)
			}
		}
		f("stream.time_to_first_chunk_ms", 70, 0)
		f("stream.gap_ms.p50", 10, 0.011)
		f("stream.gap_ms.p95", 10, 0.011)
		f("stream.gap_ms.max", 500, 0)
		f("stream.bytes", 100, 0)
		if a["stream.outcome"] != "completed" {
			t.Error(a)
		}
	})
}

// TestStreamAbandoned ends a stream that nobody reads or closes with its context.
func TestStreamAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		s := NewStream(ctx, StreamOptions{Tracer: m.traces})
		s.Chunk(Chunk{Bytes: 3})
		cancel(errors.New("the peer is gone"))
		synctest.Wait()
		_, a := m.lastSpan(t)
		if s.Outcome() != OutcomeCancelled || a["stream.bytes"] != "3" || !strings.Contains(a["stream.end_reason"], "the peer is gone") {
			t.Error(a)
		}
	})
}

func TestSSE(t *testing.T) {
	f := func(in string, want Chunk) {
		t.Helper()
		want.Bytes = len(in)
		if got := SSE()([]byte(in)); got != want {
			t.Errorf("%q: %+v, want %+v", in, got, want)
		}
	}
	f(": comment\nevent: x\n\n", Chunk{})
	f("data:[DONE]\r\n", Chunk{Last: true})
	f("data: [DONE]", Chunk{}) // the line has not ended
	f("data: {broken\n", Chunk{})
	f("data: {\"choices\":[{\"text\":\"abc\",\"logprobs\":{\"tokens\":[\"a\",\"bc\"]}}]}\n", Chunk{Characters: 3, Tokens: 2})
	f("data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"ü\"}}]}\n"+sseUse, Chunk{Characters: 1, ServerTokens: 3})
	f(strings.Repeat("x", maxPending+1), Chunk{})
}

// FuzzSSE reads any stream in pieces of any size: what it says depends on the
// bytes, not on how they were cut.
func FuzzSSE(f *testing.F) {
	f.Add(sseOne+sseTwo+sseUse+sseDone, uint8(3))
	f.Add("data: {}\n\n:\ndata:", uint8(1))
	f.Fuzz(func(t *testing.T, s string, piece uint8) {
		if piece == 0 {
			return
		}
		want := SSE()([]byte(s))
		var got Chunk
		read := SSE()
		for b := []byte(s); len(b) > 0; {
			n := min(int(piece), len(b))
			add(&got, read(b[:n]))
			b = b[n:]
		}
		if got != want {
			t.Errorf("in pieces %+v, at once %+v", got, want)
		}
	})
}
