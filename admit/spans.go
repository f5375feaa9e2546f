package admit

import (
	"fmt"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"inquest/record"
)

// Spans removes from td the spans that cannot be stored, and scopes and
// resources without any; see [Logs]. A span that ends before it starts is kept,
// with a warning.
func Spans(td ptrace.Traces, b Bounds, received int64, rep *Report) (kept int) {
	var a admission
	return a.spans(td, b, received, rep)
}

func (a *admission) spans(td ptrace.Traces, b Bounds, received int64, rep *Report) (kept int) {
	a.begin("span", b, received, rep)
	td.ResourceSpans().RemoveIf(func(rs ptrace.ResourceSpans) bool {
		var res extent
		res.attributes(rs.Resource().Attributes())
		rs.ScopeSpans().RemoveIf(func(ss ptrace.ScopeSpans) bool {
			sh := sharedOf(res, rs.Resource(), ss.Scope())
			refused := refusedSpans{a: a, sh: &sh}
			defer refused.end()
			if sh.unfit() {
				a.refuseAll(&sh, ss.Spans().Len())
				for _, sp := range ss.Spans().All() {
					refused.add(sp)
				}
				return true
			}
			ss.Spans().RemoveIf(func(sp ptrace.Span) bool {
				if a.span(sp, &sh) {
					return false
				}
				refused.add(sp)
				return true
			})
			kept += ss.Spans().Len()
			return ss.Spans().Len() == 0
		})
		return rs.ScopeSpans().Len() == 0
	})
	a.end()
	return kept
}

func (a *admission) span(sp ptrace.Span, sh *shared) bool {
	if sp.TraceID() == (pcommon.TraceID{}) || sp.SpanID() == (pcommon.SpanID{}) {
		a.noID(sp)
		return false
	}
	if !a.inTime(record.SpanTime(sp, a.received)) {
		return false
	}
	own := spanExtent(sp)
	if !a.fits(&own, sh, func(whole bool) int { return spanSize(sp, sh, whole) }) {
		return false
	}
	if n := own.count + sh.count; n > record.MaxAttributes {
		a.manyAttributes(n)
	}
	if start, end := sp.StartTimestamp(), sp.EndTimestamp(); end < start && end != 0 {
		a.warn(endsBeforeStart, 1, func() string {
			return fmt.Sprintf("span %q ends %d ns before it starts, its duration is stored as negative: check the sender's clock", sp.Name(), start-end)
		})
	}
	return true
}

// noID rejects a span without the ids that OTLP demands: nothing could be joined
// to it.
func (a *admission) noID(sp ptrace.Span) {
	what := "traceId"
	if sp.TraceID() != (pcommon.TraceID{}) {
		what = "spanId"
	}
	a.reject(noID, 1, func() string { return "span: " + what + " is missing or all zero" })
}

func spanExtent(sp ptrace.Span) extent {
	var e extent
	e.attributes(sp.Attributes())
	e.text(sp.Name())
	e.text(sp.Status().Message())
	e.text(sp.TraceState().AsRaw())
	own := e.count
	for _, ev := range sp.Events().All() {
		e.size += rowBound / 8
		e.text(ev.Name())
		e.attributes(ev.Attributes())
	}
	for _, link := range sp.Links().All() {
		e.size += rowBound / 8
		e.text(link.TraceState().AsRaw())
		e.attributes(link.Attributes())
	}
	e.count = own // those of events and links are not fields
	return e
}

func spanSize(sp ptrace.Span, sh *shared, whole bool) int {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	ss := rs.ScopeSpans().AppendEmpty()
	if whole {
		sh.resource.CopyTo(rs.Resource())
		sh.scope.CopyTo(ss.Scope())
	}
	sp.CopyTo(ss.Spans().AppendEmpty())
	return new(record.Converter).Spans(td, 1, 0)[0].Size()
}
