// Package explain says in words what the engine looks for when it looks for a fault.
package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"inquest/catalog"
	"inquest/record"
	"inquest/sensor/kinds"
	"inquest/verdict"
)

// Explanation is what the engine looks for.
type Explanation struct {
	Fault *catalog.Fault `json:"fault"`
	// Essential must be there, For speaks for the fault, Against must not be there.
	Essential []Evidence `json:"essential"`
	For       []Evidence `json:"for"`
	Against   []Evidence `json:"against"`
	// RefinedBy are the faults that are kinds of this one.
	RefinedBy []string `json:"refined_by"`
	// Rivals are faults with much of the same evidence, the nearest first.
	Rivals []Rival `json:"rivals"`
	// Needs says what must be recorded, by quadrant.
	Needs []Need `json:"needs"`
}

// Evidence is one expectation and what it weighs.
type Evidence struct {
	catalog.Expectation
	// Shown is the factor by which the odds change when it shows with
	// [verdict.TypicalStrength]; of ways, on one of one, of each hosted service, on
	// two of two. Strongly is the same for the smallest p-value, Missing for evidence
	// that was examined and is as usual.
	Shown    float64 `json:"shown"`
	Strongly float64 `json:"strongly"`
	Missing  float64 `json:"missing"`
}

// Rival is a fault that is told apart by evidence.
type Rival struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	// Relation is refines, refined by, or empty.
	Relation string `json:"relation,omitempty"`
	// Ours speaks for this fault and not for the other, Theirs the other way round.
	Ours   []string `json:"ours"`
	Theirs []string `json:"theirs"`
}

// Need is what must be recorded for the evidence of a quadrant.
type Need struct {
	Quadrant record.Quadrant `json:"quadrant"`
	Kind     string          `json:"kind"`
	// Essential is whether essential evidence rests on it.
	Essential bool   `json:"essential,omitempty"`
	Text      string `json:"text"`
}

// Fault explains a fault of a catalogue. The error names ids that may have been meant.
func Fault(c *catalog.Catalog, id string) (*Explanation, error) {
	f, err := c.Find(id)
	if err != nil {
		return nil, err
	}
	out := &Explanation{Fault: f, Essential: []Evidence{}, For: []Evidence{}, Against: []Evidence{}, RefinedBy: []string{}, Rivals: []Rival{}}
	for i := range f.Expect {
		e := weighed(&f.Expect[i])
		switch {
		case e.Essential:
			out.Essential = append(out.Essential, e)
		case e.Absent:
			out.Against = append(out.Against, e)
		default:
			out.For = append(out.For, e)
		}
	}
	slices.SortStableFunc(out.For, func(a, b Evidence) int { return cmp.Compare(b.Shown, a.Shown) })
	slices.SortStableFunc(out.Against, func(a, b Evidence) int { return cmp.Compare(a.Shown, b.Shown) })
	for _, g := range c.Faults {
		if slices.Contains(g.Refines, f.ID) {
			out.RefinedBy = append(out.RefinedBy, g.ID)
		}
	}
	out.Rivals = rivals(c, f)
	out.Needs = needs(f)
	return out, nil
}

func weighed(x *catalog.Expectation) Evidence {
	units := 1
	if x.Where == catalog.WhereEachHosted {
		units = 2
	}
	return Evidence{
		Expectation: *x,
		Shown:       verdict.Odds(x, verdict.TypicalStrength, units),
		Strongly:    verdict.Odds(x, 0, units),
		Missing:     verdict.Odds(x, verdict.UsualStrength, units),
	}
}

// mostRivals bounds the faults that are told apart, mostTold the evidence of each side.
const (
	mostRivals = 6
	mostTold   = 4
)

