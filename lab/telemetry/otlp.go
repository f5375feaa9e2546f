package telemetry

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Window is a stretch of the world's time, the end not included.
type Window struct{ From, To time.Duration }

func (w Window) has(t time.Duration) bool { return t >= w.From && t < w.To }

// OTLP turns what was told into requests; the world began at start.
type OTLP struct{ Start time.Time }

func (o OTLP) stamp(t time.Duration) pcommon.Timestamp {
	return pcommon.NewTimestampFromTime(o.Start.Add(t))
}

// put writes attributes to a map.
func (a Attributes) put(m pcommon.Map) {
	m.EnsureCapacity(len(a))
	for _, x := range a {
		switch v := x.Value.(type) {
		case string:
			m.PutStr(x.Name, v)
		case int64:
			m.PutInt(x.Name, v)
		case float64:
			m.PutDouble(x.Name, v)
		case bool:
			m.PutBool(x.Name, v)
		}
	}
}

// scope is the name of the instrumentation of everything here.
const scope = "inquest/lab"

var spanKinds = map[Kind]ptrace.SpanKind{
	Internal: ptrace.SpanKindInternal, Server: ptrace.SpanKindServer, Client: ptrace.SpanKindClient,
	Producer: ptrace.SpanKindProducer, Consumer: ptrace.SpanKindConsumer,
}

// Traces returns the spans that ended in the window.
func (o OTLP) Traces(spans []Span, w Window) ptrace.Traces {
	td := ptrace.NewTraces()
	of := map[*Source]ptrace.SpanSlice{}
	for i := range spans {
		s := &spans[i]
		if !w.has(s.End) {
			continue
		}
		to, ok := of[s.Source]
		if !ok {
			rs := td.ResourceSpans().AppendEmpty()
			s.Source.Resource.put(rs.Resource().Attributes())
			ss := rs.ScopeSpans().AppendEmpty()
			ss.Scope().SetName(scope)
			to = ss.Spans()
			of[s.Source] = to
		}
		o.span(s, to.AppendEmpty())
	}
	return td
}

func (o OTLP) span(s *Span, to ptrace.Span) {
	to.SetTraceID(pcommon.TraceID(s.Trace))
	to.SetSpanID(pcommon.SpanID(s.ID))
	to.SetParentSpanID(pcommon.SpanID(s.Parent))
	to.SetName(s.Name)
	to.SetKind(spanKinds[s.Kind])
	to.SetStartTimestamp(o.stamp(s.Start))
	to.SetEndTimestamp(o.stamp(s.End))
	if s.Failed {
		to.Status().SetCode(ptrace.StatusCodeError)
		to.Status().SetMessage(s.Message)
	}
	s.Attributes.put(to.Attributes())
	for _, e := range s.Events {
		ev := to.Events().AppendEmpty()
		ev.SetName(e.Name)
		ev.SetTimestamp(o.stamp(e.Time))
		e.Attributes.put(ev.Attributes())
	}
}

// Logs returns the log records of the window.
func (o OTLP) Logs(logs []Log, w Window) plog.Logs {
	ld := plog.NewLogs()
	of := map[*Source]plog.LogRecordSlice{}
	for i := range logs {
		l := &logs[i]
		if !w.has(l.Time) {
			continue
		}
		to, ok := of[l.Source]
		if !ok {
			rl := ld.ResourceLogs().AppendEmpty()
			l.Source.Resource.put(rl.Resource().Attributes())
			sl := rl.ScopeLogs().AppendEmpty()
			sl.Scope().SetName(scope)
			to = sl.LogRecords()
			of[l.Source] = to
		}
		lr := to.AppendEmpty()
		lr.SetTimestamp(o.stamp(l.Time))
		lr.SetObservedTimestamp(o.stamp(l.Time))
		lr.SetSeverityNumber(plog.SeverityNumber(l.Severity))
		lr.SetSeverityText(l.Severity.String())
		lr.Body().SetStr(l.Body)
		lr.SetEventName(l.EventName)
		lr.SetTraceID(pcommon.TraceID(l.Trace))
		lr.SetSpanID(pcommon.SpanID(l.Span))
		l.Attributes.put(lr.Attributes())
	}
	return ld
}

// Metrics returns the points of the window.
func (o OTLP) Metrics(series []*Series, w Window) pmetric.Metrics {
	md := pmetric.NewMetrics()
	of := map[*Source]pmetric.MetricSlice{}
	type key struct {
		source *Source
		name   string
	}
	metrics := map[key]pmetric.Metric{}
	for _, s := range series {
		for i := range s.Points {
			p := &s.Points[i]
			if !w.has(p.Time) {
				continue
			}
			m, ok := metrics[key{s.Source, s.Name}]
			if !ok {
				to, known := of[s.Source]
				if !known {
					rm := md.ResourceMetrics().AppendEmpty()
					s.Source.Resource.put(rm.Resource().Attributes())
					sm := rm.ScopeMetrics().AppendEmpty()
					sm.Scope().SetName(scope)
					to = sm.Metrics()
					of[s.Source] = to
				}
				m = to.AppendEmpty()
				m.SetName(s.Name)
				m.SetUnit(s.Unit)
				s.form(m)
				metrics[key{s.Source, s.Name}] = m
			}
			o.point(s, p, m)
		}
	}
	return md
}

// form makes m a metric of the series' type.
func (s *Series) form(m pmetric.Metric) {
	switch s.Type {
	case Gauge:
		m.SetEmptyGauge()
	case Counter:
		sum := m.SetEmptySum()
		sum.SetIsMonotonic(true)
		sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	case Histogram:
		m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	}
}

func (o OTLP) point(s *Series, p *Point, m pmetric.Metric) {
	if s.Type == Histogram {
		h := m.Histogram().DataPoints().AppendEmpty()
		h.SetTimestamp(o.stamp(p.Time))
		h.SetStartTimestamp(o.stamp(s.Start))
		h.SetCount(p.Count)
		h.SetSum(p.Value)
		h.ExplicitBounds().FromRaw(s.Bounds)
		h.BucketCounts().FromRaw(p.Hits)
		s.Labels.put(h.Attributes())
		return
	}
	points := pmetric.NumberDataPointSlice{}
	if s.Type == Counter {
		points = m.Sum().DataPoints()
	} else {
		points = m.Gauge().DataPoints()
	}
	n := points.AppendEmpty()
	n.SetTimestamp(o.stamp(p.Time))
	if s.Type == Counter {
		n.SetStartTimestamp(o.stamp(s.Start))
	}
	n.SetDoubleValue(p.Value)
	s.Labels.put(n.Attributes())
}
