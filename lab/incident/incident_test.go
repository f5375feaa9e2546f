package incident

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var end = time.Date(2026, 11, 30, 10, 15, 0, 0, time.UTC)

func generate(f Fault) *Telemetry { return Generate(Options{End: end, Fault: f, Seed: 1}) }

func TestParseFault(t *testing.T) {
	f := func(in string, want Fault, ok bool) {
		t.Helper()
		got, err := ParseFault(in)
		if got != want || (err == nil) != ok {
			t.Errorf("ParseFault(%q) = %q, %v", in, got, err)
		}
	}
	f("none", FaultNone, true)
	f("cpu", FaultCPU, true)
	f("bad-deploy", FaultBadDeploy, true)
	f("", "", false)
	f("CPU", "", false)
}

// TestSpans checks that spans are whole: known parents of the same trace, one
// root each, times within the incident and within the parent's.
func TestSpans(t *testing.T) {
	for _, fault := range Faults {
		x := generate(fault)
		type key struct {
			trace trace.TraceID
			span  trace.SpanID
		}
		byID := map[key]*Span{}
		roots := map[trace.TraceID]int{}
		for i := range x.Spans {
			s := &x.Spans[i]
			k := key{s.TraceID, s.ID}
			if byID[k] != nil || !s.TraceID.IsValid() || !s.ID.IsValid() {
				t.Fatalf("%s: identifier of %s is invalid or used twice", fault, s.Name)
			}
			byID[k] = s
			if !s.Parent.IsValid() {
				roots[s.TraceID]++
			}
		}
		for i := range x.Spans {
			s := &x.Spans[i]
			if s.End.Before(s.Start) || s.Start.Before(x.Start) || s.End.After(x.End) {
				t.Fatalf("%s: %s runs from %v to %v", fault, s.Name, s.Start, s.End)
			}
			if roots[s.TraceID] > 1 {
				t.Fatalf("%s: trace %s has %d roots", fault, s.TraceID, roots[s.TraceID])
			}
			if !s.Parent.IsValid() {
				continue
			}
			p := byID[key{s.TraceID, s.Parent}]
			switch {
			case p == nil && roots[s.TraceID] == 1:
				t.Fatalf("%s: %s has an unknown parent in a finished trace", fault, s.Name)
			case p == nil:
			case s.Start.Before(p.Start) || s.End.After(p.End) && !strings.HasPrefix(p.Name, "chat "):
				t.Fatalf("%s: %s from %v to %v sticks out of %s from %v to %v", fault, s.Name, s.Start, s.End, p.Name, p.Start, p.End)
			}
		}
	}
}

// TestLogs checks that records lie in time and that their spans belong to their pod.
func TestLogs(t *testing.T) {
	for _, fault := range Faults {
		x := generate(fault)
		owner := map[trace.SpanID]*Pod{}
		unfinished := map[trace.TraceID]bool{}
		for i := range x.Spans {
			owner[x.Spans[i].ID] = x.Spans[i].Pod
			unfinished[x.Spans[i].TraceID] = true
		}
		for i := range x.Spans {
			if !x.Spans[i].Parent.IsValid() {
				unfinished[x.Spans[i].TraceID] = false
			}
		}
		bound := 0
		last := x.Start
		for i := range x.Logs {
			l := &x.Logs[i]
			if l.Time.Before(last) || l.Time.After(x.End) || l.Body == "" {
				t.Fatalf("%s: record %q at %v is out of order or time", fault, l.Body, l.Time)
			}
			last = l.Time
			if !l.TraceID.IsValid() {
				continue
			}
			bound++
			// The span of a request that has not finished is not there yet.
			waits, known := unfinished[l.TraceID]
			if p := owner[l.SpanID]; p != l.Pod && (p != nil || known && !waits) {
				t.Fatalf("%s: record %q of %s belongs to a span of another pod or to none", fault, l.Body, l.Pod.Name)
			}
		}
		if bound*10 < len(x.Logs)*9 {
			t.Errorf("%s: only %d of %d records carry a trace", fault, bound, len(x.Logs))
		}
	}
}

