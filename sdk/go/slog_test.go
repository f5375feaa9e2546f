package inquest

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"testing/slogtest"

	"go.opentelemetry.io/otel/attribute"
)

func TestSlog(t *testing.T) {
	m := newMemory(t)
	ctx := m.serving(t, Request{ID: "r-1"})
	f := func(do func(*slog.Logger), wantNext, wantOTel string) {
		t.Helper()
		var out bytes.Buffer
		next := slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			switch a.Key {
			case "time", "level", "trace_id", "span_id":
				return slog.Attr{}
			}
			return a
		}})
		do(slog.New(NewSlogHandler(SlogOptions{Logs: m.logs, Next: next})))
		if got := strings.TrimSpace(out.String()); got != wantNext {
			t.Errorf("next: %s, want %s", got, wantNext)
		}
		r := m.records[len(m.records)-1]
		got := map[string]any{}
		r.WalkAttributes(func(kv attribute.KeyValue) bool {
			got[string(kv.Key)] = kv.Value.Emit()
			return true
		})
		b, _ := json.Marshal(got)
		if string(b) != wantOTel || !r.TraceID().IsValid() {
			t.Errorf("otel: %s %s, want %s", b, r.TraceID(), wantOTel)
		}
	}
	f(func(l *slog.Logger) { l.InfoContext(ctx, "m", "a", "1") },
		"msg=m a=1 request_id=r-1", `{"a":"1","request.id":"r-1"}`)
	f(func(l *slog.Logger) { l.With("b", "2").WarnContext(ctx, "m") },
		"msg=m b=2 request_id=r-1", `{"b":"2","request.id":"r-1"}`)
	f(func(l *slog.Logger) { l.With("b", "2").WithGroup("g").With("c", "3").InfoContext(ctx, "m", "d", "4") },
		"msg=m b=2 request_id=r-1 g.c=3 g.d=4", `{"b":"2","g":"{\"c\":\"3\",\"d\":\"4\"}","request.id":"r-1"}`)
}

// TestSlogIDs looks for the ids on a record, with and without a span.
func TestSlogIDs(t *testing.T) {
	m := newMemory(t)
	var out bytes.Buffer
	l := slog.New(NewSlogHandler(SlogOptions{Next: slog.NewJSONHandler(&out, nil)}))
	l.InfoContext(m.serving(t, Request{ID: "r-1"}), "m")
	for _, want := range []string{`"request_id":"r-1"`, `"trace_id":"`, `"span_id":"`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s lacks %s", out.String(), want)
		}
	}
	out.Reset()
	l.Info("m")
	if strings.Contains(out.String(), "_id") {
		t.Error(out.String())
	}
	l.DebugContext(context.Background(), "quiet")
}

// TestSlogRules is the standard library's own test of handlers.
func TestSlogRules(t *testing.T) {
	var out bytes.Buffer
	h := NewSlogHandler(SlogOptions{Next: slog.NewJSONHandler(&out, nil)})
	err := slogtest.TestHandler(h, func() []map[string]any {
		var all []map[string]any
		for l := range strings.Lines(out.String()) {
			var one map[string]any
			if err := json.Unmarshal([]byte(l), &one); err != nil {
				t.Fatal(err)
			}
			all = append(all, one)
		}
		return all
	})
	if err != nil {
		t.Error(err)
	}
}
