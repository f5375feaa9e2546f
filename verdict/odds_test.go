package verdict

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"inquest/catalog"
	"inquest/record"
	"inquest/sensor"
)

// TestOddsAreTheEngines lets the engine weigh one expectation of a fault on findings
// of a given strength, and compares.
func TestOddsAreTheEngines(t *testing.T) {
	self := sensor.Service("s")
	f := func(x catalog.Expectation, p float64, units int) {
		t.Helper()
		x.Quadrant, x.Kinds, x.Text = record.QuadrantTraces, []string{"gap"}, "t"
		facts := &facts{
			byKind: map[factKey][]int{}, ways: map[factKey][]int{}, has: map[record.Quadrant]bool{record.QuadrantTraces: true},
			serves: map[record.Entity]record.Entity{}, parts: map[record.Entity][]record.Entity{},
			hosts: map[record.Entity][]record.Entity{}, hosted: map[record.Entity][]record.Entity{},
		}
		for i := range units {
			v := record.Finding{Quadrant: x.Quadrant, Kind: "gap", Entity: self, Strength: p, Direction: record.DirectionUp}
			other := sensor.Service(fmt.Sprint("other", i))
			switch x.Where {
			case catalog.WhereIn:
				v.Peer = &other
			case catalog.WhereOut:
				v.Entity, v.Peer = other, &self
				facts.ways[factKey{self, "gap", x.Quadrant}] = append(facts.ways[factKey{self, "gap", x.Quadrant}], i)
			case catalog.WhereEachHosted:
				v.Entity = other
				facts.hosted[self] = append(facts.hosted[self], other)
			}
			facts.findings = append(facts.findings, v)
			k := factKey{v.Entity, "gap", x.Quadrant}
			facts.byKind[k] = append(facts.byKind[k], i)
		}
		// A second expectation, which is always there, keeps the fault from being left out.
		facts.byKind[factKey{self, "self_time", x.Quadrant}] = []int{len(facts.findings)}
		facts.findings = append(facts.findings, record.Finding{Quadrant: x.Quadrant, Kind: "self_time", Entity: self, Strength: 1e-6, Direction: record.DirectionUp})
		fault := &catalog.Fault{ID: "f", Expect: []catalog.Expectation{x, {Quadrant: x.Quadrant, Kinds: []string{"self_time"}, Where: catalog.WhereSelf, Seen: 0.5}}}
		h := test(facts, self, fault)
		if h == nil {
			t.Fatalf("%+v is not weighed", x)
		}
		got, want := math.Log(Odds(&x, p, units)), h.pieces[0].weight
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("%s seen %g absent %v symptom %v with %d of p %g: log odds %g, the engine's %g", x.Where, x.Seen, x.Absent, x.Symptom, units, p, got, want)
		}
	}
	for _, where := range catalog.Places {
		if slices.Contains([]catalog.Where{catalog.WhereCallers, catalog.WhereHosted, catalog.WhereHost}, where) {
			continue // as self
		}
		for _, p := range []float64{1e-12, 1e-6, TypicalStrength, StrongStrength, 0.3, UsualStrength} {
			for _, seen := range []float64{0.05, 0.5, 0.95} {
				most := 3
				if where == catalog.WhereSelf {
					most = 1
				}
				for units := 1; units <= most; units++ {
					f(catalog.Expectation{Where: where, Seen: seen}, p, units)
					f(catalog.Expectation{Where: where, Seen: seen, Absent: true}, p, units)
					f(catalog.Expectation{Where: where, Seen: seen, Symptom: true}, p, units)
				}
			}
		}
	}
}
