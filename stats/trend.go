package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"
	"gonum.org/v1/gonum/stat/distuv"
)

// Line is a straight line, a + b·t.
type Line struct{ Intercept, Slope float64 }

// At returns the line's value at t.
func (l Line) At(t float64) float64 { return l.Intercept + l.Slope*t }

// TheilSen returns the line through the points (t, x) whose slope is the median of
// the slopes between all pairs, and whose intercept is the median of what is left:
// up to 29 % of bad points cannot move it. It takes time and room of n²/2.
func TheilSen(t, x []float64) Line {
	slopes := make([]float64, 0, len(x)*(len(x)-1)/2)
	for i := range x {
		for j := range i {
			if t[i] != t[j] {
				slopes = append(slopes, (x[i]-x[j])/(t[i]-t[j]))
			}
		}
	}
	if len(slopes) == 0 {
		return Line{Intercept: Median(x)}
	}
	l := Line{Slope: Median(slopes)}
	rest := make([]float64, len(x))
	for i := range x {
		rest[i] = x[i] - l.Slope*t[i]
	}
	l.Intercept = Median(rest)
	return l
}

// MannKendall tests whether x rises or falls steadily: p is two-sided, tau
// between −1 and 1 the share of pairs that rise less that of pairs that fall. The
// variance is corrected for ties and for autocorrelation (Hamed and Rao 1998), so
// that a slow wave or a random walk is seldom taken for one. Fewer than 5 values give p = 1.
func MannKendall(x []float64) (p, tau float64) {
	n := len(x)
	if n < 5 {
		return 1, 0
	}
	s := 0
	for i := range x {
		for j := range i {
			switch {
			case x[i] > x[j]:
				s++
			case x[i] < x[j]:
				s--
			}
		}
	}
	f := float64(n)
	variance := f * (f - 1) * (2*f + 5)
	values := slices.Clone(x)
	slices.Sort(values)
	for i := 0; i < n; {
		j := i
		for j < n && values[j] == values[i] {
			j++
		}
		ties := float64(j - i)
		variance -= ties * (ties - 1) * (2*ties + 5)
		i = j
	}
	variance /= 18
	if variance <= 0 {
		return 1, 0
	}
	tau = float64(s) / (f * (f - 1) / 2)
	tail := func(variance float64) float64 {
		z := (math.Abs(float64(s)) - 1) / math.Sqrt(variance)
		return clampP(2 * distuv.UnitNormal.CDF(-math.Max(0, z)))
	}
	if p = tail(variance); p > 0.1 { // the correction takes longer, and only weakens
		return p, tau
	}
	return tail(variance * inflation(x)), tau
}

// inflation is by how much autocorrelation widens the variance of Mann and
// Kendall's statistic: from the ranks of what a straight line leaves, at the lags
// at which it is significant.
func inflation(x []float64) float64 {
	n := len(x)
	t := make([]float64, n)
	for i := range t {
		t[i] = float64(i)
	}
	l := TheilSen(t, x)
	rest := make([]float64, n)
	for i := range x {
		rest[i] = x[i] - l.At(t[i])
	}
	r := ranks(rest)
	mean, total := float64(n-1)/2, 0.0
	for i := range r {
		r[i] -= mean
		total += r[i] * r[i]
	}
	if total == 0 {
		return 1
	}
	f, sum := float64(n), 0.0
	for k := 1; k < n/3; k++ {
		c := 0.0
		for i := k; i < n; i++ {
			c += r[i] * r[i-k]
		}
		if c /= total; math.Abs(c) > 1.96/math.Sqrt(f) {
			d := float64(n - k)
			sum += d * (d - 1) * (d - 2) * c
		}
	}
	return math.Max(1, 1+2*sum/(f*(f-1)*(f-2)))
}

// ranks returns the ranks of x from 0, those of ties shared.
func ranks(x []float64) []float64 {
	idx := order(x)
	out := make([]float64, len(x))
	for i := 0; i < len(idx); {
		j := i
		for j < len(idx) && x[idx[j]] == x[idx[i]] {
			j++
		}
		for k := i; k < j; k++ {
			out[idx[k]] = float64(i+j-1) / 2
		}
		i = j
	}
	return out
}

// Steadier reports whether the line tells x better than one change of level does.
func Steadier(t, x []float64, l Line) bool {
	line := 0.0
	for i := range x {
		line += math.Abs(x[i] - l.At(t[i]))
	}
	c, ok := ChangePoint(x, 2)
	if !ok {
		return line < absoluteCost(x)
	}
	return line < absoluteCost(x[:c.Index])+absoluteCost(x[c.Index:])
}

// Wave is a periodic part of an evenly sampled series.
type Wave struct {
	// Period is in samples, Share the share of the variance about a straight line
	// that the wave and its first overtone carry.
	Period, Share float64
	// P is how often white noise shows as large a share at any of the periods.
	P float64
}

// Periodic finds the period that carries most of the variance of x, among those
// of at least minSamples samples of which x holds at least minPeriods. It returns
// false when x is constant or too short.
func Periodic(x []float64, minSamples, minPeriods float64) (Wave, bool) {
	n := len(x)
	f := float64(n)
	if f < minSamples*minPeriods {
		return Wave{}, false
	}
	y, total := detrended(x)
	if total <= 0 {
		return Wave{}, false
	}
	const oversampling = 2
	lo, hi := int(math.Ceil(oversampling*minPeriods)), int(oversampling*f/minSamples)
	power := make([]float64, 2*hi+1) // the overtones too
	for k := lo; k <= 2*hi && 2*k <= oversampling*n; k++ {
		power[k] = powerAt(y, float64(k)/(oversampling*f)) / total
	}
	best := Wave{}
	for k := lo; k <= hi; k++ {
		if share := math.Min(1, power[k]+power[2*k]); share > best.Share {
			best = Wave{Period: oversampling * f / float64(k), Share: share}
		}
	}
	if best.Share == 0 {
		return Wave{}, false
	}
	// The share has a beta distribution with two degrees of freedom for each of the
	// two waves; neighbours on the grid are not independent.
	best.P = Any(1-mathext.RegIncBeta(2, (f-6)/2, math.Min(best.Share, 1-1e-12)), (hi-lo)/oversampling+1)
	return best, true
}

// detrended returns x less its straight line by least squares, and the sum of
// squares of that.
func detrended(x []float64) (y []float64, total float64) {
	n := float64(len(x))
	mid, mean, cov := (n-1)/2, 0.0, 0.0
	for _, v := range x {
		mean += v / n
	}
	for i, v := range x {
		cov += (float64(i) - mid) * (v - mean)
	}
	slope := cov / (n * (n*n - 1) / 12)
	y = make([]float64, len(x))
	size := 0.0
	for i, v := range x {
		y[i] = v - mean - slope*(float64(i)-mid)
		total += y[i] * y[i]
		size += v * v
	}
	if total <= 1e-18*size { // what rounding leaves
		return y, 0
	}
	return y, total
}

// powerAt is the sum of squares that a wave of the frequency, in cycles per
// sample, takes from y.
func powerAt(y []float64, frequency float64) float64 {
	step := 2 * math.Pi * frequency
	c, s := 1.0, 0.0
	dc, ds := math.Cos(step), math.Sin(step)
	a, b := 0.0, 0.0
	for _, v := range y {
		a += v * c
		b += v * s
		c, s = c*dc-s*ds, s*dc+c*ds
	}
	return 2 * (a*a + b*b) / float64(len(y))
}
