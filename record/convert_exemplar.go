package record

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Exemplars returns one row for each exemplar of md, in the order of metrics,
// points and exemplars; see [Converter.Logs]. The name is the metric's
// OpenTelemetry name, the labels are the point's attributes.
func (c *Converter) Exemplars(md pmetric.Metrics, seq uint64, received int64) []Row {
	c.reset(seq)
	for _, rm := range md.ResourceMetrics().All() {
		c.setResource(TypeExemplar, rm.Resource().Attributes())
		for _, sm := range rm.ScopeMetrics().All() {
			c.setScope(sm.Scope())
			for _, m := range sm.Metrics().All() {
				c.metric(m, received)
			}
		}
	}
	return c.rows
}

// point is what points of all types have in common.
type point interface {
	Timestamp() pcommon.Timestamp
	Attributes() pcommon.Map
	Exemplars() pmetric.ExemplarSlice
}

func (c *Converter) metric(m pmetric.Metric, received int64) {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		for _, p := range m.Gauge().DataPoints().All() {
			exemplars(c, m, p, received)
		}
	case pmetric.MetricTypeSum:
		for _, p := range m.Sum().DataPoints().All() {
			exemplars(c, m, p, received)
		}
	case pmetric.MetricTypeHistogram:
		for _, p := range m.Histogram().DataPoints().All() {
			exemplars(c, m, p, received)
		}
	case pmetric.MetricTypeExponentialHistogram:
		for _, p := range m.ExponentialHistogram().DataPoints().All() {
			exemplars(c, m, p, received)
		}
	}
}

func exemplars[P point](c *Converter, m pmetric.Metric, p P, received int64) {
	if p.Exemplars().Len() == 0 {
		return
	}
	var labels string
	if p.Attributes().Len() > 0 {
		t := &c.texts
		t.scratch = t.appendMap(t.scratch[:0], p.Attributes(), (*texts).appendText)
		labels = t.take(t.scratch)
	}
	for _, ex := range p.Exemplars().All() {
		c.begin()
		c.own(FieldName, valid(m.Name()))
		c.own(FieldLabels, labels)
		c.own(FieldValue, c.exemplarValue(ex))
		traceID, spanID := ex.TraceID(), ex.SpanID()
		c.own(FieldTraceID, c.texts.id(traceID[:]))
		c.own(FieldSpanID, c.texts.id(spanID[:]))
		c.attributes(ex.FilteredAttributes())
		c.finish(ExemplarTime(ex, p.Timestamp(), received))
	}
}

// ExemplarTime is the time of an exemplar in ns: its own, else that of its
// point, else when it was received.
func ExemplarTime(ex pmetric.Exemplar, point pcommon.Timestamp, received int64) int64 {
	switch {
	case ex.Timestamp() != 0:
		return nanos(ex.Timestamp())
	case point != 0:
		return nanos(point)
	default:
		return received
	}
}

func (c *Converter) exemplarValue(ex pmetric.Exemplar) string {
	t := &c.texts
	switch ex.ValueType() {
	case pmetric.ExemplarValueTypeInt:
		return t.int(ex.IntValue())
	case pmetric.ExemplarValueTypeDouble:
		t.scratch = appendFloat(t.scratch[:0], ex.DoubleValue())
		return t.take(t.scratch)
	}
	return ""
}
