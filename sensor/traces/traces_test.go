package traces

import (
	"context"
	"testing"

	"inquest/record"
	"inquest/sensor"
)

func sp(id, parent, service, name, kind string, from, d int64, failed bool) sensor.Span {
	return sensor.Span{
		TraceID: "t", SpanID: id, Parent: parent, Service: service, Name: name, Kind: kind,
		Start: from * 1e6, Duration: d * 1e6, Error: failed,
	}
}

func measure(t *testing.T, s sensor.Sensor, spans ...sensor.Span) *sensor.Profile {
	t.Helper()
	w, err := sensor.Gather(context.Background(), &sensor.Memory{AllSpans: spans}, sensor.Range{From: 0, To: 1e12}, sensor.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	p := sensor.NewProfile(w.Range)
	s.Measure(w, p)
	return p
}

// call is a request from front to back, with a database behind.
func call(failed bool) []sensor.Span {
	return []sensor.Span{
		sp("a", "", "front", "GET /", "server", 0, 100, failed),
		sp("b", "a", "front", "call", "client", 10, 60, failed),
		sp("c", "b", "back", "GET /b", "server", 20, 40, failed),
		sp("d", "c", "back", "SELECT x", "client", 25, 15, false),
	}
}

func one(t *testing.T, p *sensor.Profile, kind, service string) float64 {
	t.Helper()
	for k, s := range p.Values {
		if k.Kind == kind && k.Entity == sensor.Service(service) && len(s.Values) == 1 {
			return s.Values[0]
		}
	}
	t.Fatalf("no single value of %s at %s", kind, service)
	return 0
}

func TestSelfTimeLeavesOutCallsAndDependencies(t *testing.T) {
	p := measure(t, SelfTime{}, call(false)...)
	if v := one(t, p, KindSelfTime, "front"); v != 40 {
		t.Errorf("front %v ms, want 40", v)
	}
	if v := one(t, p, KindSelfTime, "back"); v != 25 {
		t.Errorf("back %v ms, want 25", v)
	}
}

func TestGap(t *testing.T) {
	p := measure(t, Gap{}, call(false)...)
	if v := one(t, p, KindGap, "back"); v != 20 {
		t.Errorf("gap %v ms, want 20", v)
	}
	if n := p.Edges[record.Edge{Kind: record.EdgeCalls, From: sensor.Service("front"), To: sensor.Service("back")}]; n != 1 {
		t.Errorf("%d calls seen, want 1", n)
	}
	// A call that failed may be several tries, or have waited for what never answered.
	if p = measure(t, Gap{}, call(true)...); len(p.Values) != 0 {
		t.Errorf("a failed call has a gap: %v", p.Values)
	}
	if p = measure(t, SelfTime{}, call(true)...); len(p.Values) != 0 {
		t.Errorf("a failed visit has self time: %v", p.Values)
	}
	// A consumer works after the message was sent: no gap.
	p = measure(t, Gap{}, sp("a", "", "front", "send", "producer", 0, 5, false), sp("b", "a", "back", "recv", "consumer", 10, 2, false))
	if len(p.Values) != 0 {
		t.Errorf("a message has a gap: %v", p.Values)
	}
}

func TestDependency(t *testing.T) {
	p := measure(t, Dependency{}, call(false)...)
	for k, s := range p.Values {
		if k.Entity != sensor.Dependency("SELECT x") || k.Peer != sensor.Service("back") || s.Values[0] != 15 {
			t.Errorf("%+v %v", k, s.Values)
		}
	}
	if len(p.Values) != 1 {
		t.Errorf("%d dependencies, want 1", len(p.Values))
	}
}

func TestErrorsAreTheDeepest(t *testing.T) {
	p := measure(t, Errors{}, call(true)...)
	for k, h := range p.Shares {
		if want := map[string]float64{"front": 0, "back": 1}[k.Entity.Name]; h.K != want {
			t.Errorf("%s has %v errors of its own, want %v", k.Entity.Name, h.K, want)
		}
	}
}

func TestErrorsByStatusCode(t *testing.T) {
	f := func(attr, value string, want float64) {
		t.Helper()
		s := sp("a", "", "s", "op", "server", 0, 1, false)
		s.Attributes = map[string]string{attr: value}
		for _, h := range measure(t, Errors{}, s).Shares {
			if h.K != want {
				t.Errorf("%s=%s: %v errors, want %v", attr, value, h.K, want)
			}
		}
	}
	f("http.response.status_code", "503", 1)
	f("http.status_code", "500", 1)
	f("http.status_code", "404", 0)
	f("error.type", "timeout", 1)
}

func TestLatencyAndTraffic(t *testing.T) {
	if v := one(t, measure(t, Latency{}, call(false)...), KindLatency, "back"); v != 40 {
		t.Errorf("latency %v ms, want 40", v)
	}
	p := measure(t, Traffic{}, call(false)...)
	for k, h := range p.Rates {
		if h.K != 1 {
			t.Errorf("%s has %v visits, want 1", k.Entity, h.K)
		}
	}
}
