package stats

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// Count is k events in a time of T.
type Count struct{ K, T float64 }

// GammaPrior describes how the rate of events varies from slice to slice of a
// baseline: Gamma with shape A and rate B (in units of time).
type GammaPrior struct{ A, B float64 }

// Mean returns the mean rate.
func (g GammaPrior) Mean() float64 { return g.A / g.B }

// FitCounts fits the variation of a rate of events over the slices of a
// baseline, in the way of [FitShares]: centre by the weighted median, spread by
// what the quartiles show beyond Poisson sampling, at least material times the
// rate. Half an event is added: what was never seen may still happen.
func FitCounts(slices []Count, material float64) GammaPrior {
	var rates, weights []float64
	total := 0.0
	for _, s := range slices {
		if s.T > 0 {
			rates = append(rates, s.K/s.T)
			weights = append(weights, s.T)
			total += s.T
		}
	}
	if total == 0 {
		return GammaPrior{A: 0.5, B: 1}
	}
	m := weightedQuantile(rates, weights, 0.5)
	if m == 0 {
		return GammaPrior{A: 0.5, B: total}
	}
	spread := (weightedQuantile(rates, weights, 0.75) - weightedQuantile(rates, weights, 0.25)) / normalIQR
	sampling := m * float64(len(rates)) / total
	between := math.Max(spread*spread-sampling, material*material*m*m)
	shape := m * total
	if between > 0 {
		shape = math.Min(shape, m*m/between)
	}
	return GammaPrior{A: shape + 0.5, B: (shape + 0.5) / m}
}

// Tail returns the two-sided p-value of k events in time t under the predictive
// (negative binomial) distribution: twice the smaller tail, at most 1. up tells
// whether k is above expectation.
func (g GammaPrior) Tail(k, t float64) (p float64, up bool) {
	if t <= 0 || g.B <= 0 {
		return 1, false
	}
	k = math.Round(k)
	x := g.B / (g.B + t)
	lower := mathext.RegIncBeta(g.A, k+1, x)
	upper := 1.0
	if k > 0 {
		upper = mathext.RegIncBeta(k, g.A, 1-x)
	}
	return clampP(2 * math.Min(lower, upper)), k/t > g.Mean()
}
