package sensor

import (
	"context"
	"errors"
	"testing"

	"inquest/record"
)

// sp is a span of a test: times in ms.
func sp(id, parent, service, name string, from, d int64) Span {
	return Span{TraceID: "t", SpanID: id, Parent: parent, Service: service, Name: name, Start: from * 1e6, Duration: d * 1e6}
}

func gather(t *testing.T, m *Memory) *Window {
	t.Helper()
	w, err := Gather(context.Background(), m, Range{0, 1e12}, DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestSelfTime(t *testing.T) {
	f := func(want int64, spans ...Span) {
		t.Helper()
		w := gather(t, &Memory{AllSpans: spans})
		if got := w.Traces[0].byID["a"].Self / 1e6; got != want {
			t.Errorf("self time %d ms, want %d", got, want)
		}
	}
	a := sp("a", "", "s", "op", 0, 100)
	f(100, a)
	f(70, a, sp("b", "a", "s", "x", 10, 30))
	f(50, a, sp("b", "a", "s", "x", 10, 30), sp("c", "a", "s", "x", 30, 30)) // in parallel
	f(60, a, sp("b", "a", "s", "x", 60, 90))                                 // outlives its parent
	f(100, a, sp("b", "a", "s", "x", 200, 50))                               // begins after its parent
	f(70, a, sp("b", "a", "s", "x", 10, 30), sp("c", "b", "s", "x", 10, 20)) // a grandchild counts once
	f(70, a, sp("b", "a", "s", "x", 10, 30), sp("b", "a", "s", "x", 10, 30)) // sent twice
}

func TestVisits(t *testing.T) {
	w := gather(t, &Memory{AllSpans: []Span{
		sp("a", "", "front", "in", 0, 100), sp("b", "a", "front", "call", 10, 50),
		sp("c", "b", "back", "in", 20, 30), sp("d", "c", "back", "work", 25, 10),
		sp("e", "missing", "other", "in", 40, 5),
	}, AllLogs: []Log{
		{Time: 30e6, Service: "back", TraceID: "t", SpanID: "d", Body: "x"},
		{Time: 31e6, Service: "back", TraceID: "t", Body: "no span"},
		{Time: 32e6, Service: "nowhere", TraceID: "t", Body: "of no visit"},
		{Time: 33e6, Service: "back", Body: "of no trace"},
	}})
	vs := w.Traces[0].Visits
	if len(vs) != 3 || vs[0].Service != "front" || vs[1].Service != "other" && vs[1].Service != "back" {
		t.Fatalf("visits %+v", vs)
	}
	for _, v := range vs {
		if v.Service == "back" && (len(v.Nodes) != 2 || len(v.Logs) != 2 || v.Caller.Service != "front") {
			t.Errorf("visit of back: %d spans, %d records", len(v.Nodes), len(v.Logs))
		}
	}
	if len(w.Loose) != 2 {
		t.Errorf("%d loose records, want 2", len(w.Loose))
	}
}

func TestHostileTraces(t *testing.T) {
	ring := gather(t, &Memory{AllSpans: []Span{sp("a", "b", "s", "x", 0, 1), sp("b", "a", "s", "x", 0, 1), sp("c", "c", "s", "x", 0, 1)}})
	if n := len(ring.Traces[0].Nodes); n != 3 {
		t.Errorf("a ring of parents keeps %d spans, want 3", n)
	}
	deep := []Span{}
	for i := range 3000 {
		parent := ""
		if i > 0 {
			parent = string(rune('A')) + string(rune(i))
		}
		deep = append(deep, sp(string(rune('A'))+string(rune(i+1)), parent, "s", "x", int64(i), 10000))
	}
	gather(t, &Memory{AllSpans: deep})
	bad := gather(t, &Memory{AllSpans: []Span{{TraceID: "t", SpanID: "a", Start: 5, Duration: -7}}})
	if bad.Traces[0].Nodes[0].Duration != 0 {
		t.Error("a span that ends before it starts has a duration")
	}
}

func TestLimitsAreDeclared(t *testing.T) {
	m := &Memory{
		AllSpans: []Span{sp("a", "", "s", "x", 0, 1), sp("b", "", "s", "x", 1, 1)},
		AllLogs:  []Log{{Time: 1}, {Time: 2}},
		Errors:   map[record.Quadrant]error{record.QuadrantMetrics: errors.New("down")},
	}
	w, err := Gather(context.Background(), m, Range{0, 1e12}, Limits{Spans: 1, Logs: 1, Series: 1, Points: 1})
	if err != nil {
		t.Fatal(err)
	}
	if w.Spans != 1 || w.Cut[record.QuadrantTraces] == "" || w.Cut[record.QuadrantLogs] == "" {
		t.Errorf("%d spans, cut %v", w.Spans, w.Cut)
	}
	if w.Unavailable[record.QuadrantMetrics] != "down" {
		t.Errorf("unavailable %v", w.Unavailable)
	}
}
