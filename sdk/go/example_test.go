package inquest_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	inquest "inquest.dev/sdk/go"
	"inquest.dev/sdk/go/spool"
)

// Log the way of one request. When a call has returned, its event is on disk.
func Example() {
	dir, err := os.MkdirTemp("", "spool")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	traces := sdktrace.NewTracerProvider() // setup.Start makes one that exports
	w, err := spool.Open(dir, spool.Options{Resource: inquest.Resource("chat-api", nil)})
	if err != nil {
		panic(err)
	}
	defer w.Close()
	events, err := inquest.NewLogger(inquest.Config{Service: "chat-api", Spool: w, Tracer: traces})
	if err != nil {
		panic(err)
	}

	ctx := inquest.WithRequest(context.Background(), inquest.Request{UserID: "u-7", BizType: "qa"})
	ctx, span := traces.Tracer("chat").Start(ctx, "POST /chat")
	defer span.End()

	say := func(err error) {
		if err != nil {
			fmt.Println(err)
		}
	}
	say(events.Ingress(ctx, inquest.Ingress{Raw: "Why is the sky blue?"}))
	say(events.Preprocess(ctx, inquest.Preprocess{Tokenization: &inquest.Tokenization{Length: 6, MaxLength: 512}}))
	say(events.Inference(ctx, inquest.Inference{Common: inquest.Common{Output: inquest.StatsOf([]float32{0.1, 0.9})}}))
	say(events.Egress(ctx, inquest.Egress{}))
	fmt.Println(w.Stats().Records, "events are on disk")
	// Output: 4 events are on disk
}

// An event that lacks something is written all the same, and the error says what.
func ExampleLogger_Log() {
	dir, err := os.MkdirTemp("", "spool")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	w, err := spool.Open(dir, spool.Options{})
	if err != nil {
		panic(err)
	}
	defer w.Close()
	events, err := inquest.NewLogger(inquest.Config{Service: "chat-api", Spool: w, Tracer: sdktrace.NewTracerProvider()})
	if err != nil {
		panic(err)
	}
	fmt.Println(events.Ingress(context.Background(), inquest.Ingress{Raw: "hello"}))
	fmt.Println(w.Stats().Records, "event is on disk")
	// Output:
	// the event is incomplete: no request id; serve the request with inquesthttp.Handler or inquest.WithRequest
	// 1 event is on disk
}

func ExampleNewSlogHandler() {
	next := slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})
	log := slog.New(inquest.NewSlogHandler(inquest.SlogOptions{Next: next}))
	ctx := inquest.WithRequest(context.Background(), inquest.Request{ID: "r-1"})
	log.InfoContext(ctx, "tokenized", "tokens", 6)
	// Output: level=INFO msg=tokenized tokens=6 request_id=r-1
}

func ExampleStreamReader() {
	answer := io.NopCloser(strings.NewReader("data: {\"choices\":[{\"delta\":{\"content\":\"blue\"}}]}\n\ndata: [DONE]\n\n"))
	r := inquest.StreamReader(context.Background(), answer, inquest.StreamOptions{Name: "chat", WantEnd: true}, inquest.SSE())
	defer r.Close()
	n, err := io.Copy(io.Discard, r)
	fmt.Println(n, err)
	// Output: 64 <nil>
}

func ExampleStatsOf() {
	s := inquest.StatsOf([]float64{-1, 0, 2.5, 3}, 2, 2)
	fmt.Println(s.Shape, s.DType, *s.Min, *s.Max, s.HasNaN)
	// Output: [2 2] float64 -1 3 false
}
