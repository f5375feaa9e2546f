package nezha

import (
	"cmp"
	"context"
	"encoding/hex"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// batch bounds the records of one request.
const batch = 2000

// Request is one OpenTelemetry request; one of the three is set.
type Request struct {
	Logs    *plog.Logs
	Traces  *ptrace.Traces
	Metrics *pmetric.Metrics
}

// Requests gives the whole data set as OpenTelemetry requests of at most 2000
// records each: per day traces and logs minute by minute, then metrics by time. An error
// of fn ends it and is returned as it is. Records that neighbouring files repeat
// come once.
func Requests(ctx context.Context, dir string, fn func(context.Context, Request) error) error {
	sessions, err := openSessions(dir)
	if err != nil {
		return err
	}
	for _, s := range sessions {
		src := &Source{s: s}
		if err := src.loadNodes(); err != nil {
			return err
		}
		seen := map[string]bool{}
		for _, m := range s.minutes {
			// A minute's records repeat those of the one before only.
			past := seen
			seen = map[string]bool{}
			if err := s.sendSpans(ctx, m, past, seen, fn); err != nil {
				return err
			}
			if err := s.sendLogs(ctx, m, past, seen, fn); err != nil {
				return err
			}
		}
		if err := s.sendMetrics(ctx, fn); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) sendSpans(ctx context.Context, m minute, past, seen map[string]bool, fn func(context.Context, Request) error) error {
	in := interner{}
	td := ptrace.NewTraces()
	pods := map[string]ptrace.SpanSlice{}
	flush := func() error {
		if td.SpanCount() == 0 {
			return nil
		}
		err := fn(ctx, Request{Traces: &td})
		td, pods = ptrace.NewTraces(), map[string]ptrace.SpanSlice{}
		return err
	}
	err := eachRow(m.traces, 8, func(row []string) error {
		x, err := parseSpan(row, in.share)
		if err != nil {
			return err
		}
		id := x.traceID + x.spanID
		if past[id] || seen[id] {
			return nil
		}
		seen[id] = true
		spans, ok := pods[x.pod]
		if !ok {
			rs := td.ResourceSpans().AppendEmpty()
			s.resource(rs.Resource(), x.service, x.pod, "")
			spans = rs.ScopeSpans().AppendEmpty().Spans()
			pods[x.pod] = spans
		}
		putSpan(spans.AppendEmpty(), x)
		if td.SpanCount() >= batch {
			return flush()
		}
		return nil
	})
	if err != nil {
		return err
	}
	return flush()
}

func putSpan(sp ptrace.Span, x spanRow) {
	sp.SetTraceID(traceID(x.traceID))
	sp.SetSpanID(spanID(x.spanID))
	sp.SetParentSpanID(spanID(x.parent))
	sp.SetName(x.name)
	sp.SetStartTimestamp(pcommon.Timestamp(x.start))
	sp.SetEndTimestamp(pcommon.Timestamp(x.end))
	if x.kind == "client" {
		sp.SetKind(ptrace.SpanKindClient)
	}
	if x.namespace != "" {
		sp.Attributes().PutStr("db.namespace", x.namespace)
		sp.Attributes().PutStr("db.collection.name", x.table)
	}
}

func (s *session) sendLogs(ctx context.Context, m minute, past, seen map[string]bool, fn func(context.Context, Request) error) error {
	in := interner{}
	ld := plog.NewLogs()
	pods := map[string]plog.LogRecordSlice{}
	flush := func() error {
		if ld.LogRecordCount() == 0 {
			return nil
		}
		err := fn(ctx, Request{Logs: &ld})
		ld, pods = plog.NewLogs(), map[string]plog.LogRecordSlice{}
		return err
	}
	err := eachRow(m.logs, 8, func(row []string) error {
		x, err := parseLog(row, in.share)
		if err != nil {
			return err
		}
		id := row[0] + x.spanID + x.body
		if past[id] || seen[id] {
			return nil
		}
		seen[id] = true
		records, ok := pods[x.pod]
		if !ok {
			rl := ld.ResourceLogs().AppendEmpty()
			s.resource(rl.Resource(), x.service, x.pod, x.container)
			records = rl.ScopeLogs().AppendEmpty().LogRecords()
			pods[x.pod] = records
		}
		lr := records.AppendEmpty()
		lr.SetTimestamp(pcommon.Timestamp(x.time))
		lr.SetObservedTimestamp(pcommon.Timestamp(x.time))
		lr.SetTraceID(traceID(x.traceID))
		lr.SetSpanID(spanID(x.spanID))
		lr.SetSeverityText(x.severity)
		lr.SetSeverityNumber(plog.SeverityNumber(x.number))
		lr.Body().SetStr(x.body)
		if x.function != "" {
			lr.Attributes().PutStr("code.function", x.function)
			lr.Attributes().PutStr("code.lineno", x.line)
		}
		if ld.LogRecordCount() >= batch {
			return flush()
		}
		return nil
	})
	if err != nil {
		return err
	}
	return flush()
}

func (s *session) sendMetrics(ctx context.Context, fn func(context.Context, Request) error) error {
	md := pmetric.NewMetrics()
	type owner struct{ service, pod, node string }
	type series struct {
		owner owner
		name  string
	}
	resources := map[owner]pmetric.MetricSlice{}
	gauges := map[series]pmetric.NumberDataPointSlice{}
	points := 0
	flush := func() error {
		if points == 0 {
			return nil
		}
		err := fn(ctx, Request{Metrics: &md})
		md, points = pmetric.NewMetrics(), 0
		clear(resources)
		clear(gauges)
		return err
	}
	put := func(x sample) error {
		o := owner{x.service, x.pod, x.node}
		id := series{o, x.column.name}
		g, ok := gauges[id]
		if !ok {
			ms, ok := resources[o]
			if !ok {
				rm := md.ResourceMetrics().AppendEmpty()
				s.resource(rm.Resource(), x.service, x.pod, "")
				if x.node != "" {
					rm.Resource().Attributes().PutStr("k8s.node.name", x.node)
				}
				ms = rm.ScopeMetrics().AppendEmpty().Metrics()
				resources[o] = ms
			}
			m := ms.AppendEmpty()
			m.SetName(x.column.name)
			m.SetUnit(x.column.unit)
			g = m.SetEmptyGauge().DataPoints()
			gauges[id] = g
		}
		p := g.AppendEmpty()
		p.SetTimestamp(pcommon.Timestamp(x.time))
		p.SetDoubleValue(x.value)
		for k, v := range x.column.labels {
			p.Attributes().PutStr(k, v)
		}
		if points++; points >= batch {
			return flush()
		}
		return nil
	}
	// The files are by pod; stores want points by time.
	var all []sample
	err := s.eachSample(ctx, func(x sample) error {
		all = append(all, x)
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortStableFunc(all, func(a, b sample) int { return cmp.Compare(a.time, b.time) })
	for _, x := range all {
		if err := put(x); err != nil {
			return err
		}
	}
	return flush()
}

// resource names who speaks.
func (s *session) resource(r pcommon.Resource, service, pod, container string) {
	for _, a := range [][2]string{
		{"service.name", service}, {"k8s.pod.name", pod}, {"k8s.node.name", s.nodes[pod]}, {"k8s.container.name", container},
	} {
		if a[1] != "" {
			r.Attributes().PutStr(a[0], a[1])
		}
	}
}

func traceID(s string) (id pcommon.TraceID) {
	if raw, err := hex.DecodeString(s); err == nil {
		copy(id[:], raw)
	}
	return id
}

func spanID(s string) (id pcommon.SpanID) {
	if raw, err := hex.DecodeString(s); err == nil {
		copy(id[:], raw)
	}
	return id
}