// rivals are the faults that f refines or that refine it, and those that share
// essential evidence with it.
func rivals(c *catalog.Catalog, f *catalog.Fault) []Rival {
	type scored struct {
		fault    *catalog.Fault
		relation string
		shared   int
	}
	var all []scored
	for _, g := range c.Faults {
		s := scored{fault: g, shared: shared(f, g)}
		switch {
		case g == f:
			continue
		case slices.Contains(f.Refines, g.ID):
			s.relation = "refines"
			s.shared += 1000
		case slices.Contains(g.Refines, f.ID):
			s.relation = "refined by"
			s.shared += 1000
		case s.shared == 0 || !slices.ContainsFunc(g.At, func(k record.EntityKind) bool { return slices.Contains(f.At, k) }):
			continue
		}
		all = append(all, s)
	}
	slices.SortStableFunc(all, func(a, b scored) int { return cmp.Or(b.shared-a.shared, strings.Compare(a.fault.ID, b.fault.ID)) })
	out := []Rival{}
	for i, s := range all {
		if i >= mostRivals && s.relation == "" {
			break
		}
		out = append(out, Rival{ID: s.fault.ID, Title: s.fault.Title, Relation: s.relation, Ours: apart(f, s.fault), Theirs: apart(s.fault, f)})
	}
	return out
}

// shared counts the essential evidence that both have.
func shared(f, g *catalog.Fault) int {
	n := 0
	for i := range f.Expect {
		for k := range g.Expect {
			if a, b := &f.Expect[i], &g.Expect[k]; a.Essential && b.Essential && overlap(a, b) {
				n++
			}
		}
	}
	return n
}

// overlap reports whether one finding could be evidence for both.
func overlap(a, b *catalog.Expectation) bool {
	return a.Quadrant == b.Quadrant && a.Where == b.Where &&
		(a.Direction == b.Direction || a.Direction == "" || b.Direction == "") &&
		slices.ContainsFunc(a.Kinds, func(k string) bool { return slices.Contains(b.Kinds, k) })
}

// apart lists the evidence for f that does not speak for g, what speaks against g first.
func apart(f, g *catalog.Fault) []string {
	type told struct {
		text   string
		factor float64
	}
	var list []told
	for i := range f.Expect {
		x := &f.Expect[i]
		if x.Absent || x.Symptom {
			continue
		}
		common, against := false, false
		for k := range g.Expect {
			if y := &g.Expect[k]; overlap(x, y) {
				common, against = common || !y.Absent, against || y.Absent
			}
		}
		factor := weighed(x).Shown
		switch {
		case against:
			list = append(list, told{x.Text + ", which speaks against " + g.ID, factor * 1e6})
		case !common:
			text := x.Text
			if x.Essential {
				text, factor = text+" (essential)", factor*1e3
			}
			list = append(list, told{text, factor})
		}
	}
	slices.SortStableFunc(list, func(a, b told) int { return cmp.Compare(b.factor, a.factor) })
	out := []string{}
	for _, t := range list[:min(mostTold, len(list))] {
		out = append(out, t.text)
	}
	return out
}

// needs lists the kinds of the fault's evidence with what must be recorded, the
// essential ones of each quadrant first.
func needs(f *catalog.Fault) []Need {
	var out []Need
	for _, q := range record.Quadrants {
		for _, essential := range []bool{true, false} {
			for i := range f.Expect {
				x := &f.Expect[i]
				if x.Quadrant != q || x.Essential != essential || x.Absent {
					continue
				}
				for _, name := range x.Kinds {
					k, ok := kinds.Get(name, q)
					if ok && !slices.ContainsFunc(out, func(n Need) bool { return n.Quadrant == q && n.Kind == name }) {
						out = append(out, Need{q, name, essential, k.Needs})
					}
				}
			}
		}
	}
	return out
}

// Factor writes a factor of odds as people read it.
func Factor(v float64) string {
	switch {
	case v >= 9.95:
		return fmt.Sprintf("%.0f times", v)
	case v > 1.005:
		return fmt.Sprintf("%.1f times", v)
	case v > 0.995:
		return "nothing"
	case v >= 0.1:
		return fmt.Sprintf("a factor of %.2f", v)
	}
	return fmt.Sprintf("a factor of 1/%.0f", 1/v)
}
