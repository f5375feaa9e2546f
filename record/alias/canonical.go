package alias

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// SourceLabel is the label of every canonical point that was derived: the name
// of the metric it comes from, as it was sent. A point that has it was not sent
// by anyone under its name; a query that sums what was sent leaves it out.
const SourceLabel = "alias.source"

// Canonical returns the canonical metrics of md, to be stored beside it: points
// in the canonical unit, labels renamed, [SourceLabel] added. Exemplars stay
// with the original alone. It is empty when no name has an alias, and false
// then. md is not changed.
//
// Where one resource sends several sources of one canonical metric, such as an
// old and a new name, only the one that stands first in the table counts, and
// none where it sends the canonical metric itself: sums are not doubled.
func (t *Table) Canonical(md pmetric.Metrics) (out pmetric.Metrics, any bool) {
	out = pmetric.NewMetrics()
	if t == nil {
		return out, false
	}
	for _, rm := range md.ResourceMetrics().All() {
		best := t.best(rm)
		if best == nil {
			continue
		}
		dst := pmetric.NewResourceMetrics()
		rm.Resource().CopyTo(dst.Resource())
		dst.SetSchemaUrl(rm.SchemaUrl())
		for _, sm := range rm.ScopeMetrics().All() {
			scope := pmetric.NewScopeMetrics()
			for _, m := range sm.Metrics().All() {
				for _, s := range t.metrics[m.Name()] {
					if rank, ok := best[s.group]; ok && rank == s.rank && s.fits(m) {
						s.derive(m, scope.Metrics())
					}
				}
			}
			if scope.Metrics().Len() > 0 {
				sm.Scope().CopyTo(scope.Scope())
				scope.SetSchemaUrl(sm.SchemaUrl())
				scope.MoveTo(dst.ScopeMetrics().AppendEmpty())
			}
		}
		if dst.ScopeMetrics().Len() > 0 {
			dst.MoveTo(out.ResourceMetrics().AppendEmpty())
			any = true
		}
	}
	return out, any
}

// best returns, for each group of sources that a resource's metrics belong to,
// the rank of the source that counts.
func (t *Table) best(rm pmetric.ResourceMetrics) map[string]int {
	var best map[string]int
	sent := func(name string) bool {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if m.Name() == name {
					return true
				}
			}
		}
		return false
	}
	for _, sm := range rm.ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			for _, s := range t.metrics[m.Name()] {
				if !s.fits(m) {
					continue
				}
				old, ok := best[s.group]
				if ok && old <= s.rank || !ok && sent(s.canonical.Name) {
					continue
				}
				if best == nil {
					best = map[string]int{}
				}
				best[s.group] = s.rank
			}
		}
	}
	return best
}

// fits tells whether a metric can be made one of the canonical type. Scraped
// numbers often come with another type than they have: a counter without type
// is a gauge. Only what each point says by itself is taken over, so deltas of
// anything but a counter are not.
func (s *metricSource) fits(m pmetric.Metric) bool {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return s.canonical.Type != Histogram
	case pmetric.MetricTypeSum:
		delta := m.Sum().AggregationTemporality() == pmetric.AggregationTemporalityDelta
		return s.canonical.Type == Counter || s.canonical.Type == Gauge && !delta
	case pmetric.MetricTypeHistogram, pmetric.MetricTypeExponentialHistogram:
		return s.canonical.Type == Histogram
	}
	return false
}

// derive appends the canonical form of m to dst, unless it has no points.
func (s *metricSource) derive(m pmetric.Metric, dst pmetric.MetricSlice) {
	out := pmetric.NewMetric()
	out.SetName(s.canonical.Name)
	out.SetUnit(s.canonical.Unit)
	out.SetDescription(s.canonical.Description)
	n := 0
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		n = s.numbers(m.Name(), m.Gauge().DataPoints(), s.target(out, pmetric.AggregationTemporalityCumulative))
	case pmetric.MetricTypeSum:
		n = s.numbers(m.Name(), m.Sum().DataPoints(), s.target(out, m.Sum().AggregationTemporality()))
	case pmetric.MetricTypeHistogram:
		n = s.histograms(m.Name(), m.Histogram(), out.SetEmptyHistogram())
	case pmetric.MetricTypeExponentialHistogram:
		n = s.exponential(m.Name(), m.ExponentialHistogram(), out)
	}
	if n > 0 {
		out.MoveTo(dst.AppendEmpty())
	}
}

