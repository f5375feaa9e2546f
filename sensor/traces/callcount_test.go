package traces

import (
	"slices"
	"testing"

	"inquest/record"
	"inquest/sensor"
)

func calls(t *testing.T, p *sensor.Profile, peer record.Entity) []float64 {
	t.Helper()
	for k, s := range p.Values {
		if k.Kind == KindCallCount && k.Entity == peer && k.Peer == sensor.Service("front") {
			return s.Values
		}
	}
	t.Fatalf("no calls of %v", peer)
	return nil
}

func in(trace string, spans ...sensor.Span) []sensor.Span {
	for i := range spans {
		spans[i].TraceID = trace
	}
	return spans
}

func TestCallCount(t *testing.T) {
	twice := append(call(false), sp("e", "a", "front", "call", "client", 75, 20, false), sp("f", "e", "back", "GET /b", "server", 76, 10, false))
	none := in("u", sp("a", "", "front", "GET /", "server", 200, 5, false))
	p := measure(t, CallCount{}, append(twice, none...)...)
	if got := calls(t, p, sensor.Service("back")); !slices.Equal(got, []float64{2, 0}) {
		t.Errorf("%v calls a visit, want 2 and 0", got)
	}
}

func TestCallCountOfWhatDidNotArrive(t *testing.T) {
	// The second call fails before a span is made at the other end.
	failed := sp("e", "a", "front", "call", "client", 75, 20, true)
	failed.Attributes = map[string]string{"server.address": "back", "http.request.resend_count": "2"}
	p := measure(t, CallCount{}, append(call(false), failed)...)
	if got := calls(t, p, sensor.Service("back")); !slices.Equal(got, []float64{4}) {
		t.Errorf("%v calls, want 1 that arrived and 3 that did not", got)
	}
}

func TestCallCountOfDependency(t *testing.T) {
	p := measure(t, CallCount{},
		sp("a", "", "front", "GET /", "server", 0, 100, false),
		sp("b", "a", "front", "SELECT x", "client", 10, 5, false), sp("c", "a", "front", "SELECT x", "client", 20, 5, false))
	if got := calls(t, p, sensor.Dependency("SELECT x")); !slices.Equal(got, []float64{2}) {
		t.Errorf("%v calls, want 2", got)
	}
}

// TestCallCountAsksAtAll checks the share of visits that ask a peer: with one call
// in two of three visits, as in all, the median is one.
func TestCallCountAsksAtAll(t *testing.T) {
	none := in("u", sp("a", "", "front", "GET /", "server", 200, 5, false))
	p := measure(t, CallCount{}, append(call(false), none...)...)
	for k, h := range p.Shares {
		if k.Kind == KindCallCount && k.Entity == sensor.Service("back") {
			if h.K != 1 || h.N != 2 {
				t.Errorf("%v of %v visits ask, want 1 of 2", h.K, h.N)
			}
			return
		}
	}
	t.Error("no share of visits that ask")
}
