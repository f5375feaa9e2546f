package verdict

import (
	"slices"

	"inquest/catalog"
	"inquest/record"
	"inquest/stats"
)

// clean corrects the strength of every finding by what the slices of the baseline
// showed of the same measure. A measure that now and then goes as far by itself
// says little when it does again. But slices in which the very entity was at
// fault, in another incident, are not how it is by itself; so each unusual slice
// is judged first, by the same catalogue, and does not count for the entities
// that were its causes.
func (f *facts) clean(c *catalog.Catalog) {
	causes := [2]map[int][]record.Entity{f.causes(c, false), f.causes(c, true)}
	for i := range f.findings {
		x, h := &f.findings[i], &f.past[i]
		if x.Strength > essentialP {
			continue
		}
		cause := causes[0]
		if h.series {
			cause = causes[1]
		}
		var kept []float64
		for _, p := range h.past {
			if slices.ContainsFunc(cause[p.Slice], func(e record.Entity) bool { return f.concerns(x, e) }) {
				continue
			}
			kept = append(kept, p.Distance)
		}
		x.Strength = stats.Recalibrate(x.Strength, h.distance, kept)
	}
}

// concerns reports whether a finding is about an entity, at either end.
func (f *facts) concerns(x *record.Finding, e record.Entity) bool {
	self := f.self(e)
	return slices.Contains(self, x.Entity) || x.Peer != nil && slices.Contains(self, *x.Peer)
}

// unusual is the p-value below which a slice of the baseline is judged: one that
// no slice of some hundred, with thousands of measures each, has by chance.
const unusual = 1e-6

// causes judges the unusual slices of the baseline and returns the causes of each
// that has clear ones.
func (f *facts) causes(c *catalog.Catalog, series bool) map[int][]record.Entity {
	odd := map[int]bool{}
	for i := range f.past {
		if f.past[i].series != series {
			continue
		}
		for _, p := range f.past[i].past {
			if p.P <= unusual {
				odd[p.Slice] = true
			}
		}
	}
	bar := believeBar(len(f.entities) * len(c.Faults))
	out := map[int][]record.Entity{}
	for slice := range odd {
		g := f.at(slice, series)
		ranked := distinct(weigh(c, g))
		// Two faults may meet in one slice: a second one whose evidence is half as
		// strong counts too.
		for _, h := range ranked {
			if h.score > bar && h.score >= ranked[0].score/2 {
				out[slice] = append(out[slice], h.entity)
			}
		}
	}
	return out
}

// at returns the facts as a slice of the baseline shows them.
func (f *facts) at(slice int, series bool) *facts {
	g := *f
	g.question = Question{}
	g.findings = slices.Clone(f.findings)
	for i := range g.findings {
		x := &g.findings[i]
		x.Strength = 1
		if f.past[i].series != series {
			continue
		}
		for _, p := range f.past[i].past {
			if p.Slice == slice {
				x.Strength, x.Observed, x.Direction = p.P, p.Observed, record.DirectionUp
				if p.Distance < 0 {
					x.Direction = record.DirectionDown
				}
			}
		}
	}
	return &g
}
