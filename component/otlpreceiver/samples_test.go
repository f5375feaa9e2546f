package otlpreceiver

import (
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/protobuf/encoding/protowire"
)

var (
	traceID = pcommon.TraceID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
	spanID  = pcommon.SpanID{1, 2, 3, 4, 5, 6, 7, 8}
)

// sampleLogs, sampleTraces and sampleMetrics use every field that OTLP has a
// message for. Each holds two resources.
func sampleLogs() plog.Logs {
	ld := plog.NewLogs()
	for _, name := range []string{"a", "b"} {
		rl := ld.ResourceLogs().AppendEmpty()
		rl.SetSchemaUrl("https://example.com/schema")
		rl.Resource().Attributes().PutStr("service.name", name)
		sl := rl.ScopeLogs().AppendEmpty()
		sl.Scope().SetName("scope")
		for i := range 3 {
			lr := sl.LogRecords().AppendEmpty()
			lr.SetTimestamp(pcommon.Timestamp(1e18 + i))
			lr.SetSeverityNumber(plog.SeverityNumberWarn)
			lr.Body().SetStr("message")
			lr.SetTraceID(traceID)
			lr.SetSpanID(spanID)
			putAll(lr.Attributes())
		}
	}
	return ld
}

func sampleTraces() ptrace.Traces {
	td := ptrace.NewTraces()
	for _, name := range []string{"a", "b"} {
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("service.name", name)
		ss := rs.ScopeSpans().AppendEmpty()
		ss.Scope().Attributes().PutBool("x", true)
		for i := range 3 {
			s := ss.Spans().AppendEmpty()
			s.SetTraceID(traceID)
			s.SetSpanID(pcommon.SpanID{byte(i + 1)})
			s.SetParentSpanID(spanID)
			s.SetName("GET /")
			s.SetStartTimestamp(1e18)
			s.SetEndTimestamp(1e18 + 5)
			putAll(s.Attributes())
			e := s.Events().AppendEmpty()
			e.SetName("event")
			putAll(e.Attributes())
			l := s.Links().AppendEmpty()
			l.SetTraceID(traceID)
			l.SetSpanID(spanID)
			s.Status().SetCode(ptrace.StatusCodeError)
		}
	}
	return td
}

func sampleMetrics() pmetric.Metrics {
	md := pmetric.NewMetrics()
	for _, name := range []string{"a", "b"} {
		rm := md.ResourceMetrics().AppendEmpty()
		rm.Resource().Attributes().PutStr("service.name", name)
		sm := rm.ScopeMetrics().AppendEmpty()
		add := func(name string) pmetric.Metric {
			m := sm.Metrics().AppendEmpty()
			m.SetName(name)
			m.SetUnit("s")
			putAll(m.Metadata())
			return m
		}
		for _, dps := range []pmetric.NumberDataPointSlice{
			add("gauge").SetEmptyGauge().DataPoints(),
			add("sum").SetEmptySum().DataPoints(),
		} {
			dps.AppendEmpty().SetDoubleValue(1.5)
			dp := dps.AppendEmpty()
			dp.SetIntValue(-3)
			putAll(dp.Attributes())
			ex := dp.Exemplars().AppendEmpty()
			ex.SetTraceID(traceID)
			ex.SetSpanID(spanID)
			ex.SetIntValue(1)
		}
		h := add("histogram").SetEmptyHistogram().DataPoints().AppendEmpty()
		h.BucketCounts().FromRaw([]uint64{1, 2, 3})
		h.ExplicitBounds().FromRaw([]float64{1, 2})
		h.SetMin(0)
		x := add("exponential").SetEmptyExponentialHistogram().DataPoints().AppendEmpty()
		x.Positive().BucketCounts().FromRaw([]uint64{1, 300})
		x.SetScale(-2)
		q := add("summary").SetEmptySummary().DataPoints().AppendEmpty()
		q.QuantileValues().AppendEmpty().SetQuantile(0.5)
	}
	return md
}

// putAll adds an attribute of each type.
func putAll(m pcommon.Map) {
	m.PutStr("s", "text with \xff and \"quotes\"")
	m.PutInt("i", -1)
	m.PutDouble("d", 0.1)
	m.PutBool("b", true)
	m.PutEmptyBytes("raw").FromRaw([]byte{0, 1, 2})
	m.PutEmptySlice("list").AppendEmpty().SetEmptyMap().PutStr("deep", "x")
	m.PutEmpty("empty")
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func protoOf[T any](s *signal[T], data T) []byte { return must(s.marshal(data)) }

// msg builds a field of protobuf that holds the concatenation of parts.
func msg(num protowire.Number, parts ...[]byte) []byte {
	b := protowire.AppendTag(nil, num, protowire.BytesType)
	return protowire.AppendBytes(b, slices.Concat(parts...))
}

// text builds a string field.
func text(num protowire.Number, s string) []byte { return msg(num, []byte(s)) }

// num builds a varint field.
func num(num protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, num, protowire.VarintType), v)
}

// Records as they stand within a scope.
var (
	goodLog  = msg(2, text(3, "INFO"), msg(9, traceID[:]))
	goodSpan = msg(2, msg(1, traceID[:]), msg(2, spanID[:]), text(5, "GET"))
	goodGage = msg(2, text(1, "m"), msg(5, msg(1, []byte{0x19, 1, 0, 0, 0, 0, 0, 0, 0})))
)

// inScope puts records into one scope of one resource of a request.
func inScope(records ...[]byte) []byte {
	return msg(1, msg(1, msg(1, text(1, "k"))), msg(2, msg(1, text(1, "scope")), slices.Concat(records...)))
}

// cut takes n bytes off the end.
func cut(b []byte, n int) []byte { return b[:len(b)-n] }

// jsonLogs, jsonSpans and jsonPoints put records into a JSON request.
func jsonLogs(records ...string) string {
	return `{"resourceLogs":[{"resource":{},"scopeLogs":[{"logRecords":[` + strings.Join(records, ",") + `]}]}]}`
}

func jsonSpans(records ...string) string {
	return `{"resource_spans":[{"scope_spans":[{"spans":[` + strings.Join(records, ",") + `]}]}]}`
}

func jsonPoints(records ...string) string {
	return `{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"m","gauge":{"dataPoints":[` + strings.Join(records, ",") + `]}}]}]}]}`
}

const jsonGoodSpan = `{"traceId":"0102030405060708090a0b0c0d0e0f10","spanId":"0102030405060708","name":"x"}`

func logsRequest(ld plog.Logs) response       { return plogotlp.NewExportRequestFromLogs(ld) }
func tracesRequest(td ptrace.Traces) response { return ptraceotlp.NewExportRequestFromTraces(td) }

func metricsRequest(md pmetric.Metrics) response { return pmetricotlp.NewExportRequestFromMetrics(md) }
