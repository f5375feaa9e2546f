package lab

import (
	"context"
	"slices"
	"strings"
	"testing"

	"inquest/lab/scenario"
	"inquest/verdict"
)

// TestRun holds inquests on a few runs, twice: single faults are named, a pair gives
// two causes, nothing is confirmed where nothing broke or on a single quadrant, and
// the same runs give the same rows.
func TestRun(t *testing.T) {
	names := []string{"cpu-fallback/", "oom-kill/", "healthy/deploy"}
	run := func(workers int) *Result {
		r, err := Run(context.Background(), Options{
			From: 1, Seeds: 1, Workers: workers, Kinds: []string{"single", "healthy", "withheld"},
			Only: func(s scenario.Scenario) bool {
				return slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(s.Name, n) })
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		for i := range r.Rows {
			r.Rows[i].Seconds = 0
		}
		return r
	}
	a := run(2)
	if a.Single.N != 2 || a.Single.First != a.Single.N || a.Single.WrongConfirmed != 0 {
		t.Errorf("single faults: %+v", a.Single)
	}
	if a.Healthy.N != 1 || a.Healthy.Confirmed+a.Healthy.Suspected != 0 {
		t.Errorf("healthy: %+v", a.Healthy)
	}
	if a.Withheld.N != a.Single.N || a.Withheld.Confirmed != 0 || a.Withheld.Told != a.Withheld.N {
		t.Errorf("withheld: %+v", a.Withheld)
	}
	b := run(1)
	if !slices.EqualFunc(a.Rows, b.Rows, func(x, y Row) bool {
		return x.Scenario == y.Scenario && x.Seed == y.Seed && x.Fault == y.Fault && x.Entity == y.Entity && x.State == y.State && x.Rank == y.Rank
	}) {
		t.Error("the same runs gave other rows")
	}
}

// TestPair checks that two faults at once give two causes.
func TestPair(t *testing.T) {
	var seen *verdict.Verdict
	r, err := Run(context.Background(), Options{
		From: 1, Seeds: 1, Kinds: []string{"pairs"},
		Only:     func(s scenario.Scenario) bool { return strings.HasPrefix(s.Name, "oom-kill/") },
		Progress: func(_ Row, v *verdict.Verdict) { seen = v },
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.Pairs.N == 0 || r.Pairs.Both != r.Pairs.N {
		t.Fatalf("pairs: %+v", r.Pairs)
	}
	if len(seen.Also) == 0 || seen.Also[0].Entity == seen.Cause.Entity {
		t.Errorf("further causes: %+v", seen.Also)
	}
}
