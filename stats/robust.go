// Package stats holds the robust statistics by which evidence is measured:
// location and spread that a minority of bad values cannot move, p-values that
// say how often the baseline shows as much, and change-points. All functions
// are deterministic and leave their arguments as they are.
package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// normalIQR is the interquartile range of the standard normal distribution, and
// normalMAD its median absolute deviation: dividing by them makes both
// comparable with a standard deviation.
const (
	normalIQR = 1.3489795003921634
	normalMAD = 0.6744897501960817
)

// sorted returns a sorted copy without NaN and infinities.
func sorted(x []float64) []float64 {
	s := make([]float64, 0, len(x))
	for _, v := range x {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			s = append(s, v)
		}
	}
	slices.Sort(s)
	return s
}

// Quantile returns the p-quantile of x, 0 ≤ p ≤ 1, interpolated between order
// statistics; NaN when x has no finite value.
func Quantile(x []float64, p float64) float64 { return quantileSorted(sorted(x), p) }

func quantileSorted(s []float64, p float64) float64 {
	switch len(s) {
	case 0:
		return math.NaN()
	case 1:
		return s[0]
	}
	// Type 7: the definition most people expect, exact at the ends.
	h := p * float64(len(s)-1)
	i := int(math.Floor(h))
	if i >= len(s)-1 {
		return s[len(s)-1]
	}
	return s[i] + (h-float64(i))*(s[i+1]-s[i])
}

// Median returns the middle value of x, NaN when there is none.
func Median(x []float64) float64 { return Quantile(x, 0.5) }

// IQR returns the distance between the quartiles of x.
func IQR(x []float64) float64 {
	s := sorted(x)
	return quantileSorted(s, 0.75) - quantileSorted(s, 0.25)
}

// MAD returns the median distance of x from its median.
func MAD(x []float64) float64 {
	m := Median(x)
	d := make([]float64, len(x))
	for i, v := range x {
		d[i] = math.Abs(v - m)
	}
	return Median(d)
}

// Summary is a robust description of a sample.
type Summary struct {
	N      int
	Median float64
	// Scale estimates the standard deviation of the undisturbed part: the larger
	// of the estimates by interquartile range and by median deviation.
	Scale    float64
	Min, Max float64
}

// Summarize describes x. An empty sample has N = 0 and NaN values.
func Summarize(x []float64) Summary {
	s := sorted(x)
	if len(s) == 0 {
		nan := math.NaN()
		return Summary{Median: nan, Scale: nan, Min: nan, Max: nan}
	}
	iqr := quantileSorted(s, 0.75) - quantileSorted(s, 0.25)
	return Summary{
		N:      len(s),
		Median: quantileSorted(s, 0.5),
		Scale:  math.Max(iqr/normalIQR, MAD(s)/normalMAD),
		Min:    s[0],
		Max:    s[len(s)-1],
	}
}

// MedianError returns the standard error of the median of n values with the
// given scale, as for a normal sample (asymptotically sqrt(pi/2)·scale/sqrt(n)).
func MedianError(scale float64, n int) float64 {
	if n < 1 {
		return math.NaN()
	}
	return scale * math.Sqrt(math.Pi/2/float64(n))
}

// Clean returns the values of x that lie within k scales of its median. It
// repeats until nothing more falls out, and never removes more than maxShare of
// x, so that a mixture of two ordinary states is kept as it is.
func Clean(x []float64, k, maxShare float64) []float64 {
	kept := sorted(x)
	least := len(kept) - int(maxShare*float64(len(kept)))
	for {
		s := Summarize(kept)
		if s.N < 3 || s.Scale == 0 {
			return kept
		}
		next := make([]float64, 0, len(kept))
		for _, v := range kept {
			if math.Abs(v-s.Median) <= k*s.Scale {
				next = append(next, v)
			}
		}
		if len(next) < least || len(next) == len(kept) {
			return kept
		}
		kept = next
	}
}

// Correlation returns Pearson's correlation of x and y, 0 when either is constant.
func Correlation(x, y []float64) float64 {
	if len(x) != len(y) || len(x) < 2 {
		return 0
	}
	c := stat.Correlation(x, y, nil)
	if math.IsNaN(c) {
		return 0
	}
	return c
}
