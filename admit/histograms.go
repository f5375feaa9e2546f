package admit

import (
	"fmt"
	"math"

	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Points that are at odds with themselves would fail in the store, where some
// take the points after them along and others lose a part of themselves without
// a word.

func (a *admission) histograms(m pmetric.Metric, dps pmetric.HistogramDataPointSlice, sh *shared) int {
	dps.RemoveIf(func(p pmetric.HistogramDataPoint) bool {
		if !a.point(m, p.Timestamp(), p.Attributes(), sh) || !a.buckets(m, p) {
			a.refusePoint(m, timestamp(p.Timestamp()), sh, func(to pmetric.Metric) {
				p.CopyTo(to.Histogram().DataPoints().AppendEmpty())
			})
			return true
		}
		a.exemplars(m, p.Attributes(), p.Exemplars(), sh)
		return false
	})
	return dps.Len()
}

func (a *admission) buckets(m pmetric.Metric, p pmetric.HistogramDataPoint) bool {
	bounds, counts := p.ExplicitBounds(), p.BucketCounts()
	if counts.Len() != bounds.Len()+1 && (counts.Len() != 0 || bounds.Len() != 0) {
		a.reject(badBuckets, 1, func() string {
			return fmt.Sprintf("a point of histogram %q has %d bucket counts for %d bounds: send one count more than bounds", m.Name(), counts.Len(), bounds.Len())
		})
		return false
	}
	for i := range bounds.Len() {
		if b := bounds.At(i); math.IsNaN(b) || i > 0 && b <= bounds.At(i-1) {
			a.reject(badBuckets, 1, func() string {
				return fmt.Sprintf("a point of histogram %q has the bound %v where a greater one than the last must be: send bounds in increasing order", m.Name(), b)
			})
			return false
		}
	}
	return true
}

func (a *admission) exponentials(m pmetric.Metric, dps pmetric.ExponentialHistogramDataPointSlice, sh *shared) int {
	dps.RemoveIf(func(p pmetric.ExponentialHistogramDataPoint) bool {
		if !a.point(m, p.Timestamp(), p.Attributes(), sh) || !a.exponential(m, p) {
			a.refusePoint(m, timestamp(p.Timestamp()), sh, func(to pmetric.Metric) {
				p.CopyTo(to.ExponentialHistogram().DataPoints().AppendEmpty())
			})
			return true
		}
		a.exemplars(m, p.Attributes(), p.Exemplars(), sh)
		return false
	})
	return dps.Len()
}

// minScale is the coarsest resolution of Prometheus' native histograms.
const minScale = -4

// maxBuckets bounds the buckets of one side of a point, all of which the store
// holds in memory.
const maxBuckets = 1 << 16

func (a *admission) exponential(m pmetric.Metric, p pmetric.ExponentialHistogramDataPoint) bool {
	if p.Scale() < minScale {
		a.reject(badBuckets, 1, func() string {
			return fmt.Sprintf("a point of exponential histogram %q has scale %d: send it with scale %d or more", m.Name(), p.Scale(), minScale)
		})
		return false
	}
	total := p.ZeroCount()
	for _, side := range [2]pmetric.ExponentialHistogramDataPointBuckets{p.Positive(), p.Negative()} {
		n := side.BucketCounts().Len()
		if first := int64(side.Offset()); n > maxBuckets || first+int64(n) >= math.MaxInt32 || first <= math.MinInt32+1 {
			a.reject(badBuckets, 1, func() string {
				return fmt.Sprintf("a point of exponential histogram %q has %d buckets at offset %d: send at most %d within the range of 32-bit indexes", m.Name(), n, first, maxBuckets)
			})
			return false
		}
		for i := range n {
			count := side.BucketCounts().At(i)
			if count > math.MaxInt64-min(total, math.MaxInt64) {
				total = math.MaxUint64 // more than any true count
				break
			}
			total += count
		}
	}
	// Observations of NaN are counted and lie in no bucket.
	fits := total == p.Count() || math.IsNaN(p.Sum()) && total <= p.Count()
	if !fits && !p.Flags().NoRecordedValue() {
		a.reject(badBuckets, 1, func() string {
			return fmt.Sprintf("a point of exponential histogram %q has count %d and %d observations in its buckets: send equal numbers", m.Name(), p.Count(), total)
		})
		return false
	}
	return true
}

func (a *admission) summaries(m pmetric.Metric, dps pmetric.SummaryDataPointSlice, sh *shared) int {
	dps.RemoveIf(func(p pmetric.SummaryDataPoint) bool {
		if a.point(m, p.Timestamp(), p.Attributes(), sh) && a.quantiles(m, p) {
			return false
		}
		a.refusePoint(m, timestamp(p.Timestamp()), sh, func(to pmetric.Metric) {
			p.CopyTo(to.Summary().DataPoints().AppendEmpty())
		})
		return true
	})
	return dps.Len()
}

func (a *admission) quantiles(m pmetric.Metric, p pmetric.SummaryDataPoint) bool {
	last := math.Inf(-1)
	for _, v := range p.QuantileValues().All() {
		q := v.Quantile()
		if math.IsNaN(q) || q <= last {
			a.reject(badBuckets, 1, func() string {
				return fmt.Sprintf("a point of summary %q has the quantile %v where a greater one than the last must be: send quantiles in increasing order", m.Name(), q)
			})
			return false
		}
		last = q
	}
	return true
}
