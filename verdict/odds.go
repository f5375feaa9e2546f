package verdict

import (
	"math"

	"inquest/catalog"
	"inquest/stats"
)

// Strengths (p-values) by which evidence is judged.
const (
	// EssentialStrength is the p-value above which essential evidence counts as not
	// there.
	EssentialStrength = essentialP
	// StrongStrength is the p-value from which evidence counts as strong.
	StrongStrength = strongP
	// TypicalStrength is a p-value such as a clear change has.
	TypicalStrength = 1e-3
	// UsualStrength is the p-value of a measure that is as usual.
	UsualStrength = 1
)

// Odds returns the factor by which the odds of a fault change when what it expects
// was examined and shows with the p-value p, as the engine weighs it. On ways, p is
// of each of as many as units says; for [catalog.WhereEachHosted], of as many services
// of the host. For all other places units does not matter. Evidence that was not
// examined has the factor 1; see [UnseenOdds] for what is essential.
func Odds(x *catalog.Expectation, p float64, units int) float64 {
	w := 0.0
	switch x.Where {
	case catalog.WhereIn, catalog.WhereOut:
		w = together(x.Seen, p, units, math.Ln2)
	case catalog.WhereEachHosted:
		w = together(x.Seen, p, units, coincidence)
		if units > 1 && p > essentialP {
			w = math.Min(0, math.Log(1-x.Seen))
		}
	default:
		w = weight(p, x.Seen)
	}
	return math.Exp(capped(x, w))
}

// UnseenOdds is the factor for essential evidence where nothing of its quadrant was
// examined.
func UnseenOdds() float64 { return math.Exp(unseenWeight) }

// together is the weight of several units that show the same, of which each further
// one counts at most most.
func together(seen, p float64, units int, most float64) float64 {
	l := weight(stats.Any(p, units), wayShare)
	sum := l + float64(max(units, 1)-1)*math.Min(l, most)
	return math.Log(seen*math.Exp(sum) + 1 - seen)
}

// capped bounds a weight as the engine does for what must be absent, and for symptoms.
func capped(x *catalog.Expectation, w float64) float64 {
	switch {
	case x.Absent:
		return -math.Max(0, w)
	case x.Symptom:
		return math.Min(w, confirmMargin)
	}
	return w
}
