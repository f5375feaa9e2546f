package traces

import (
	"strconv"
	"testing"

	"inquest/sensor"
)

// requests are visits of s of so many ms each.
func requests(ms ...int64) []sensor.Span {
	var out []sensor.Span
	for i, d := range ms {
		s := sp("a", "", "s", "op", "server", int64(i)*1000, d, false)
		s.TraceID = strconv.Itoa(i)
		out = append(out, s)
	}
	return out
}

func share(t *testing.T, p *sensor.Profile, kind, service string) (k, n float64) {
	t.Helper()
	for key, h := range p.Shares {
		if key.Kind == kind && key.Entity == sensor.Service(service) {
			return h.K, h.N
		}
	}
	t.Fatalf("no %s at %s", kind, service)
	return 0, 0
}

func TestStall(t *testing.T) {
	if k, n := share(t, measure(t, Stalls{}, requests(10, 11, 9, 10, 10, 10, 10, 79, 80, 900)...), KindStall, "s"); k != 2 || n != 10 {
		t.Errorf("%v of %v stall, want 2 of 10", k, n)
	}
}

func TestStallIsOfTheDeepest(t *testing.T) {
	var spans []sensor.Span
	for i := range 5 {
		d := int64(10)
		if i == 4 {
			d = 500
		}
		spans = append(spans, in(strconv.Itoa(i), sp("a", "", "front", "op", "server", 0, d+2, false), sp("b", "a", "back", "op", "server", 1, d, false))...)
	}
	p := measure(t, Stalls{}, spans...)
	if k, _ := share(t, p, KindStall, "front"); k != 0 {
		t.Error("the caller of a stalled request stalls")
	}
	if k, _ := share(t, p, KindStall, "back"); k != 1 {
		t.Error("the request does not stall")
	}
}

func TestStallIsNotOfFailures(t *testing.T) {
	spans := requests(10, 10, 10, 900)
	spans[3].Error = true
	if k, n := share(t, measure(t, Stalls{}, spans...), KindStall, "s"); k != 0 || n != 3 {
		t.Errorf("%v of %v, want 0 of 3", k, n)
	}
}

func TestGatewayTimeout(t *testing.T) {
	f := func(attr, value string, ms int64, failed bool, want float64) {
		t.Helper()
		s := sp("a", "", "s", "op", "server", 0, ms, failed)
		s.Attributes = map[string]string{attr: value}
		if k, n := share(t, measure(t, Stalls{}, s), KindGatewayTimeout, "s"); k != want || n != 1 {
			t.Errorf("%s=%s after %d ms: %v, want %v", attr, value, ms, k, want)
		}
	}
	f("http.response.status_code", "504", 123, true, 1)
	f("http.response.status_code", "504", 123, false, 1) // its status code says that it failed
	f("http.response.status_code", "500", 123, true, 0)
	f("error.type", "context.DeadlineExceeded", 123, true, 1)
	f("error.type", "ReadTimeout", 123, true, 1)
	f("http.response.status_code", "500", 30010, true, 1)
	f("http.response.status_code", "200", 30000, false, 0)
}
