package api

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"inquest/api/apitype"
	"inquest/record"
)

// writeOTLP answers with a trace as OTLP-JSON. Attributes are strings, as the
// records keep them.
func writeOTLP(w http.ResponseWriter, t *apitype.Trace) error {
	data, err := (&ptrace.JSONMarshaler{}).MarshalTraces(otlpTrace(t))
	if err != nil {
		return fmt.Errorf("cannot encode the trace: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	_, err = w.Write(data)
	return err
}

func otlpTrace(t *apitype.Trace) ptrace.Traces {
	td := ptrace.NewTraces()
	resources := map[string]ptrace.ResourceSpans{}
	scopes := map[string]ptrace.ScopeSpans{}
	for i := range t.Spans {
		sp := &t.Spans[i]
		key := mapKey(sp.Resource)
		rs, ok := resources[key]
		if !ok {
			rs = td.ResourceSpans().AppendEmpty()
			putStrings(rs.Resource().Attributes(), sp.Resource)
			resources[key] = rs
		}
		name, version := sp.Attributes[record.FieldScopeName], sp.Attributes[record.FieldScopeVersion]
		key += "\x00" + name + "\x00" + version
		ss, ok := scopes[key]
		if !ok {
			ss = rs.ScopeSpans().AppendEmpty()
			ss.Scope().SetName(name)
			ss.Scope().SetVersion(version)
			scopes[key] = ss
		}
		otlpSpan(ss.Spans().AppendEmpty(), t.TraceID, sp)
	}
	return td
}

func mapKey(m map[string]string) string {
	var b strings.Builder
	for _, k := range sortedKeys(m) {
		b.WriteString(strconv.Quote(k) + strconv.Quote(m[k]))
	}
	return b.String()
}

func putStrings(dst pcommon.Map, src map[string]string) {
	for _, k := range sortedKeys(src) {
		dst.PutStr(k, src[k])
	}
}

// scopeFields are attributes of [apitype.Span] that OTLP has a place for.
var scopeFields = []string{record.FieldScopeName, record.FieldScopeVersion, record.FieldTraceState, record.FieldFlags}

func otlpSpan(dst ptrace.Span, traceID string, sp *apitype.Span) {
	dst.SetTraceID(otlpTraceID(traceID))
	dst.SetSpanID(otlpSpanID(sp.SpanID))
	dst.SetParentSpanID(otlpSpanID(sp.ParentSpanID))
	dst.SetName(sp.Name)
	dst.SetKind(otlpKind(sp.Kind))
	start := sp.Start.UnixNano()
	dst.SetStartTimestamp(pcommon.Timestamp(start))
	dst.SetEndTimestamp(pcommon.Timestamp(start + sp.DurationNS))
	switch sp.Status {
	case "ok":
		dst.Status().SetCode(ptrace.StatusCodeOk)
	case "error":
		dst.Status().SetCode(ptrace.StatusCodeError)
	}
	dst.Status().SetMessage(sp.StatusMessage)
	dst.TraceState().FromRaw(sp.Attributes[record.FieldTraceState])
	if flags, err := strconv.ParseUint(sp.Attributes[record.FieldFlags], 10, 32); err == nil {
		dst.SetFlags(uint32(flags))
	}
	for _, k := range sortedKeys(sp.Attributes) {
		if !slices.Contains(scopeFields, k) {
			dst.Attributes().PutStr(k, sp.Attributes[k])
		}
	}
	for _, e := range sp.Events {
		ev := dst.Events().AppendEmpty()
		ev.SetTimestamp(pcommon.Timestamp(e.TimeNS))
		ev.SetName(e.Name)
		putAny(ev.Attributes(), e.Attributes)
	}
	for _, l := range sp.Links {
		link := dst.Links().AppendEmpty()
		link.SetTraceID(otlpTraceID(l.TraceID))
		link.SetSpanID(otlpSpanID(l.SpanID))
		putAny(link.Attributes(), l.Attributes)
	}
}

func putAny(dst pcommon.Map, src map[string]any) {
	for _, k := range sortedKeys(src) {
		if err := dst.PutEmpty(k).FromRaw(plainNumbers(src[k])); err != nil {
			dst.PutStr(k, anyText(src[k]))
		}
	}
}

// plainNumbers replaces numbers in their written form, in lists and maps too.
func plainNumbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, err := v.Float64()
		if err != nil {
			return v.String()
		}
		return f
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = plainNumbers(v[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k := range v {
			out[k] = plainNumbers(v[k])
		}
		return out
	default:
		return v
	}
}

func otlpKind(kind string) ptrace.SpanKind {
	switch kind {
	case "server":
		return ptrace.SpanKindServer
	case "client":
		return ptrace.SpanKindClient
	case "producer":
		return ptrace.SpanKindProducer
	case "consumer":
		return ptrace.SpanKindConsumer
	case "internal":
		return ptrace.SpanKindInternal
	default:
		return ptrace.SpanKindUnspecified
	}
}

// otlpTraceID and otlpSpanID give the empty id for text that is none: ids that
// a sender got wrong are kept in the records as they came.
func otlpTraceID(s string) (id pcommon.TraceID) {
	if len(s) == 2*len(id) {
		if b, err := hex.DecodeString(s); err == nil {
			copy(id[:], b)
		}
	}
	return id
}

func otlpSpanID(s string) (id pcommon.SpanID) {
	if len(s) == 2*len(id) {
		if b, err := hex.DecodeString(s); err == nil {
			copy(id[:], b)
		}
	}
	return id
}