// TestMetrics checks that readings are complete and in order, and that what
// accumulates never falls.
func TestMetrics(t *testing.T) {
	x := generate(FaultCPU)
	if want := int((Healthy + Broken) / ScrapeInterval); len(x.Scrapes) != want {
		t.Fatalf("%d readings, want %d", len(x.Scrapes), want)
	}
	sums := map[string]float64{}
	for i, all := range x.Scrapes {
		at := x.Start.Add(time.Duration(i+1) * ScrapeInterval)
		for _, rm := range all {
			for _, m := range rm.ScopeMetrics[0].Metrics {
				id := rm.Resource.String() + rm.ScopeMetrics[0].Scope.Name + m.Name
				check := func(attrs string, when time.Time, v float64, grows bool) {
					if !when.Equal(at) {
						t.Fatalf("%s was read at %v, want %v", m.Name, when, at)
					}
					if grows && v < sums[id+attrs] {
						t.Fatalf("%s fell from %v to %v", m.Name, sums[id+attrs], v)
					}
					sums[id+attrs] = v
				}
				switch d := m.Data.(type) {
				case metricdata.Gauge[float64]:
					for _, p := range d.DataPoints {
						check(text(p.Attributes), p.Time, p.Value, false)
					}
				case metricdata.Sum[float64]:
					for _, p := range d.DataPoints {
						check(text(p.Attributes), p.Time, p.Value, true)
					}
				case metricdata.Histogram[float64]:
					for _, p := range d.DataPoints {
						n := uint64(0)
						for _, b := range p.BucketCounts {
							n += b
						}
						if n != p.Count || len(p.BucketCounts) != len(p.Bounds)+1 {
							t.Fatalf("%s: buckets hold %d, count is %d", m.Name, n, p.Count)
						}
						check(text(p.Attributes), p.Time, float64(p.Count), true)
					}
				default:
					t.Fatalf("%s is a %T", m.Name, d)
				}
			}
		}
	}
}

func text(s attribute.Set) string { return s.Encoded(attribute.DefaultEncoder()) }