// target makes out a metric of the canonical type.
func (s *metricSource) target(out pmetric.Metric, t pmetric.AggregationTemporality) pmetric.NumberDataPointSlice {
	if s.canonical.Type == Gauge {
		return out.SetEmptyGauge().DataPoints()
	}
	sum := out.SetEmptySum()
	sum.SetIsMonotonic(true)
	sum.SetAggregationTemporality(t)
	return sum.DataPoints()
}

func (s *metricSource) numbers(name string, src, dst pmetric.NumberDataPointSlice) int {
	for _, p := range src.All() {
		if !s.passes(p.Attributes()) {
			continue
		}
		v, whole := p.DoubleValue(), false
		if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
			v, whole = float64(p.IntValue()), true
		}
		if s.Blank > 0 && v >= s.Blank {
			continue
		}
		out := dst.AppendEmpty()
		out.SetTimestamp(p.Timestamp())
		out.SetStartTimestamp(p.StartTimestamp())
		out.SetFlags(p.Flags())
		switch {
		case s.scale != 1:
			out.SetDoubleValue(scaled(v, s.scale))
		case whole:
			out.SetIntValue(p.IntValue())
		default:
			out.SetDoubleValue(v) // a stale marker keeps its bits
		}
		s.labels(name, p.Attributes(), out.Attributes())
	}
	return dst.Len()
}

func (s *metricSource) histograms(name string, src, dst pmetric.Histogram) int {
	dst.SetAggregationTemporality(src.AggregationTemporality())
	for _, p := range src.DataPoints().All() {
		if !s.passes(p.Attributes()) {
			continue
		}
		out := dst.DataPoints().AppendEmpty()
		out.SetTimestamp(p.Timestamp())
		out.SetStartTimestamp(p.StartTimestamp())
		out.SetFlags(p.Flags())
		out.SetCount(p.Count())
		p.BucketCounts().CopyTo(out.BucketCounts())
		p.ExplicitBounds().CopyTo(out.ExplicitBounds())
		if s.scale != 1 {
			bounds := out.ExplicitBounds()
			for i, b := range bounds.All() {
				bounds.SetAt(i, scaled(b, s.scale))
			}
		}
		if p.HasSum() {
			out.SetSum(scaledExact(p.Sum(), s.scale))
		}
		if p.HasMin() {
			out.SetMin(scaledExact(p.Min(), s.scale))
		}
		if p.HasMax() {
			out.SetMax(scaledExact(p.Max(), s.scale))
		}
		s.labels(name, p.Attributes(), out.Attributes())
	}
	return dst.DataPoints().Len()
}

// scaledExact leaves the bits of a value alone when there is nothing to scale.
func scaledExact(v, scale float64) float64 {
	if scale == 1 {
		return v
	}
	return scaled(v, scale)
}

// exponential takes exponential histograms over. Their buckets move as a whole
// when the factor is a power of their base; by any other they become too coarse
// to be true, so only unscaled ones are derived.
func (s *metricSource) exponential(name string, src pmetric.ExponentialHistogram, out pmetric.Metric) int {
	if s.scale != 1 {
		return 0
	}
	dst := out.SetEmptyExponentialHistogram()
	dst.SetAggregationTemporality(src.AggregationTemporality())
	for _, p := range src.DataPoints().All() {
		if !s.passes(p.Attributes()) {
			continue
		}
		o := dst.DataPoints().AppendEmpty()
		p.CopyTo(o)
		o.Exemplars().RemoveIf(func(pmetric.Exemplar) bool { return true })
		o.Attributes().Clear()
		s.labels(name, p.Attributes(), o.Attributes())
	}
	return dst.DataPoints().Len()
}

// passes tells whether a point has the labels that the source asks for.
func (s *metricSource) passes(labels pcommon.Map) bool {
	for label, values := range s.Only {
		v, ok := labels.Get(label)
		if !ok || !slices.Contains(values, v.AsString()) {
			return false
		}
	}
	return true
}

// labels copies a point's labels under their canonical names. A label whose new
// name is there already keeps its own.
func (s *metricSource) labels(name string, src, dst pcommon.Map) {
	dst.EnsureCapacity(src.Len() + len(s.Set) + 1)
	for k, v := range src.All() {
		if to, ok := s.rename[k]; ok {
			_, sent := src.Get(to)
			_, set := dst.Get(to)
			if !sent && !set {
				k = to
			}
		}
		v.CopyTo(dst.PutEmpty(k))
	}
	for k, v := range s.Set {
		if _, there := dst.Get(k); !there {
			dst.PutStr(k, v)
		}
	}
	dst.PutStr(SourceLabel, name)
}
