package scrapereceiver

import (
	"fmt"
	"math"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/storage"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// maxNativeBuckets bounds the buckets of one side of a native histogram, empty
// ones between others included, which OTLP has to write out.
const maxNativeBuckets = 1 << 16

// native adds a native histogram; without h and fh, its end. What cannot be
// written in OTLP is [storage.ErrOutOfBounds], which costs this sample alone.
// Counts of a histogram of floats are rounded, since OTLP has whole ones.
func (b *batch) native(s *series, told, t int64, h *histogram.Histogram, fh *histogram.FloatHistogram, exemplars []exemplar.Exemplar) error {
	if h == nil && fh == nil {
		p := b.exponential(s, t)
		p.SetFlags(noValue)
		return nil
	}
	if h != nil {
		if err := h.Validate(); err != nil {
			return fmt.Errorf("%w: %w", storage.ErrOutOfBounds, err)
		}
		fh = h.ToFloat(nil)
	} else if err := fh.Validate(); err != nil {
		return fmt.Errorf("%w: %w", storage.ErrOutOfBounds, err)
	}
	if fh.UsesCustomBuckets() {
		return b.custom(s, told, t, fh, exemplars)
	}
	positive, ok := dense(fh.PositiveSpans, fh.PositiveBuckets)
	negative, ok2 := dense(fh.NegativeSpans, fh.NegativeBuckets)
	if !ok || !ok2 {
		return fmt.Errorf("%w: native histogram %s has buckets too far apart", storage.ErrOutOfBounds, s.name)
	}
	p := b.exponential(s, t)
	p.SetScale(fh.Schema)
	p.SetZeroThreshold(fh.ZeroThreshold)
	p.SetZeroCount(rounded(fh.ZeroCount))
	p.SetSum(fh.Sum)
	total := p.ZeroCount() + positive.into(p.Positive()) + negative.into(p.Negative())
	p.SetCount(total)
	if count := rounded(fh.Count); math.IsNaN(fh.Sum) && count > total {
		p.SetCount(count) // observations of NaN lie in no bucket
	}
	p.SetStartTimestamp(nanos(s.at(told, t, float64(p.Count()))))
	s.exemplars(exemplars, p.Exemplars())
	return nil
}

func (b *batch) exponential(s *series, t int64) pmetric.ExponentialHistogramDataPoint {
	p := b.metric(s.origin, s.name, pmetric.MetricTypeExponentialHistogram, s.meta).ExponentialHistogram().DataPoints().AppendEmpty()
	put(p.Attributes(), s.attrs)
	p.SetTimestamp(nanos(t))
	return p
}

// buckets are those of one side, without gaps.
type buckets struct {
	offset int32
	counts []uint64
}

// dense writes out the empty buckets between spans. Prometheus' bucket i ends
// where OpenTelemetry's begins.
func dense(spans []histogram.Span, counts []float64) (buckets, bool) {
	var out buckets
	for i, span := range spans {
		if i == 0 {
			if span.Offset == math.MinInt32 {
				return out, false
			}
			out.offset = span.Offset - 1
		} else {
			if int64(len(out.counts))+int64(span.Offset) > maxNativeBuckets {
				return out, false
			}
			out.counts = append(out.counts, make([]uint64, span.Offset)...)
		}
		if len(out.counts)+int(span.Length) > maxNativeBuckets {
			return out, false
		}
		for _, c := range counts[:span.Length] {
			out.counts = append(out.counts, rounded(c))
		}
		counts = counts[span.Length:]
	}
	return out, true
}

func (b buckets) into(to pmetric.ExponentialHistogramDataPointBuckets) (total uint64) {
	to.SetOffset(b.offset)
	to.BucketCounts().FromRaw(b.counts)
	for _, c := range b.counts {
		total += c
	}
	return total
}

// custom adds a native histogram with bounds of its own as the classic one that
// it was.
func (b *batch) custom(s *series, told, t int64, fh *histogram.FloatHistogram, exemplars []exemplar.Exemplar) error {
	counts, ok := dense(fh.PositiveSpans, fh.PositiveBuckets)
	if first := int(counts.offset) + 1; !ok || first < 0 || len(counts.counts)+first > len(fh.CustomValues)+1 {
		return fmt.Errorf("%w: native histogram %s has buckets without bounds", storage.ErrOutOfBounds, s.name)
	}
	p := b.metric(s.origin, s.name, pmetric.MetricTypeHistogram, s.meta).Histogram().DataPoints().AppendEmpty()
	put(p.Attributes(), s.attrs)
	p.SetTimestamp(nanos(t))
	p.SetSum(fh.Sum)
	p.ExplicitBounds().FromRaw(fh.CustomValues)
	all := make([]uint64, len(fh.CustomValues)+1)
	if len(counts.counts) > 0 {
		copy(all[counts.offset+1:], counts.counts)
	}
	total := uint64(0)
	for _, c := range all {
		total += c
	}
	p.BucketCounts().FromRaw(all)
	p.SetCount(total)
	p.SetStartTimestamp(nanos(s.at(told, t, float64(total))))
	s.exemplars(exemplars, p.Exemplars())
	return nil
}

// rounded makes a count whole.
func rounded(v float64) uint64 {
	if !(v > 0) {
		return 0
	}
	return uint64(math.Round(min(v, maxCount)))
}