// TestDeterminism checks that the same options give the same telemetry, and that
// only the seed changes what happens before the onset.
func TestDeterminism(t *testing.T) {
	dump := func(x *Telemetry) string {
		b, err := json.Marshal([]any{x.Spans, x.Logs, x.Questions, x.Failed})
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	a := dump(generate(FaultKVCache))
	if a != dump(generate(FaultKVCache)) {
		t.Error("the same options give different telemetry")
	}
	if a == dump(Generate(Options{End: end, Fault: FaultKVCache, Seed: 2})) {
		t.Error("another seed gives the same telemetry")
	}
	before := func(x *Telemetry) string {
		var b strings.Builder
		for _, l := range x.Logs {
			if l.Time.Before(x.Onset.Add(-20 * time.Second)) {
				b.WriteString(l.Time.String() + l.Body + l.Pod.Name + "\n")
			}
		}
		return b.String()
	}
	healthy := before(generate(FaultNone))
	for _, f := range Faults {
		if before(generate(f)) != healthy {
			t.Errorf("%s changes what was logged before its onset", f)
		}
	}
}

// TestFaults checks that each fault does harm and that health does none.
func TestFaults(t *testing.T) {
	f := func(fault Fault, least, most int) {
		t.Helper()
		x := generate(fault)
		if x.Failed < least || x.Failed > most {
			t.Errorf("%s: %d of %d questions fail, want %d to %d", fault, x.Failed, x.Questions, least, most)
		}
		if x.Questions < 2000 || x.Questions > 2600 || len(x.Spans) < 10*x.Questions || len(x.Logs) < 9*x.Questions {
			t.Errorf("%s: %d questions, %d spans, %d log records", fault, x.Questions, len(x.Spans), len(x.Logs))
		}
	}
	f(FaultNone, 0, 0)
	f(FaultCPU, 10, 200)
	f(FaultKVCache, 20, 400)
	f(FaultVectorDB, 0, 60)
	f(FaultBadDeploy, 200, 400)
}

// TestEngine checks the model server's scheduler on small loads.
func TestEngine(t *testing.T) {
	jobs := func(n, prompt, output int) []*job {
		var out []*job
		for range n {
			out = append(out, &job{arrive: 1, deadline: 1e9, prompt: prompt, output: output})
		}
		return out
	}
	f := func(name string, j []*job, generated int, preempts, queues bool) {
		t.Helper()
		e := &engine{slowdown: func(float64) float64 { return 1 }, jobs: j}
		e.run(10)
		waited := false
		for _, x := range j {
			if x.end <= x.first || x.first <= x.scheduled || x.aborted {
				t.Errorf("%s: job scheduled %v, first token %v, end %v", name, x.scheduled, x.first, x.end)
			}
			waited = waited || x.scheduled > 2
		}
		if e.now.generated != generated || e.now.preempted > 0 != preempts || waited != queues {
			t.Errorf("%s: %d tokens, %d preemptions, waited %v", name, e.now.generated, e.now.preempted, waited)
		}
		if e.used() != 0 || len(e.snapshots) < 3 {
			t.Errorf("%s: %d tokens left in the cache, %d snapshots", name, e.used(), len(e.snapshots))
		}
	}
	f("one", jobs(1, 100, 50), 50, false, false)
	f("full batch", jobs(maxSequences, 100, 50), 50*maxSequences, false, false)
	f("queue", jobs(4, cacheTokens/2, 20), 80, false, true)
	f("preemption", jobs(4, cacheTokens/4-200, 400), 1600, true, false)
}

// memory keeps what the SDK would send.
type memory struct {
	mu   sync.Mutex
	logs []sdklog.Record
	fail error
}

func (m *memory) Export(_ context.Context, r []sdklog.Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, x := range r {
		m.logs = append(m.logs, x.Clone())
	}
	return m.fail
}
func (m *memory) Shutdown(context.Context) error   { return nil }
func (m *memory) ForceFlush(context.Context) error { return nil }

type memoryMetrics struct {
	sdkmetric.Exporter
	readings chan struct{}
}

func (m memoryMetrics) Export(context.Context, *metricdata.ResourceMetrics) error {
	m.readings <- struct{}{}
	return nil
}

// TestSend checks that the SDK sends each span, record and reading as planned,
// and that a refusal is not lost.
func TestSend(t *testing.T) {
	x := generate(FaultBadDeploy)
	readings := 0
	for _, s := range x.Scrapes {
		readings += len(s)
	}
	spans, logs := tracetest.NewInMemoryExporter(), &memory{}
	metrics := memoryMetrics{readings: make(chan struct{}, readings+1)}
	if err := x.Send(t.Context(), Exporters{Spans: spans, Logs: logs, Metrics: metrics}); err != nil {
		t.Fatal(err)
	}
	got := spans.GetSpans()
	if len(got) != len(x.Spans) || len(logs.logs) != len(x.Logs) || len(metrics.readings) != readings {
		t.Fatalf("sent %d of %d spans, %d of %d records, %d of %d readings",
			len(got), len(x.Spans), len(logs.logs), len(x.Logs), len(metrics.readings), readings)
	}
	want := map[trace.SpanID]*Span{}
	for i := range x.Spans {
		want[x.Spans[i].ID] = &x.Spans[i]
	}
	for _, s := range got {
		w := want[s.SpanContext.SpanID()]
		if w == nil || s.SpanContext.TraceID() != w.TraceID || s.Parent.SpanID() != w.Parent || s.Name != w.Name ||
			!s.StartTime.Equal(w.Start) || !s.EndTime.Equal(w.End) || s.SpanKind != w.Kind {
			t.Fatalf("%s was sent as %v, want %v", s.Name, s, w)
		}
	}
	logs.fail = errors.New("refused")
	few := &Telemetry{Logs: x.Logs[:3]}
	if err := few.Send(t.Context(), Exporters{Spans: spans, Logs: logs, Metrics: metrics}); !errors.Is(err, logs.fail) {
		t.Errorf("a refusal of log records gives %v", err)
	}
}
