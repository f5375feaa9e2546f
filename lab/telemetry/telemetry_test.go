package telemetry

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestOTLP(t *testing.T) {
	r := New(rand.New(rand.NewPCG(1, 1)))
	gone := false
	a := &Source{Resource: Attributes(nil).With("service.name", "a", "process.pid", 7), Clock: func(time.Duration) time.Duration { return 2 * time.Second }}
	b := &Source{Resource: Attributes(nil).With("service.name", "b"), Lost: func(time.Duration) bool { return gone }}
	trace, root := r.NewTrace(), r.NewSpan()
	r.Span(Span{
		Source: a, Trace: trace, ID: root, Name: "GET /", Kind: Server, Start: 0, End: time.Second, Failed: true, Message: "no",
		Events: []Event{{Time: time.Second, Name: "exception"}},
	})
	r.Span(Span{Source: b, Trace: trace, ID: r.NewSpan(), Parent: root, Name: "work", Kind: Internal, Start: time.Second, End: 2 * time.Second})
	r.Log(Log{Source: b, Time: time.Second, Severity: Warn, Body: "slow", Trace: trace, Attributes: Attributes(nil).With("n", 3, "ok", true, "x", 0.5)})
	m := r.Meter(b)
	requests := m.Counter("requests", "{request}", "code", 200)
	sizes := m.Histogram("sizes", "By", []float64{1, 10})
	depth := 4.0
	m.Gauge("depth", "1", func() float64 { return depth })
	requests.Add(2)
	for _, v := range []float64{0.5, 1, 5, 50} {
		sizes.Observe(v)
	}
	m.Scrape(time.Second)
	requests.Add(1)
	m.Scrape(2 * time.Second)
	gone = true
	m.Scrape(3 * time.Second)
	r.Log(Log{Source: b, Time: 3 * time.Second, Body: "never sent"})

	start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	o := OTLP{Start: start}
	all := Window{0, time.Minute}
	td := o.Traces(r.Spans, all)
	if td.SpanCount() != 2 || td.ResourceSpans().Len() != 2 {
		t.Fatalf("%d spans of %d sources", td.SpanCount(), td.ResourceSpans().Len())
	}
	sp := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
	if got := sp.StartTimestamp().AsTime(); !got.Equal(start.Add(2 * time.Second)) {
		t.Errorf("by a clock that is 2 s ahead the span starts at %s", got)
	}
	if sp.TraceID().String() != trace.String() || sp.Status().Message() != "no" || !sp.Events().At(0).Timestamp().AsTime().Equal(start.Add(3*time.Second)) {
		t.Error("a span's parts are not all there")
	}
	if n := o.Traces(r.Spans, Window{0, 3 * time.Second}).SpanCount(); n != 1 {
		t.Errorf("%d spans end before 3 s, want 1", n)
	}
	ld := o.Logs(r.Logs, all)
	if ld.LogRecordCount() != 1 {
		t.Fatalf("%d log records, want 1: the last was never sent", ld.LogRecordCount())
	}
	lr := ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0)
	if lr.SeverityText() != "WARN" || lr.Attributes().Len() != 3 {
		t.Errorf("%s, %v", lr.SeverityText(), lr.Attributes().AsRaw())
	}
	md := o.Metrics(r.Series, all)
	if md.MetricCount() != 3 || md.DataPointCount() != 6 {
		t.Fatalf("%d metrics, %d points", md.MetricCount(), md.DataPointCount())
	}
	h := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(1).Histogram().DataPoints().At(0)
	if got := h.BucketCounts().AsRaw(); h.Count() != 4 || h.Sum() != 56.5 || got[0] != 2 || got[1] != 1 || got[2] != 1 {
		t.Errorf("count %d, sum %v, buckets %v", h.Count(), h.Sum(), got)
	}
}

func TestSampling(t *testing.T) {
	r := New(rand.New(rand.NewPCG(1, 1)))
	r.SampleTraces = 0.25
	s := &Source{}
	kept := 0
	for range 10_000 {
		trace := r.NewTrace()
		first := r.Span(Span{Source: s, Trace: trace})
		if second := r.Span(Span{Source: s, Trace: trace}); first != second {
			t.Fatal("half of a trace is kept")
		}
		if first {
			kept++
		}
	}
	if kept < 2300 || kept > 2700 {
		t.Errorf("%d of 10000 traces kept, want a quarter", kept)
	}
}
