package admit

import (
	"fmt"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"inquest/record"
)

// A letter holds one record with its resource and scope. Where these are large,
// or the letters of a request take much room already, the records that are
// refused below one scope share a letter, so that letters take at most a few
// times the room of the request.
const (
	maxOwnShared = smallBound / 4               // of resource and scope, as [extent] counts
	maxOwnTotal  = 2 * int(record.MaxBatchSize) // of a request's letters
)

// together tells whether refused records share a letter.
func (a *admission) together(sh *shared) bool {
	return sh.size > maxOwnShared || a.rep.lettersSize() > maxOwnTotal
}

// letter keeps records refused for the last reason.
func (a *admission) letter(kind LetterKind, n int, t int64, sh *shared, encode func() ([]byte, error)) {
	l := Letter{Reason: a.lastCode, Rule: a.lastRule, Detail: a.lastText, Kind: kind, Records: n, Time: t}
	if n > 1 {
		l.Detail = fmt.Sprintf("%d records of one scope, the last because: %s", n, l.Detail)
	}
	l.Service = serviceOf(sh)
	data, err := encode()
	if l.Payload, l.Encoding = string(data), EncodingOTLP; err != nil {
		// What was decoded can be encoded; if not, say so.
		l.Payload, l.Encoding = err.Error(), EncodingText
	}
	a.rep.Put(l)
}

func serviceOf(sh *shared) string {
	v, ok := sh.resource.Attributes().Get("service.name")
	if !ok {
		return ""
	}
	return v.AsString()
}

// refusedLogs gathers the records refused below one scope.
type refusedLogs struct {
	a     *admission
	sh    *shared
	group plog.LogRecordSlice // of one letter
}

func (r *refusedLogs) add(lr plog.LogRecord) {
	switch {
	case r.a.rep == nil:
	case r.a.together(r.sh):
		if r.group == (plog.LogRecordSlice{}) {
			r.group = plog.NewLogRecordSlice()
		}
		lr.CopyTo(r.group.AppendEmpty())
	default:
		r.a.letter(r.a.kind, 1, record.LogTime(lr, 0), r.sh, func() ([]byte, error) {
			return (&plog.JSONMarshaler{}).MarshalLogs(r.below(func(to plog.LogRecordSlice) { lr.CopyTo(to.AppendEmpty()) }))
		})
	}
}

// end writes the letter of the group, if there is one.
func (r *refusedLogs) end() {
	if r.group == (plog.LogRecordSlice{}) {
		return
	}
	r.a.letter(r.a.kind, r.group.Len(), 0, r.sh, func() ([]byte, error) {
		return (&plog.JSONMarshaler{}).MarshalLogs(r.below(r.group.MoveAndAppendTo))
	})
}

// below returns a request with the scope and what fill puts below it.
func (r *refusedLogs) below(fill func(plog.LogRecordSlice)) plog.Logs {
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	sl := rl.ScopeLogs().AppendEmpty()
	r.sh.resource.CopyTo(rl.Resource())
	r.sh.scope.CopyTo(sl.Scope())
	fill(sl.LogRecords())
	return ld
}

// refusedSpans is [refusedLogs] for spans.
type refusedSpans struct {
	a     *admission
	sh    *shared
	group ptrace.SpanSlice
}

func (r *refusedSpans) add(sp ptrace.Span) {
	switch {
	case r.a.rep == nil:
	case r.a.together(r.sh):
		if r.group == (ptrace.SpanSlice{}) {
			r.group = ptrace.NewSpanSlice()
		}
		sp.CopyTo(r.group.AppendEmpty())
	default:
		r.a.letter(LetterSpan, 1, record.SpanTime(sp, 0), r.sh, func() ([]byte, error) {
			return (&ptrace.JSONMarshaler{}).MarshalTraces(r.below(func(to ptrace.SpanSlice) { sp.CopyTo(to.AppendEmpty()) }))
		})
	}
}

func (r *refusedSpans) end() {
	if r.group == (ptrace.SpanSlice{}) {
		return
	}
	r.a.letter(LetterSpan, r.group.Len(), 0, r.sh, func() ([]byte, error) {
		return (&ptrace.JSONMarshaler{}).MarshalTraces(r.below(r.group.MoveAndAppendTo))
	})
}

func (r *refusedSpans) below(fill func(ptrace.SpanSlice)) ptrace.Traces {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	ss := rs.ScopeSpans().AppendEmpty()
	r.sh.resource.CopyTo(rs.Resource())
	r.sh.scope.CopyTo(ss.Scope())
	fill(ss.Spans())
	return td
}

// refusePoint keeps a point; put appends it to a metric of its type.
func (a *admission) refusePoint(m pmetric.Metric, t int64, sh *shared, put func(pmetric.Metric)) {
	if a.rep == nil {
		return
	}
	if !a.together(sh) {
		one := pmetric.NewMetric()
		likeMetric(m, one)
		put(one)
		a.metricLetter(one, 1, t, sh)
		return
	}
	if a.group == (pmetric.Metric{}) {
		a.group = pmetric.NewMetric()
		likeMetric(m, a.group)
	}
	put(a.group)
}

// endMetric writes the letter of the points of one metric that share one.
func (a *admission) endMetric(sh *shared) {
	if a.group == (pmetric.Metric{}) {
		return
	}
	a.metricLetter(a.group, pointCount(a.group), 0, sh)
	a.group = pmetric.Metric{}
}

// refuseMetric keeps a metric that is refused as a whole.
func (a *admission) refuseMetric(m pmetric.Metric, sh *shared) {
	if a.rep != nil {
		a.metricLetter(m, pointCount(m), 0, sh)
	}
}

func (a *admission) metricLetter(m pmetric.Metric, n int, t int64, sh *shared) {
	a.letter(LetterPoint, n, t, sh, func() ([]byte, error) {
		md := pmetric.NewMetrics()
		rm := md.ResourceMetrics().AppendEmpty()
		sm := rm.ScopeMetrics().AppendEmpty()
		sh.resource.CopyTo(rm.Resource())
		sh.scope.CopyTo(sm.Scope())
		m.CopyTo(sm.Metrics().AppendEmpty())
		return (&pmetric.JSONMarshaler{}).MarshalMetrics(md)
	})
}

// likeMetric makes to what m is, without its points.
func likeMetric(m, to pmetric.Metric) {
	to.SetName(m.Name())
	to.SetUnit(m.Unit())
	to.SetDescription(m.Description())
	m.Metadata().CopyTo(to.Metadata())
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		to.SetEmptyGauge()
	case pmetric.MetricTypeSum:
		sum := to.SetEmptySum()
		sum.SetIsMonotonic(m.Sum().IsMonotonic())
		sum.SetAggregationTemporality(m.Sum().AggregationTemporality())
	case pmetric.MetricTypeHistogram:
		to.SetEmptyHistogram().SetAggregationTemporality(m.Histogram().AggregationTemporality())
	case pmetric.MetricTypeExponentialHistogram:
		to.SetEmptyExponentialHistogram().SetAggregationTemporality(m.ExponentialHistogram().AggregationTemporality())
	case pmetric.MetricTypeSummary:
		to.SetEmptySummary()
	}
}
