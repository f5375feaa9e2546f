package verdict

import (
	"cmp"
	"math"
	"slices"

	"inquest/catalog"
	"inquest/record"
	"inquest/stats"
)

// shape is the exponent of the density a·p^(a−1) of p-values of a measure that a
// fault does move: with 0.1, half of them are below 0.001, and a p-value near
// one is ten times rarer than without a fault.
const shape = 0.1

// essentialP is the p-value above which essential evidence counts as not there.
const essentialP = 0.05

// strongP is the p-value from which evidence counts as strong.
const strongP = 0.01

// weight is the logarithm of the likelihood ratio of a p-value, for evidence
// that shows with probability seen when the fault is there.
func weight(p, seen float64) float64 {
	return math.Log(seen*shape*math.Pow(math.Max(p, stats.MinP), shape-1) + 1 - seen)
}

// unseenWeight is the logarithm of what a fault loses that must be believed
// without any of its essential evidence, since nothing of those quadrants was
// examined.
const unseenWeight = -math.Ln10

// piece is what was found for one expectation of a fault.
type piece struct {
	expect   *catalog.Expectation
	p        float64
	weight   float64
	examined bool
	findings []int // those that carry it, strongest first
}

// hypothesis is a fault at an entity.
type hypothesis struct {
	entity record.Entity
	fault  *catalog.Fault
	score  float64
	pieces []piece
}

