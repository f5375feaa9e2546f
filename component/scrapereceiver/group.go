package scrapereceiver

import (
	"cmp"
	"math"
	"slices"

	"github.com/prometheus/prometheus/model/exemplar"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// flight is a point of a group on its way: the parts that came so far.
type flight struct {
	g      *group
	t      int64
	told   int64 // start as the target says, ms
	values []partValue
	ends   []*series
	// exemplars of all parts, each with the part that had it
	exemplars pmetric.ExemplarSlice
	hasThem   bool
}

type flightKey struct {
	g *group
	t int64
}

type partValue struct {
	s *series
	v float64
}

// part adds a part of a histogram or summary.
func (b *batch) part(s *series, told, t int64, v float64, end bool, exemplars []exemplar.Exemplar) {
	key := flightKey{s.group, t}
	f := b.flights[key]
	if f == nil {
		f = &flight{g: s.group, t: t}
		b.flights[key] = f
		b.order = append(b.order, f)
	}
	if end {
		f.ends = append(f.ends, s)
		return
	}
	f.told = max(f.told, told)
	f.values = append(f.values, partValue{s, v})
	if len(exemplars) > 0 {
		if !f.hasThem {
			f.exemplars, f.hasThem = pmetric.NewExemplarSlice(), true
		}
		s.exemplars(exemplars, f.exemplars)
	}
}

// finish makes a point of the parts. Parts that are none together, such as
// buckets whose counts fall, go on as they came: no value is ever changed.
func (f *flight) finish(b *batch) {
	if len(f.values) == 0 {
		f.end(b)
		return
	}
	f.sort()
	for _, s := range f.ends {
		b.alone(s, f.t, 0, true)
	}
	if !f.twice() && (f.g.summary && f.summary(b) || !f.g.summary && f.histogram(b)) {
		return
	}
	for i, pv := range f.values {
		p := b.alone(pv.s, f.t, pv.v, false)
		if i == 0 && f.hasThem {
			f.exemplars.MoveAndAppendTo(p.Exemplars())
		}
	}
}

// sort puts buckets and quantiles first, by their bounds, then sum and count.
func (f *flight) sort() {
	slices.SortStableFunc(f.values, func(x, y partValue) int {
		return cmp.Or(cmp.Compare(x.s.part, y.s.part), cmp.Compare(x.s.bound, y.s.bound))
	})
}

// twice tells whether a part is there more than once.
func (f *flight) twice() bool {
	for i := 1; i < len(f.values); i++ {
		if x, y := f.values[i-1].s, f.values[i].s; x.part == y.part && x.bound == y.bound {
			return true
		}
	}
	return false
}

// take returns the bounded parts, and sum and count where they are there.
func (f *flight) take() (bounded []partValue, sum, count *float64) {
	bounded = f.values
	for i := range f.values {
		switch f.values[i].s.part {
		case partSum:
			sum = &f.values[i].v
		case partCount:
			count = &f.values[i].v
		default:
			continue
		}
		bounded = bounded[:min(len(bounded), i)]
	}
	return bounded, sum, count
}

// maxCount is the first number of observations that cannot be counted exactly.
const maxCount = 1 << 53

func isCount(v float64) bool { return v >= 0 && v < maxCount && v == math.Trunc(v) }

func (f *flight) histogram(b *batch) bool {
	buckets, sum, count := f.take()
	below := 0.0
	for _, pv := range buckets {
		if !isCount(pv.v) || pv.v < below {
			return false
		}
		below = pv.v
	}
	total := below
	if n := len(buckets); n > 0 && math.IsInf(buckets[n-1].s.bound, 1) {
		buckets = buckets[:n-1]
		if count != nil && *count != total {
			return false
		}
	} else {
		if count == nil || !isCount(*count) || *count < below {
			return false
		}
		total = *count
	}
	p := b.metric(f.g.origin, f.g.family, pmetric.MetricTypeHistogram, f.g.meta).Histogram().DataPoints().AppendEmpty()
	put(p.Attributes(), f.g.attrs)
	p.SetTimestamp(nanos(f.t))
	p.SetStartTimestamp(nanos(f.g.at(f.told, f.t, total)))
	p.SetCount(uint64(total))
	if sum != nil {
		p.SetSum(*sum)
	}
	counts, bounds := p.BucketCounts(), p.ExplicitBounds()
	counts.EnsureCapacity(len(buckets) + 1)
	bounds.EnsureCapacity(len(buckets))
	below = 0
	for _, pv := range buckets {
		bounds.Append(pv.s.bound)
		counts.Append(uint64(pv.v) - uint64(below))
		below = pv.v
	}
	counts.Append(uint64(total) - uint64(below))
	if f.hasThem {
		f.exemplars.MoveAndAppendTo(p.Exemplars())
	}
	return true
}

func (f *flight) summary(b *batch) bool {
	quantiles, sum, count := f.take()
	if sum == nil || count == nil || !isCount(*count) {
		return false
	}
	p := b.metric(f.g.origin, f.g.family, pmetric.MetricTypeSummary, f.g.meta).Summary().DataPoints().AppendEmpty()
	put(p.Attributes(), f.g.attrs)
	p.SetTimestamp(nanos(f.t))
	p.SetStartTimestamp(nanos(f.g.at(f.told, f.t, *count)))
	p.SetCount(uint64(*count))
	p.SetSum(*sum)
	for _, pv := range quantiles {
		q := p.QuantileValues().AppendEmpty()
		q.SetQuantile(pv.s.bound)
		q.SetValue(pv.v)
	}
	return true
}

// end adds the point that says that the group ended: all its series do.
func (f *flight) end(b *batch) {
	slices.SortFunc(f.ends, func(x, y *series) int {
		return cmp.Or(cmp.Compare(x.part, y.part), cmp.Compare(x.bound, y.bound))
	})
	if f.g.summary {
		p := b.metric(f.g.origin, f.g.family, pmetric.MetricTypeSummary, f.g.meta).Summary().DataPoints().AppendEmpty()
		put(p.Attributes(), f.g.attrs)
		p.SetTimestamp(nanos(f.t))
		p.SetFlags(noValue)
		for _, s := range f.ends {
			if s.part == partQuantile {
				p.QuantileValues().AppendEmpty().SetQuantile(s.bound)
			}
		}
		return
	}
	p := b.metric(f.g.origin, f.g.family, pmetric.MetricTypeHistogram, f.g.meta).Histogram().DataPoints().AppendEmpty()
	put(p.Attributes(), f.g.attrs)
	p.SetTimestamp(nanos(f.t))
	p.SetFlags(noValue)
	for _, s := range f.ends {
		switch {
		case s.part == partSum:
			p.SetSum(0)
		case s.part == partBucket && !math.IsInf(s.bound, 1):
			p.ExplicitBounds().Append(s.bound)
			p.BucketCounts().Append(0)
		}
	}
	p.BucketCounts().Append(0)
}
