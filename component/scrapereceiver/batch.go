package scrapereceiver

import (
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"inquest/record"
)

// batch is what one scrape becomes. Scalars go into it at once, parts of groups
// when all are there.
type batch struct {
	t       *target
	md      pmetric.Metrics
	samples int // that are in it

	scopes  map[origin]pmetric.MetricSlice
	metrics map[metricKey]pmetric.Metric
	lastKey metricKey // series come by metric
	last    pmetric.Metric

	flights map[flightKey]*flight
	order   []*flight
}

type metricKey struct {
	origin origin
	name   string
	kind   pmetric.MetricType
}

func newBatch(t *target) *batch {
	return &batch{
		t: t, md: pmetric.NewMetrics(),
		scopes:  map[origin]pmetric.MetricSlice{},
		metrics: map[metricKey]pmetric.Metric{},
		flights: map[flightKey]*flight{},
	}
}

// metric returns the metric that points of this name and kind go to.
func (b *batch) metric(o origin, name string, kind pmetric.MetricType, meta metadata.Metadata) pmetric.Metric {
	key := metricKey{o, name, kind}
	if key == b.lastKey {
		return b.last
	}
	m, ok := b.metrics[key]
	if !ok {
		m = b.scope(o).AppendEmpty()
		m.SetName(name)
		m.SetDescription(meta.Help)
		m.SetUnit(unit(meta.Unit))
		typ := meta.Type
		if typ == "" {
			typ = model.MetricTypeUnknown
		}
		m.Metadata().PutStr(record.MetadataType, string(typ))
		switch kind {
		case pmetric.MetricTypeSum:
			m.SetEmptySum().SetIsMonotonic(true)
			m.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		case pmetric.MetricTypeHistogram:
			m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		case pmetric.MetricTypeExponentialHistogram:
			m.SetEmptyExponentialHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		case pmetric.MetricTypeSummary:
			m.SetEmptySummary()
		default:
			m.SetEmptyGauge()
		}
		b.metrics[key] = m
	}
	b.lastKey, b.last = key, m
	return m
}

func (b *batch) scope(o origin) pmetric.MetricSlice {
	if ms, ok := b.scopes[o]; ok {
		return ms
	}
	rm := b.md.ResourceMetrics().AppendEmpty()
	attrs := rm.Resource().Attributes()
	if o.job != "" {
		attrs.PutStr("service.name", o.job)
	}
	if o.instance != "" {
		attrs.PutStr("service.instance.id", o.instance)
	}
	if o == b.t.own {
		put(attrs, b.t.resource)
	}
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.Scope().SetName(record.ScopeScraped)
	b.scopes[o] = sm.Metrics()
	return sm.Metrics()
}

// number adds a sample of a counter or of anything that is a gauge.
func (b *batch) number(s *series, told, t int64, v float64, end bool, exemplars []exemplar.Exemplar) {
	var p pmetric.NumberDataPoint
	if s.part == partCounter {
		p = b.metric(s.origin, s.name, pmetric.MetricTypeSum, s.meta).Sum().DataPoints().AppendEmpty()
		if !end {
			p.SetStartTimestamp(nanos(s.at(told, t, v)))
		}
	} else {
		p = b.metric(s.origin, s.name, pmetric.MetricTypeGauge, s.meta).Gauge().DataPoints().AppendEmpty()
	}
	put(p.Attributes(), s.attrs)
	b.value(p, t, v, end)
	s.exemplars(exemplars, p.Exemplars())
}

// alone adds a part of a group that is no point together with the others, under
// the name and labels that it came with.
func (b *batch) alone(s *series, t int64, v float64, end bool) pmetric.NumberDataPoint {
	p := b.metric(s.origin, s.name, pmetric.MetricTypeGauge, s.meta).Gauge().DataPoints().AppendEmpty()
	put(p.Attributes(), s.attrs)
	switch s.part {
	case partBucket:
		p.Attributes().PutStr(labels.BucketLabel, plain(s.bound))
	case partQuantile:
		p.Attributes().PutStr(model.QuantileLabel, plain(s.bound))
	}
	b.value(p, t, v, end)
	return p
}

func (b *batch) value(p pmetric.NumberDataPoint, t int64, v float64, end bool) {
	p.SetTimestamp(nanos(t))
	if end {
		p.SetFlags(noValue)
		return
	}
	p.SetDoubleValue(v)
}

// finish adds the points whose parts are all there by now.
func (b *batch) finish() {
	for _, f := range b.order {
		f.finish(b)
	}
	b.flights, b.order = nil, nil
}

var noValue = pmetric.DefaultDataPointFlags.WithNoRecordedValue(true)

func put(to pcommon.Map, attrs []labels.Label) {
	to.EnsureCapacity(to.Len() + len(attrs) + 1)
	for _, l := range attrs {
		to.PutStr(l.Name, l.Value)
	}
}

// nanos makes a time of OTLP; one before 1970 is its beginning.
func nanos(ms int64) pcommon.Timestamp { return pcommon.Timestamp(max(ms, 0) * 1e6) }

// ucum are OpenTelemetry's words for the units that OpenMetrics knows.
var ucum = map[string]string{
	"seconds": "s", "milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns",
	"bytes": "By", "kilobytes": "kBy", "megabytes": "MBy", "gigabytes": "GBy",
	"kibibytes": "KiBy", "mebibytes": "MiBy", "gibibytes": "GiBy",
	"meters": "m", "volts": "V", "amperes": "A", "joules": "J", "watts": "W", "grams": "g",
	"celsius": "Cel", "hertz": "Hz", "percent": "%", "ratio": "1",
}

func unit(word string) string {
	if u, ok := ucum[word]; ok {
		return u
	}
	return word
}
