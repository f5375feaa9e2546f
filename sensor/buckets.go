package sensor

import (
	"cmp"
	"math"
	"slices"
	"strconv"
)

// tailQuantile is the quantile that buckets are read for.
const tailQuantile = 0.99

// bucketed are the buckets of one histogram.
type bucketed struct {
	base, unit string
	labels     map[string]string // without le
	class      Class
	buckets    []bucket
}

type bucket struct {
	le     float64
	points []Point
}

// TailClass is the class of the 99th percentile of a histogram, and whether it is
// worth reading its buckets at all.
func TailClass(name, unit string, labels map[string]string) (Class, bool) {
	if unit == "" {
		unit = UnitOf(name)
	}
	c := refine(Classify(name, unit), &Series{Name: name, Labels: labels})
	switch c {
	case ClassLatency:
		return ClassTail, true
	case ClassInput, ClassOutput, ClassPoolWait:
		return c, true
	}
	return c, false
}

// TailName names the series of a histogram's 99th percentile.
func TailName(base string) string { return base + "_p99" }

func (d *deriver) bucket(base string, s Series) {
	le, err := strconv.ParseFloat(s.Labels["le"], 64)
	if err != nil {
		return
	}
	rest := make(map[string]string, len(s.Labels))
	for n, v := range s.Labels {
		if n != "le" {
			rest[n] = v
		}
	}
	id := base + "\x00" + LabelText(rest)
	b := d.buckets[id]
	if b == nil {
		b = &bucketed{base: base, unit: UnitOf(base), labels: rest}
		if b.unit == "" {
			b.unit = s.Unit
		}
		var ok bool
		if b.class, ok = TailClass(base, b.unit, rest); !ok {
			b.class = ""
		}
		d.buckets[id] = b
	}
	if b.class != "" {
		b.buckets = append(b.buckets, bucket{le, s.Points})
	}
}

func (d *deriver) tails() []Series {
	ids := make([]string, 0, len(d.buckets))
	for id, b := range d.buckets {
		if b.class != "" {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	var out []Series
	for _, id := range ids {
		b := d.buckets[id]
		slices.SortStableFunc(b.buckets, func(x, y bucket) int { return cmp.Compare(x.le, y.le) })
		s := Series{
			Name: TailName(b.base), Labels: b.labels, Unit: b.unit, Class: b.class, Points: b.tail(tailQuantile),
			Query: "histogram_quantile(0.99, rate(" + Selector(&Series{Name: b.base + "_bucket", Labels: b.labels}) + rateWindow + "))",
		}
		if len(s.Points) > 0 {
			out = append(out, s)
		}
	}
	return out
}

// tail returns the quantile of what was observed between each two points, at the
// later one. Intervals in which nothing was have none.
func (b *bucketed) tail(q float64) []Point {
	if len(b.buckets) < 2 {
		return nil
	}
	last := b.buckets[len(b.buckets)-1]
	if !math.IsInf(last.le, 1) {
		return nil
	}
	counts := make([]float64, len(b.buckets))
	var out []Point
	for i := 1; i < len(last.points); i++ {
		from, to := last.points[i-1].Time, last.points[i].Time
		if b.between(counts, i, from, to) {
			out = append(out, Point{to, b.quantile(q, counts)})
		}
	}
	return out
}

// between fills the cumulative counts of an interval; false when a bucket lacks a
// point or nothing was observed.
func (b *bucketed) between(counts []float64, i int, from, to int64) bool {
	restarted := false
	for j := range b.buckets {
		x, okX := at(b.buckets[j].points, i-1, from)
		y, okY := at(b.buckets[j].points, i, to)
		if !okX || !okY {
			return false
		}
		counts[j] = y - x
		restarted = restarted || y < x
	}
	if restarted { // counting began anew
		for j := range b.buckets {
			counts[j], _ = at(b.buckets[j].points, i, to)
		}
	}
	return counts[len(counts)-1] > 0
}

// at returns the value of a time, which most often stands at index i.
func at(p []Point, i int, t int64) (float64, bool) {
	if i < len(p) && p[i].Time == t {
		return p[i].Value, true
	}
	k, ok := slices.BinarySearchFunc(p, t, func(p Point, t int64) int { return cmp.Compare(p.Time, t) })
	if !ok {
		return 0, false
	}
	return p[k].Value, true
}

// quantile interpolates in the bucket in which the quantile lies. In the last,
// open one it is the bucket's lower bound.
func (b *bucketed) quantile(q float64, counts []float64) float64 {
	rank := q * counts[len(counts)-1]
	j := 0
	for j < len(counts)-1 && counts[j] < rank {
		j++
	}
	if j == len(counts)-1 {
		return b.buckets[j-1].le
	}
	low, below := 0.0, 0.0
	if j > 0 {
		low, below = b.buckets[j-1].le, counts[j-1]
	} else if b.buckets[0].le <= 0 {
		return b.buckets[0].le
	}
	if counts[j] <= below {
		return b.buckets[j].le
	}
	return low + (b.buckets[j].le-low)*(rank-below)/(counts[j]-below)
}
