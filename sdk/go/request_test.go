package inquest

import (
	"context"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

func TestValidRequestID(t *testing.T) {
	f := func(id string, want bool) {
		t.Helper()
		if got := ValidRequestID(id); got != want {
			t.Errorf("ValidRequestID(%q) = %v", id, got)
		}
	}
	f("r-1", true)
	f("请求", true)
	f(strings.Repeat("ü", 256), true)
	f("", false)
	f("a b", false)
	f("a\nb", false)
	f("a\x7f", false)
	f("\xff", false)
	f(strings.Repeat("x", 257), false)
	f(NewRequestID(), true)
}

func TestWithRequest(t *testing.T) {
	ctx := t.Context()
	if id := RequestID(ctx); id != "" || InputHash(ctx) != "" {
		t.Errorf("an id from nowhere: %s", id)
	}
	ctx = WithRequest(ctx, Request{ID: "r-1", UserID: "ü 1", BizType: "qa"})
	SetInput(ctx, "hello")
	f := func(r Request, want Request, hash string) {
		t.Helper()
		in := WithRequest(ctx, r)
		if got, _ := RequestOf(in); got != want || InputHash(in) != hash {
			t.Errorf("WithRequest(%+v) = %+v, %s", r, got, InputHash(in))
		}
	}
	f(Request{}, Request{"r-1", "ü 1", "qa"}, HashInput("hello"))
	f(Request{ID: "bad id"}, Request{"r-1", "ü 1", "qa"}, HashInput("hello"))
	f(Request{UserID: "u-2"}, Request{"r-1", "u-2", "qa"}, HashInput("hello"))
	f(Request{ID: "r-2"}, Request{ID: "r-2"}, "")
	SetInputHash(ctx, "no hash")
	if InputHash(ctx) != HashInput("hello") {
		t.Error("what is no hash was taken")
	}
	if RequestID(WithRequest(t.Context(), Request{})) == RequestID(WithRequest(t.Context(), Request{})) {
		t.Error("two requests with one id")
	}
}

// TestOverTheWire carries the request to another process.
func TestOverTheWire(t *testing.T) {
	header := propagation.MapCarrier{}
	Propagator().Inject(WithRequest(t.Context(), Request{"r-1", "ü, 1", "qa"}), header)
	ctx := Propagator().Extract(context.Background(), header)
	if got, ok := RequestOf(ctx); !ok || got != (Request{"r-1", "ü, 1", "qa"}) {
		t.Errorf("%+v from %v", got, header)
	}
	m, _ := baggage.NewMemberRaw(KeyRequestID, "bad id")
	b, _ := baggage.New(m)
	if id := RequestID(baggage.ContextWithBaggage(t.Context(), b)); id != "" {
		t.Errorf("took %q", id)
	}
}

// TestStamps puts the request on spans and log records, and leaves what is there.
func TestStamps(t *testing.T) {
	m := newMemory(t)
	ctx := WithRequest(t.Context(), Request{ID: "r-1", UserID: "u"})
	f := func(ctx context.Context, attrs []attribute.KeyValue, want map[string]string) {
		t.Helper()
		_, span := m.traces.Tracer("x").Start(ctx, "s", trace.WithAttributes(attrs...))
		span.End()
		ended := m.spans.Ended()
		if got := attributesOf(ended[len(ended)-1].Attributes()); !equal(got, want) {
			t.Errorf("span %v, want %v", got, want)
		}
		var r log.Record
		r.AddAttributes(attrs...)
		m.logs.Logger("x").Emit(ctx, r)
		var kvs []attribute.KeyValue
		m.records[len(m.records)-1].WalkAttributes(func(kv attribute.KeyValue) bool {
			kvs = append(kvs, kv)
			return true
		})
		if got := attributesOf(kvs); !equal(got, want) {
			t.Errorf("log record %v, want %v", got, want)
		}
	}
	f(ctx, nil, map[string]string{"request.id": "r-1", "user.id": "u"})
	f(ctx, []attribute.KeyValue{attribute.String("request.id", "mine")}, map[string]string{"request.id": "mine", "user.id": "u"})
	f(t.Context(), nil, map[string]string{})
}

func equal(a, b map[string]string) bool {
	for k, v := range a {
		if b[k] != v {
			return false
		}
	}
	return len(a) == len(b)
}
