package traces

import (
	"fmt"
	"testing"

	"inquest/sensor"
)

// busy are two requests at a time in each of which a step of 5 ms follows another;
// nothing of what was to come after at comes before at+pause.
func busy(at, pause int64) []sensor.Span {
	var out []sensor.Span
	moved := func(ms int64) int64 {
		if ms > at {
			return ms + pause
		}
		return ms
	}
	for i := range int64(20) {
		from := i * 50
		trace := fmt.Sprint("t", i)
		add := func(id, parent, name, kind string, from, to int64) {
			s := sp(id, parent, "s", name, kind, moved(from), moved(to)-moved(from), false)
			s.TraceID, s.Pod = trace, "s-1"
			out = append(out, s)
		}
		add("a", "", "op", "server", from, from+100)
		for k := range int64(20) {
			add(fmt.Sprint("b", k), "a", "step", "internal", from+5*k, from+5*k+5)
		}
	}
	return out
}

func pauses(t *testing.T, spans []sensor.Span) (n float64, ms []float64, looked bool) {
	t.Helper()
	p := measure(t, Pauses{}, spans...)
	for k, h := range p.Rates {
		if k.Kind == KindPause && k.Entity == sensor.Pod("s-1") {
			n, looked = h.K, true
		}
	}
	for k, s := range p.Values {
		if k.Subject == "length" {
			ms = s.Values
		}
	}
	return n, ms, looked
}

func TestPause(t *testing.T) {
	if n, ms, looked := pauses(t, busy(512, 400)); n != 1 || len(ms) != 1 || ms[0] != 405 {
		t.Errorf("%v pauses of %v ms (looked %v), want one of 405", n, ms, looked)
	}
}

func TestNoPauseInSteadyWork(t *testing.T) {
	if n, ms, looked := pauses(t, busy(0, 0)); n != 0 || len(ms) != 0 || !looked {
		t.Errorf("%v pauses of %v ms, looked %v", n, ms, looked)
	}
}

func TestWaitingForOthersIsNoPause(t *testing.T) {
	spans := busy(512, 400)
	// What stood still were calls of another service, and it answers after the pause.
	for i := range spans {
		if s := &spans[i]; s.Name == "step" && s.Duration > 100e6 {
			s.Kind = "client"
			back := *s
			back.SpanID, back.Parent, back.Service, back.Pod = "x", s.SpanID, "back", "back-1"
			spans = append(spans, back)
		}
	}
	if n, ms, _ := pauses(t, spans); n != 0 {
		t.Errorf("%v pauses of %v ms", n, ms)
	}
}

func TestOneRequestAloneDoesNotPause(t *testing.T) {
	var spans []sensor.Span
	for _, s := range busy(512, 400) {
		if s.TraceID == "t10" { // at work from 500
			spans = append(spans, s)
		}
	}
	if n, _, looked := pauses(t, spans); n != 0 || looked {
		t.Errorf("%v pauses, looked %v", n, looked)
	}
}
