package stats

import (
	"math"

	"gonum.org/v1/gonum/mathext"
	"gonum.org/v1/gonum/stat/distuv"
)

// MinP is the smallest p-value that is reported: below it differences mean
// nothing, for no model of the baseline is right that far out.
const MinP = 1e-12

// Empirical returns the two-sided empirical p-value of v: the share of the
// baseline that lies at least as far from its median, with v itself counted, so
// it is never below 1/(n+1). An empty baseline gives 1.
func Empirical(baseline []float64, v float64) float64 {
	s := sorted(baseline)
	m := quantileSorted(s, 0.5)
	far := 0
	for _, b := range s {
		if math.Abs(b-m) >= math.Abs(v-m) {
			far++
		}
	}
	return float64(far+1) / float64(len(s)+1)
}

// A value further than cleanScales from the median counts as not of the baseline:
// under the heavy-tailed distribution that [Shift] assumes, less than one value
// in a hundred of the baseline's own lies there. At most cleanShare is removed:
// what happens in a quarter of the time is ordinary, and beyond it quartiles
// break down.
const (
	cleanScales = 5
	cleanShare  = 0.25
)

// Shift returns how surprising v is against the baseline, and its distance from
// the baseline's median in robust standard deviations (signed).
//
// The baseline is cleaned first (see [Clean]): values of other incidents are not
// how it is by itself. Inside its range the p-value is the empirical one. Beyond it
// the sample says only "at most 1/(n+1)", and the tail of a Student distribution
// with n−1 degrees of freedom, at most 4, goes on from there: its power-law tail
// does not take a heavy-tailed latency for a miracle. floor is the smallest
// difference that can be told at all (resolution, error of v itself); it is
// added to the spread.
func Shift(baseline []float64, v, floor float64) (p, z float64) {
	return shift(Clean(baseline, cleanScales, cleanShare), v, floor)
}

// ShiftTail is [Shift] for a measure of the tail, such as a high quantile or a
// maximum. Rare extremes are part of how a tail is, so the baseline is not
// cleaned of them.
func ShiftTail(baseline []float64, v, floor float64) (p, z float64) {
	return shift(sorted(baseline), v, floor)
}

func shift(baseline []float64, v, floor float64) (p, z float64) {
	s := Summarize(baseline)
	if s.N < 2 || math.IsNaN(v) {
		return 1, 0
	}
	scale := math.Hypot(s.Scale, floor)
	if scale == 0 {
		// A constant baseline: any difference is one of kind. The range rule of
		// three bounds how often it can have happened unseen.
		if v == s.Median {
			return 1, 0
		}
		return 1 / float64(s.N+1), math.Copysign(math.Sqrt(float64(s.N)), v-s.Median)
	}
	z = (v - s.Median) / scale
	tail := StudentP(z, s.N-1)
	if e := Empirical(baseline, v); v >= s.Min-floor && v <= s.Max+floor {
		p = math.Max(e, tail)
	} else {
		p = math.Min(tail, 1)
	}
	return clampP(p), z
}

// StudentP returns the two-sided tail beyond z of a Student distribution with
// dof degrees of freedom, at most 4 (see [Shift]).
func StudentP(z float64, dof int) float64 {
	nu := math.Min(math.Max(float64(dof), 1), 4)
	return clampP(2 * distuv.StudentsT{Mu: 0, Sigma: 1, Nu: nu}.CDF(-math.Abs(z)))
}

// Recalibrate corrects a p-value by how far the values of the baseline itself
// lie from its centre: when some lie as far as the distance in question, it is
// at least their share; beyond the furthest, the tail is taken to fall with the
// fourth power, as that of [StudentP] does.
func Recalibrate(p, distance float64, past []float64) float64 {
	n, far, furthest := float64(len(past)), 0.0, 0.0
	distance = math.Abs(distance)
	for _, d := range past {
		d = math.Abs(d)
		furthest = math.Max(furthest, d)
		if d >= distance {
			far++
		}
	}
	switch {
	case n == 0 || distance == 0:
		return p
	case far > 0:
		return math.Max(p, (1+far)/(n+1))
	default:
		return math.Max(p, clampP(math.Pow(furthest/distance, 4)/(n+1)))
	}
}

func clampP(p float64) float64 { return math.Min(1, math.Max(MinP, p)) }

// Share is k hits in n trials.
type Share struct{ K, N float64 }

