// Package replay sends what a [sensor.Source] holds over OTLP, so that public
// recordings reach a recorder on the way of live data.
package replay

import (
	"encoding/hex"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"inquest/sensor"
)

// origin is what becomes the resource.
type origin struct{ service, pod, node string }

func (o origin) put(attrs pcommon.Map) {
	for _, kv := range [][2]string{{"service.name", o.service}, {"k8s.pod.name", o.pod}, {"k8s.node.name", o.node}} {
		if kv[1] != "" {
			attrs.PutStr(kv[0], kv[1])
		}
	}
}

// groups hands out one group of records for each origin of a batch.
type groups[G any] struct {
	made map[origin]G
	make func(origin) G
}

func newGroups[G any](build func(origin) G) groups[G] {
	return groups[G]{made: map[origin]G{}, make: build}
}

func (g groups[G]) of(o origin) G {
	if _, ok := g.made[o]; !ok {
		g.made[o] = g.make(o)
	}
	return g.made[o]
}

func tracesOf(spans []sensor.Span) ptrace.Traces {
	td := ptrace.NewTraces()
	by := newGroups(func(o origin) ptrace.SpanSlice {
		rs := td.ResourceSpans().AppendEmpty()
		o.put(rs.Resource().Attributes())
		return rs.ScopeSpans().AppendEmpty().Spans()
	})
	for _, s := range spans {
		sp := by.of(origin{s.Service, s.Pod, s.Node}).AppendEmpty()
		sp.SetTraceID(traceID(s.TraceID))
		sp.SetSpanID(spanID(s.SpanID))
		sp.SetParentSpanID(spanID(s.Parent))
		sp.SetName(s.Name)
		sp.SetKind(kinds[s.Kind])
		sp.SetStartTimestamp(pcommon.Timestamp(s.Start))
		sp.SetEndTimestamp(pcommon.Timestamp(s.End()))
		if s.Error {
			sp.Status().SetCode(ptrace.StatusCodeError)
		}
		putAll(sp.Attributes(), s.Attributes)
	}
	return td
}

var kinds = map[string]ptrace.SpanKind{
	"server": ptrace.SpanKindServer, "client": ptrace.SpanKindClient, "producer": ptrace.SpanKindProducer,
	"consumer": ptrace.SpanKindConsumer, "internal": ptrace.SpanKindInternal,
}

func logsOf(logs []sensor.Log) plog.Logs {
	ld := plog.NewLogs()
	by := newGroups(func(o origin) plog.LogRecordSlice {
		rl := ld.ResourceLogs().AppendEmpty()
		o.put(rl.Resource().Attributes())
		return rl.ScopeLogs().AppendEmpty().LogRecords()
	})
	for _, l := range logs {
		lr := by.of(origin{l.Service, l.Pod, l.Node}).AppendEmpty()
		lr.SetTimestamp(pcommon.Timestamp(l.Time))
		lr.SetTraceID(traceID(l.TraceID))
		lr.SetSpanID(spanID(l.SpanID))
		lr.SetSeverityNumber(plog.SeverityNumber(l.Severity))
		lr.Body().SetStr(l.Body)
		putAll(lr.Attributes(), l.Attributes)
		if l.Code != "" && l.Attributes["code.function.name"] == "" {
			lr.Attributes().PutStr("code.function.name", l.Code)
		}
	}
	return ld
}

func metricsOf(series []sensor.Series) pmetric.Metrics {
	md := pmetric.NewMetrics()
	by := newGroups(func(o origin) pmetric.MetricSlice {
		rm := md.ResourceMetrics().AppendEmpty()
		o.put(rm.Resource().Attributes())
		return rm.ScopeMetrics().AppendEmpty().Metrics()
	})
	for _, s := range series {
		o := origin{s.Labels["service.name"], s.Labels["k8s.pod.name"], s.Labels["k8s.node.name"]}
		m := by.of(o).AppendEmpty()
		m.SetName(s.Name)
		m.SetUnit(s.Unit)
		var points pmetric.NumberDataPointSlice
		if s.Counter {
			sum := m.SetEmptySum()
			sum.SetIsMonotonic(true)
			sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			points = sum.DataPoints()
		} else {
			points = m.SetEmptyGauge().DataPoints()
		}
		for _, p := range s.Points {
			dp := points.AppendEmpty()
			dp.SetTimestamp(pcommon.Timestamp(p.Time))
			dp.SetDoubleValue(p.Value)
			putAll(dp.Attributes(), s.Labels, "service.name", "k8s.pod.name", "k8s.node.name")
		}
	}
	return md
}

func putAll(dst pcommon.Map, attrs map[string]string, except ...string) {
	names := make([]string, 0, len(attrs))
	for name := range attrs {
		if !slices.Contains(except, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		dst.PutStr(name, attrs[name])
	}
}

func traceID(s string) (id pcommon.TraceID) {
	decode(id[:], s)
	return id
}

func spanID(s string) (id pcommon.SpanID) {
	decode(id[:], s)
	return id
}

// decode leaves an id of zeros where s is none.
func decode(id []byte, s string) {
	if len(s) != 2*len(id) {
		return
	}
	if _, err := hex.Decode(id, []byte(s)); err != nil {
		clear(id)
	}
}
