package admit

import (
	"fmt"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Metrics removes from md the points that cannot be stored, and metrics, scopes
// and resources without any; see [Logs]. It returns how many points are left.
//
// Exemplars that cannot be stored are taken out of their points, and resource
// attributes that cannot be labels out of their resources, each with a warning.
func Metrics(md pmetric.Metrics, b Bounds, received int64, rep *Report) (kept int) {
	var a admission
	a.begin("metric point", b, received, rep)
	md.ResourceMetrics().RemoveIf(func(rm pmetric.ResourceMetrics) bool {
		a.resourceLabels(rm.Resource().Attributes())
		var res extent
		res.attributes(rm.Resource().Attributes())
		rm.ScopeMetrics().RemoveIf(func(sm pmetric.ScopeMetrics) bool {
			sh := sharedOf(res, rm.Resource(), sm.Scope())
			if sh.unfit() {
				a.refuseAll(&sh, points(sm.Metrics()))
				for _, m := range sm.Metrics().All() {
					a.refuseMetric(m, &sh)
				}
				return true
			}
			sm.Metrics().RemoveIf(func(m pmetric.Metric) bool {
				n := a.metric(m, &sh)
				kept += n
				return n == 0
			})
			return sm.Metrics().Len() == 0
		})
		return rm.ScopeMetrics().Len() == 0
	})
	a.end()
	return kept
}

func points(metrics pmetric.MetricSlice) int {
	n := 0
	for _, m := range metrics.All() {
		n += pointCount(m)
	}
	return n
}

func pointCount(m pmetric.Metric) int {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return m.Gauge().DataPoints().Len()
	case pmetric.MetricTypeSum:
		return m.Sum().DataPoints().Len()
	case pmetric.MetricTypeHistogram:
		return m.Histogram().DataPoints().Len()
	case pmetric.MetricTypeExponentialHistogram:
		return m.ExponentialHistogram().DataPoints().Len()
	case pmetric.MetricTypeSummary:
		return m.Summary().DataPoints().Len()
	}
	return 0
}

// metric returns how many points of m are left.
func (a *admission) metric(m pmetric.Metric, sh *shared) int {
	count := pointCount(m)
	switch {
	case m.Type() == pmetric.MetricTypeEmpty:
		a.warn(noType, 1, func() string {
			return fmt.Sprintf("metric %q was left out, since it has no data of a type that OTLP 1.x knows: send a gauge, sum, histogram, exponential histogram or summary", m.Name())
		})
		return 0
	case count == 0:
		a.warn(noPoints, 1, func() string { return fmt.Sprintf("metric %q was left out, since it has no points", m.Name()) })
		return 0
	case !isLabel(m.Name()):
		a.reject(noName, count, func() string {
			return fmt.Sprintf("metric name %q has no letter or digit of ASCII, and Prometheus names need one: rename the metric", m.Name())
		})
		a.refuseMetric(m, sh)
		return 0
	case temporality(m) == pmetric.AggregationTemporalityUnspecified:
		a.reject(noTemporality, count, func() string {
			return fmt.Sprintf("metric %q has no aggregation temporality: set it to cumulative or delta", m.Name())
		})
		a.refuseMetric(m, sh)
		return 0
	}
	defer a.endMetric(sh)
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return a.numbers(m, m.Gauge().DataPoints(), sh)
	case pmetric.MetricTypeSum:
		return a.numbers(m, m.Sum().DataPoints(), sh)
	case pmetric.MetricTypeHistogram:
		return a.histograms(m, m.Histogram().DataPoints(), sh)
	case pmetric.MetricTypeExponentialHistogram:
		return a.exponentials(m, m.ExponentialHistogram().DataPoints(), sh)
	default:
		return a.summaries(m, m.Summary().DataPoints(), sh)
	}
}

// temporality is cumulative for metrics that have none.
func temporality(m pmetric.Metric) pmetric.AggregationTemporality {
	switch m.Type() {
	case pmetric.MetricTypeSum:
		return m.Sum().AggregationTemporality()
	case pmetric.MetricTypeHistogram:
		return m.Histogram().AggregationTemporality()
	case pmetric.MetricTypeExponentialHistogram:
		return m.ExponentialHistogram().AggregationTemporality()
	}
	return pmetric.AggregationTemporalityCumulative
}

func (a *admission) numbers(m pmetric.Metric, dps pmetric.NumberDataPointSlice, sh *shared) int {
	dps.RemoveIf(func(p pmetric.NumberDataPoint) bool {
		if a.point(m, p.Timestamp(), p.Attributes(), sh) && a.number(m, p) {
			a.exemplars(m, p.Attributes(), p.Exemplars(), sh)
			return false
		}
		a.refusePoint(m, timestamp(p.Timestamp()), sh, func(to pmetric.Metric) {
			if m.Type() == pmetric.MetricTypeGauge {
				p.CopyTo(to.Gauge().DataPoints().AppendEmpty())
			} else {
				p.CopyTo(to.Sum().DataPoints().AppendEmpty())
			}
		})
		return true
	})
	return dps.Len()
}

func (a *admission) number(m pmetric.Metric, p pmetric.NumberDataPoint) bool {
	if p.ValueType() != pmetric.NumberDataPointValueTypeEmpty || p.Flags().NoRecordedValue() {
		return true
	}
	a.reject(noValue, 1, func() string {
		return fmt.Sprintf("a point of metric %q has no value: set one, or the flag that none was recorded", m.Name())
	})
	return false
}

// point checks what points of all types have in common.
func (a *admission) point(m pmetric.Metric, ts pcommon.Timestamp, attrs pcommon.Map, sh *shared) bool {
	if ts == 0 {
		a.reject(noTime, 1, func() string {
			return fmt.Sprintf("a point of metric %q has no timestamp: set time_unix_nano", m.Name())
		})
		return false
	}
	if !a.inTime(timestamp(ts)) {
		return false
	}
	var own extent
	own.attributes(attrs)
	for name := range attrs.All() {
		if !isLabel(name) {
			a.reject(badLabel, 1, func() string {
				return fmt.Sprintf("attribute name %q of a point of metric %q has no letter or digit of ASCII, and Prometheus labels need one: rename the attribute", name, m.Name())
			})
			return false
		}
	}
	return a.fits(&own, sh, func(whole bool) int { return pointSize(m, attrs, sh, whole) })
}

// resourceLabels removes attributes that cannot be labels: one of them would
// keep all points of the resource out of the store.
func (a *admission) resourceLabels(attrs pcommon.Map) {
	attrs.RemoveIf(func(name string, _ pcommon.Value) bool {
		if isLabel(name) {
			return false
		}
		a.warn(badLabel, 1, func() string {
			return fmt.Sprintf("resource attribute %q was left out, since it has no letter or digit of ASCII, and Prometheus labels need one: rename the attribute", name)
		})
		return true
	})
}

// isLabel tells whether something is left of a name in Prometheus's alphabet.
func isLabel(name string) bool {
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
			return true
		}
	}
	return false
}