// Rate returns K/N, NaN without trials.
func (s Share) Rate() float64 {
	if s.N <= 0 {
		return math.NaN()
	}
	return s.K / s.N
}

// BetaPrior describes how the rate of hits varies from slice to slice of a
// baseline: Beta(A, B).
type BetaPrior struct{ A, B float64 }

// Mean returns the mean rate.
func (b BetaPrior) Mean() float64 { return b.A / (b.A + b.B) }

// FitShares fits the variation of a rate over the slices of a baseline. The
// centre is the weighted median of the slices' rates, so that a minority of
// slices with another fault cannot move it; the concentration comes from the
// robust spread of the rates beyond what binomial sampling explains. A Jeffreys
// half is added on both sides: a rate never seen is not a rate of nought.
func FitShares(slices []Share) BetaPrior {
	var rates, weights []float64
	total := 0.0
	for _, s := range slices {
		if s.N > 0 {
			rates = append(rates, s.K/s.N)
			weights = append(weights, s.N)
			total += s.N
		}
	}
	if total == 0 {
		return BetaPrior{A: 0.5, B: 0.5}
	}
	m := weightedQuantile(rates, weights, 0.5)
	spread := (weightedQuantile(rates, weights, 0.75) - weightedQuantile(rates, weights, 0.25)) / normalIQR
	concentration := total
	if v := m * (1 - m); spread > 0 && v > 0 {
		sampling := v * float64(len(rates)) / total // of a slice of mean size
		between := spread*spread - sampling
		if between > 0 {
			concentration = math.Min(total, math.Max(1, v/between-1))
		}
	}
	return BetaPrior{A: m*concentration + 0.5, B: (1-m)*concentration + 0.5}
}

// Tail returns the two-sided p-value of k hits in n trials under the
// beta-binomial predictive distribution of the prior: twice the smaller tail, at
// most 1. up tells whether k is above expectation.
func (b BetaPrior) Tail(k, n float64) (p float64, up bool) {
	if n <= 0 {
		return 1, false
	}
	if k > n/2 { // by the misses: there are fewer to sum over
		p, _ := BetaPrior{A: b.B, B: b.A}.Tail(math.Max(0, n-k), n)
		return p, k/n > b.Mean()
	}
	lower := 0.0 // P(K ≤ k)
	equal := 0.0
	ki := int(math.Round(k))
	for i := 0; i <= ki; i++ {
		equal = math.Exp(b.logPMF(float64(i), n))
		lower += equal
	}
	upper := 1 - lower + equal
	if upper < 1e-9 {
		// Cancellation: sum the upper tail itself.
		upper = 0
		for i := ki; i <= int(n); i++ {
			upper += math.Exp(b.logPMF(float64(i), n))
		}
	}
	return clampP(2 * math.Min(lower, upper)), k/n > b.Mean()
}

func (b BetaPrior) logPMF(k, n float64) float64 {
	if k < 0 || k > n {
		return math.Inf(-1)
	}
	c := lgamma(n+1) - lgamma(k+1) - lgamma(n-k+1)
	return c + mathext.Lbeta(k+b.A, n-k+b.B) - mathext.Lbeta(b.A, b.B)
}

func lgamma(x float64) float64 {
	v, _ := math.Lgamma(x)
	return v
}

func weightedQuantile(x, w []float64, p float64) float64 {
	idx := order(x)
	total := 0.0
	for _, v := range w {
		total += v
	}
	sum := 0.0
	for _, i := range idx {
		sum += w[i]
		if sum >= p*total {
			return x[i]
		}
	}
	return math.NaN()
}

// Any returns the p-value of the smallest of m p-values (Šidák): how often m
// looks at a baseline would show at least one as small as p.
func Any(p float64, m int) float64 {
	if m <= 1 {
		return clampP(p)
	}
	return clampP(-math.Expm1(float64(m) * math.Log1p(-math.Min(p, 1-1e-15))))
}

// MedianRate returns the median of the slices' rates, each weighted by its
// trials; NaN without trials.
func MedianRate(slices []Share) float64 {
	var rates, weights []float64
	for _, s := range slices {
		if s.N > 0 {
			rates = append(rates, s.K/s.N)
			weights = append(weights, s.N)
		}
	}
	if len(rates) == 0 {
		return math.NaN()
	}
	return weightedQuantile(rates, weights, 0.5)
}
