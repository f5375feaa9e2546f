package local

import "go.opentelemetry.io/collector/pdata/pmetric"

// forEachPoint calls fn with each point of md alone, the name of its metric and
// its time in ns. A metric without a type has no points; it counts as one.
func forEachPoint(md pmetric.Metrics, fn func(one pmetric.Metrics, name string, unix int64) error) error {
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			one := pmetric.NewMetrics()
			r := one.ResourceMetrics().AppendEmpty()
			rm.Resource().CopyTo(r.Resource())
			sc := r.ScopeMetrics().AppendEmpty()
			sm.Scope().CopyTo(sc.Scope())
			dst := sc.Metrics().AppendEmpty()
			for _, m := range sm.Metrics().All() {
				dst.SetName(m.Name())
				dst.SetUnit(m.Unit())
				dst.SetDescription(m.Description())
				if err := splitMetric(m, dst, func(unix int64) error { return fn(one, m.Name(), unix) }); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// splitMetric makes dst a metric with one point of m after the other.
func splitMetric(m, dst pmetric.Metric, fn func(unix int64) error) error {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return eachNumber(m.Gauge().DataPoints(), dst.SetEmptyGauge().DataPoints(), fn)
	case pmetric.MetricTypeSum:
		d := dst.SetEmptySum()
		d.SetAggregationTemporality(m.Sum().AggregationTemporality())
		d.SetIsMonotonic(m.Sum().IsMonotonic())
		return eachNumber(m.Sum().DataPoints(), d.DataPoints(), fn)
	case pmetric.MetricTypeHistogram:
		d := dst.SetEmptyHistogram()
		d.SetAggregationTemporality(m.Histogram().AggregationTemporality())
		p := d.DataPoints().AppendEmpty()
		for _, dp := range m.Histogram().DataPoints().All() {
			dp.CopyTo(p)
			if err := fn(int64(dp.Timestamp())); err != nil {
				return err
			}
		}
	case pmetric.MetricTypeExponentialHistogram:
		d := dst.SetEmptyExponentialHistogram()
		d.SetAggregationTemporality(m.ExponentialHistogram().AggregationTemporality())
		p := d.DataPoints().AppendEmpty()
		for _, dp := range m.ExponentialHistogram().DataPoints().All() {
			dp.CopyTo(p)
			if err := fn(int64(dp.Timestamp())); err != nil {
				return err
			}
		}
	case pmetric.MetricTypeSummary:
		p := dst.SetEmptySummary().DataPoints().AppendEmpty()
		for _, dp := range m.Summary().DataPoints().All() {
			dp.CopyTo(p)
			if err := fn(int64(dp.Timestamp())); err != nil {
				return err
			}
		}
	default:
		m.CopyTo(dst)
		return fn(0)
	}
	return nil
}

func eachNumber(src, dst pmetric.NumberDataPointSlice, fn func(unix int64) error) error {
	p := dst.AppendEmpty()
	for _, dp := range src.All() {
		dp.CopyTo(p)
		if err := fn(int64(dp.Timestamp())); err != nil {
			return err
		}
	}
	return nil
}
