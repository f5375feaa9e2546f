package record

import (
	"strconv"

	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Spans returns one row for each span of td, in order; see [Converter.Logs].
func (c *Converter) Spans(td ptrace.Traces, seq uint64, received int64) []Row {
	c.reset(seq)
	for _, rs := range td.ResourceSpans().All() {
		c.setResource(TypeSpan, rs.Resource().Attributes())
		for _, ss := range rs.ScopeSpans().All() {
			c.setScope(ss.Scope())
			for _, sp := range ss.Spans().All() {
				c.begin()
				c.span(sp)
				c.attributes(sp.Attributes())
				c.finish(SpanTime(sp, received))
			}
		}
	}
	return c.rows
}

// SpanTime is the time of a span in ns: its start, else its end, else when it
// was received.
func SpanTime(sp ptrace.Span, received int64) int64 {
	switch {
	case sp.StartTimestamp() != 0:
		return nanos(sp.StartTimestamp())
	case sp.EndTimestamp() != 0:
		return nanos(sp.EndTimestamp())
	default:
		return received
	}
}

func (c *Converter) span(sp ptrace.Span) {
	traceID, spanID, parentID := sp.TraceID(), sp.SpanID(), sp.ParentSpanID()
	c.own(FieldTraceID, c.texts.id(traceID[:]))
	c.own(FieldSpanID, c.texts.id(spanID[:]))
	c.own(FieldParentSpanID, c.texts.id(parentID[:]))
	c.own(FieldTraceState, valid(sp.TraceState().AsRaw()))
	c.number(FieldFlags, int64(sp.Flags()))
	c.own(FieldName, valid(sp.Name()))
	c.own(FieldSpanKind, kindName(sp.Kind()))
	c.own(FieldStatus, statusName(sp.Status().Code()))
	c.own(FieldStatusMessage, valid(sp.Status().Message()))
	if sp.StartTimestamp() != 0 && sp.EndTimestamp() != 0 {
		c.own(FieldDuration, c.texts.int(nanos(sp.EndTimestamp())-nanos(sp.StartTimestamp())))
	}
	if sp.Events().Len() > 0 {
		c.own(FieldEvents, c.events(sp.Events()))
	}
	if sp.Links().Len() > 0 {
		c.own(FieldLinks, c.links(sp.Links()))
	}
	c.number(FieldDroppedAttributes, int64(sp.DroppedAttributesCount()))
	c.number(FieldDroppedEvents, int64(sp.DroppedEventsCount()))
	c.number(FieldDroppedLinks, int64(sp.DroppedLinksCount()))
}

func kindName(k ptrace.SpanKind) string {
	switch k {
	case ptrace.SpanKindServer:
		return "server"
	case ptrace.SpanKindClient:
		return "client"
	case ptrace.SpanKindProducer:
		return "producer"
	case ptrace.SpanKindConsumer:
		return "consumer"
	case ptrace.SpanKindInternal:
		return "internal"
	}
	return ""
}

func statusName(s ptrace.StatusCode) string {
	switch s {
	case ptrace.StatusCodeOk:
		return "ok"
	case ptrace.StatusCodeError:
		return "error"
	}
	return ""
}

func (c *Converter) events(events ptrace.SpanEventSlice) string {
	t := &c.texts
	b := append(t.scratch[:0], '[')
	for i, ev := range events.All() {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(append(b, `{"time_ns":`...), nanos(ev.Timestamp()), 10)
		b = appendQuoted(append(b, `,"name":`...), ev.Name())
		if ev.Attributes().Len() > 0 {
			b = t.appendMap(append(b, `,"attributes":`...), ev.Attributes(), (*texts).appendJSON)
		}
		b = append(b, '}')
	}
	t.scratch = append(b, ']')
	return t.take(t.scratch)
}

func (c *Converter) links(links ptrace.SpanLinkSlice) string {
	t := &c.texts
	b := append(t.scratch[:0], '[')
	for i, link := range links.All() {
		if i > 0 {
			b = append(b, ',')
		}
		traceID, spanID := link.TraceID(), link.SpanID()
		b = appendHex(append(b, `{"trace_id":"`...), traceID[:])
		b = appendHex(append(b, `","span_id":"`...), spanID[:])
		b = append(b, '"')
		if s := link.TraceState().AsRaw(); s != "" {
			b = appendQuoted(append(b, `,"trace_state":`...), s)
		}
		if link.Attributes().Len() > 0 {
			b = t.appendMap(append(b, `,"attributes":`...), link.Attributes(), (*texts).appendJSON)
		}
		b = append(b, '}')
	}
	t.scratch = append(b, ']')
	return t.take(t.scratch)
}