// weigh scores every fault of the catalogue at every entity that can have it and
// for which its essential evidence is there; the best comes first.
func weigh(c *catalog.Catalog, f *facts) []*hypothesis {
	var out []*hypothesis
	for _, e := range f.entities {
		for _, fault := range c.Faults {
			if !slices.Contains(fault.At, e.Kind) {
				continue
			}
			if h := test(f, e, fault); h != nil {
				h.refine(c, f)
				h.score += symptomWeight(f, e)
				out = append(out, h)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b *hypothesis) int {
		return cmp.Or(cmp.Compare(b.score, a.score), a.entity.Compare(b.entity), cmp.Compare(a.fault.ID, b.fault.ID))
	})
	return out
}

func test(f *facts, e record.Entity, fault *catalog.Fault) *hypothesis {
	h := &hypothesis{entity: e, fault: fault}
	any := false
	for i := range fault.Expect {
		x := &fault.Expect[i]
		p := look(f, e, x)
		if x.Essential && (p.examined && p.p > essentialP || !p.examined && f.known(x)) {
			return nil
		}
		if x.Absent {
			p.weight = -math.Max(0, p.weight)
		}
		if !x.Symptom && !x.Absent && p.examined && p.p <= essentialP {
			any = true
		}
		if x.Symptom {
			// That it hurts here fits the cause and does not make it: at most as
			// much as odds of twenty to one.
			p.weight = math.Min(p.weight, confirmMargin)
		}
		h.score += p.weight
		h.pieces = append(h.pieces, p)
	}
	if !any {
		return nil
	}
	if h.unfounded() {
		h.score += unseenWeight
	}
	return h
}

// known reports whether what is expected would have been seen: its quadrant was
// examined, and so was what tells who calls whom where that matters.
func (f *facts) known(x *catalog.Expectation) bool {
	switch x.Where {
	case catalog.WhereIn, catalog.WhereOut, catalog.WhereCallers:
		return f.has[x.Quadrant] && f.has[record.QuadrantTraces]
	}
	return f.has[x.Quadrant]
}

// unfounded reports whether the fault has essential evidence, and nothing of it
// could be looked at: what speaks for a more general fault makes it this one only
// where something else tells the two apart.
func (h *hypothesis) unfounded() bool {
	essential := false
	for i := range h.pieces {
		if p := &h.pieces[i]; p.expect.Essential {
			if p.examined {
				return false
			}
			essential = true
		}
	}
	return essential
}

// adds reports whether h has strong evidence for its mechanism that the more
// general fault g does not have.
func (h *hypothesis) adds(g *hypothesis) bool {
	return slices.ContainsFunc(h.pieces, func(p piece) bool {
		x := p.expect
		return !x.Symptom && !x.Absent && p.weight > 0 && p.p <= strongP && !g.counts(&p)
	})
}

// assumed reports whether some essential evidence could not be looked at: such a
// fault can be suspected only.
func (h *hypothesis) assumed() bool {
	return slices.ContainsFunc(h.pieces, func(p piece) bool { return p.expect.Essential && !p.examined })
}

// refine lets what speaks for the best of the more general faults speak for h as
// well: a leak of GPU memory shows all that an exhausted GPU shows. Evidence that
// both have counts once.
func (h *hypothesis) refine(c *catalog.Catalog, f *facts) {
	var best *hypothesis
	extra := 0.0
	unfounded := h.unfounded()
	for _, id := range h.fault.Refines {
		general, ok := c.Get(id)
		if !ok {
			continue
		}
		g := test(f, h.entity, general)
		if g == nil || unfounded && !h.adds(g) {
			continue
		}
		more := 0.0
		for i := range g.pieces {
			if p := &g.pieces[i]; p.weight > 0 && !h.counts(p) {
				more += p.weight
			}
		}
		if more > extra {
			best, extra = g, more
		}
	}
	if best == nil {
		return
	}
	h.score += extra
	for i := range best.pieces {
		if p := &best.pieces[i]; p.weight > 0 && !h.counts(p) {
			h.pieces = append(h.pieces, *p)
		}
	}
}

// counts reports whether the finding that carries p carries a piece of h already.
func (h *hypothesis) counts(p *piece) bool {
	if len(p.findings) == 0 {
		return true
	}
	for i := range h.pieces {
		if q := &h.pieces[i]; len(q.findings) > 0 && slices.Contains(q.findings, p.findings[0]) {
			return true
		}
	}
	return false
}

// symptomWeight compares the entity with the symptom of the question: a cause is
// where the symptom was felt, or below it. The factor is even odds against one
// in twenty, for symptoms are often reported from the wrong place.
func symptomWeight(f *facts, e record.Entity) float64 {
	felt := f.felt()
	if len(felt) == 0 || slices.ContainsFunc(felt, func(s record.Entity) bool { return f.reaches(s, e) || f.joined(s, e) }) {
		return 0
	}
	return math.Log(0.05)
}

// look finds the evidence for one expectation.
func look(f *facts, e record.Entity, x *catalog.Expectation) piece {
	switch x.Where {
	case catalog.WhereIn, catalog.WhereOut:
		return lookWays(f, e, x)
	case catalog.WhereCallers:
		var all []record.Entity
		for _, c := range f.callers[e] {
			all = append(all, f.self(c)...)
		}
		return lookAt(f, all, x)
	case catalog.WhereHosted:
		var all []record.Entity
		for _, p := range f.hosted[e] {
			all = append(all, p)
			if s := f.serves[p]; !s.IsZero() && !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
		return lookAt(f, all, x)
	case catalog.WhereEachHosted:
		return lookHosted(f, e, x)
	case catalog.WhereHost:
		var hosts []record.Entity
		for _, s := range f.self(e) {
			hosts = append(hosts, f.hosts[s]...)
		}
		return lookAt(f, hosts, x)
	default:
		return lookAt(f, f.self(e), x)
	}
}

// fits reports whether a finding goes in the expected direction and far enough.
func fits(f *record.Finding, x *catalog.Expectation) bool {
	if f.Observed < x.AtLeast {
		return false
	}
	switch d := f.Direction; x.Direction {
	case "":
		return true
	case record.DirectionUp:
		return d == record.DirectionUp || d == record.DirectionAppeared
	default:
		return d == record.DirectionDown || d == record.DirectionVanished
	}
}

// lookAt takes the strongest finding of the entities, corrected for the number
// of measures among which it is the strongest.
func lookAt(f *facts, entities []record.Entity, x *catalog.Expectation) piece {
	out := piece{expect: x, p: 1}
	tried := 0
	best := -1
	for _, e := range entities {
		for _, kind := range x.Kinds {
			idx := f.byKind[factKey{e, kind, x.Quadrant}]
			tried += len(idx)
			for _, i := range idx {
				if !fits(&f.findings[i], x) {
					continue
				}
				if f.findings[i].Strength <= strongP {
					out.findings = append(out.findings, i)
				}
				if best < 0 || f.findings[i].Strength < f.findings[best].Strength {
					best = i
				}
			}
		}
	}
	out.examined = tried > 0
	if !out.examined {
		return out
	}
	if best >= 0 {
		out.p = stats.Any(f.findings[best].Strength, tried)
		if len(out.findings) == 0 && out.p <= essentialP {
			out.findings = []int{best}
		}
	}
	slices.SortStableFunc(out.findings, func(a, b int) int {
		return cmp.Or(cmp.Compare(f.findings[a].Strength, f.findings[b].Strength), cmp.Compare(f.findings[b].Effect, f.findings[a].Effect))
	})
	out.weight = weight(out.p, x.Seen)
	return out
}

// wayShare is the probability that a single way shows a fault of its end, given
// that this direction does at all.
const wayShare = 0.9

// lookWays looks at every way into or out of the entity. Whether a fault there
// affects the direction at all is one question (the expectation's Seen); when it
// does, it shows on nearly all ways, so each that is as usual speaks against it.
// The strongest way counts in full, each further one adds at most what a single
// even bet does: they are not independent.
func lookWays(f *facts, e record.Entity, x *catalog.Expectation) piece {
	out := piece{expect: x, p: 1}
	type way struct {
		peer record.Entity
		p    float64
	}
	var ways []way
	at := map[record.Entity]int{}
	for _, self := range f.self(e) {
		for _, kind := range x.Kinds {
			index := f.byKind
			if x.Where == catalog.WhereOut {
				index = f.ways
			}
			for _, i := range index[factKey{self, kind, x.Quadrant}] {
				v := &f.findings[i]
				if v.Peer == nil {
					continue
				}
				other := *v.Peer
				if x.Where == catalog.WhereOut {
					other = v.Entity
				}
				k, ok := at[other]
				if !ok {
					k = len(ways)
					at[other] = k
					ways = append(ways, way{other, 1})
				}
				if fits(v, x) {
					ways[k].p = math.Min(ways[k].p, v.Strength)
					if v.Strength <= strongP {
						out.findings = append(out.findings, i)
					}
				}
			}
		}
	}
	out.examined = len(ways) > 0
	if !out.examined {
		return out
	}
	slices.SortStableFunc(ways, func(a, b way) int { return cmp.Or(cmp.Compare(a.p, b.p), a.peer.Compare(b.peer)) })
	sum := 0.0
	for i, w := range ways {
		l := weight(stats.Any(w.p, len(ways)), wayShare)
		if i > 0 {
			l = math.Min(l, math.Ln2)
		}
		sum += l
	}
	out.weight = math.Log(x.Seen*math.Exp(sum) + 1 - x.Seen)
	out.p = stats.Any(ways[0].p, len(ways))
	slices.SortStableFunc(out.findings, func(a, b int) int { return cmp.Compare(f.findings[a].Strength, f.findings[b].Strength) })
	return out
}

// lookHosted looks at each service that has a pod on the entity. The first that
// shows the fault counts in full. Each further one is a coincidence for every
// hypothesis about a single service, and counts up to odds of a thousand to one;
// each that is as usual speaks against it.
func lookHosted(f *facts, e record.Entity, x *catalog.Expectation) piece {
	out := piece{expect: x, p: 1}
	var units []record.Entity
	for _, pod := range f.hosted[e] {
		if pod.Kind == record.EntityGPU {
			continue // a part of the host, no service
		}
		unit := pod
		if s := f.serves[pod]; !s.IsZero() {
			unit = s
		}
		if !slices.Contains(units, unit) {
			units = append(units, unit)
		}
	}
	var parts []piece
	for _, u := range units {
		if p := lookAt(f, f.self(u), x); p.examined {
			parts = append(parts, p)
		}
	}
	out.examined = len(parts) > 0
	if !out.examined {
		return out
	}
	slices.SortStableFunc(parts, func(a, b piece) int { return cmp.Compare(a.p, b.p) })
	sum := 0.0
	for i := range parts {
		l := weight(stats.Any(parts[i].p, len(parts)), wayShare)
		if i > 0 {
			l = math.Min(l, coincidence)
		}
		sum += l
		if parts[i].p <= essentialP {
			out.findings = append(out.findings, parts[i].findings...)
		}
	}
	if len(units) > 1 && (len(parts) < 2 || parts[1].p > essentialP) {
		// One service of several is no sign of its host.
		out.findings, out.weight = nil, math.Min(0, math.Log(1-x.Seen))
		return out
	}
	out.p = stats.Any(parts[0].p, len(parts))
	out.weight = math.Log(x.Seen*math.Exp(sum) + 1 - x.Seen)
	return out
}

// coincidence is the logarithm of what one more service of a host may count.
const coincidence = 6.907755278982137

// quadrants returns those with strong evidence for the hypothesis.
func (h *hypothesis) quadrants() []record.Quadrant {
	var out []record.Quadrant
	for _, q := range record.Quadrants {
		for i := range h.pieces {
			if p := &h.pieces[i]; p.expect.Quadrant == q && !p.expect.Absent && p.examined && p.p <= strongP {
				out = append(out, q)
				break
			}
		}
	}
	return out
}
