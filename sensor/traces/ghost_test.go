package traces

import (
	"testing"
)

func TestGhostTime(t *testing.T) {
	p := measure(t, Ghost{},
		sp("a", "", "s", "op", "server", 0, 100, false),
		sp("b", "a", "s", "first", "internal", 7, 20, false),   // 7 before
		sp("c", "a", "s", "second", "internal", 20, 20, false), // overlaps
		sp("d", "a", "s", "third", "internal", 45, 30, false),  // 5 between, 25 after
	)
	f := func(place string, want float64) {
		t.Helper()
		for k, s := range p.Values {
			if k.Subject == "op "+place && s.Values[0] == want {
				return
			}
		}
		t.Errorf("%s is not %v: %v", place, want, p.Values)
	}
	f("before", 7)
	f("between", 5)
	f("after", 25)
	if len(p.Values) != 3 {
		t.Errorf("%d measures, want 3", len(p.Values))
	}
}

func TestGhostTimeOfChildrenThatStickOut(t *testing.T) {
	p := measure(t, Ghost{},
		sp("a", "", "s", "op", "server", 10, 100, false),
		sp("b", "a", "s", "early", "internal", 5, 20, false),
		sp("c", "a", "s", "late", "internal", 50, 200, false))
	for k, s := range p.Values {
		if want := map[string]float64{"op before": 0, "op between": 25, "op after": 0}[k.Subject]; s.Values[0] != want {
			t.Errorf("%s %v, want %v", k.Subject, s.Values[0], want)
		}
	}
}

func TestNoGhostTimeInCallsAndLeaves(t *testing.T) {
	p := measure(t, Ghost{}, call(false)...)
	for k := range p.Values {
		if k.Subject != "GET / before" && k.Subject != "GET / after" && k.Subject != "GET /b before" && k.Subject != "GET /b after" {
			t.Errorf("%+v", k)
		}
	}
	if len(p.Values) != 4 {
		t.Errorf("%d measures, want 4", len(p.Values))
	}
}
