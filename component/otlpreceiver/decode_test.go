package otlpreceiver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"

	"inquest/admit"
)

// outcome decodes body and says how many records were kept and refused, with
// the report's text, or the error.
func outcome[T any](s *signal[T], body []byte, enc encoding) string {
	_, report := admit.WithReport(context.Background())
	data, err := s.decode(body, enc, report)
	if err != nil {
		var r *refusal
		if !errors.As(err, &r) {
			return "not a refusal: " + err.Error()
		}
		return fmt.Sprintf("%d %s", r.http, r.text)
	}
	return strings.TrimSpace(fmt.Sprintf("%d kept %d refused %s", s.count(data), report.Rejected(), report.Message()))
}

func TestDecodeProtoLogs(t *testing.T) {
	f := func(name string, body []byte, want string) {
		t.Helper()
		if got := outcome(logsSignal, body, protobuf); got != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
	}
	f("empty", nil, "0 kept 0 refused")
	f("good", inScope(goodLog, goodLog), "2 kept 0 refused")
	f("samples", protoOf(logsSignal, sampleLogs()), "6 kept 0 refused")
	f("short trace id", inScope(goodLog, msg(2, msg(9, traceID[:5])), goodLog),
		"2 kept 1 refused 1 rejected: log record: traceId: a trace id must have 16 bytes")
	f("long span id", inScope(msg(2, msg(10, traceID[:9])), goodLog),
		"1 kept 1 refused 1 rejected: log record: spanId: a span id must have 8 bytes")
	f("wrong wire type", inScope(goodLog, msg(2, num(1, 5))),
		"1 kept 1 refused 1 rejected: log record: timeUnixNano: wrong wireType = 0 for field TimeUnixNano")
	f("record that is no message", inScope(goodLog, text(2, "\xff\xff\xff"), goodLog),
		"2 kept 1 refused 1 rejected: log record: it breaks where a field should begin")
	f("field longer than its record", inScope(msg(2, []byte{0x1a, 9, 'x'}), goodLog),
		"1 kept 1 refused 1 rejected: log record: severityText is longer than the log record")
	f("bad attribute", inScope(msg(2, msg(6, text(1, "k"), []byte{0x12, 2, 0x0a, 9})), goodLog),
		"1 kept 1 refused 1 rejected: log record: attributes: it ends too early")
	f("record with another wire type", inScope(goodLog, num(2, 7)),
		"1 kept 1 refused 1 rejected: log record: wire type is 0, want 2")
	f("unknown fields", inScope(msg(2, text(900, "x"), num(901, 1)), num(77, 3)), "1 kept 0 refused")
	f("invalid UTF-8", inScope(msg(2, text(3, "\xff\xfe"))), "1 kept 0 refused")
	f("deprecated scope", msg(1, msg(1000, goodLog, msg(2, msg(9, traceID[:1])))),
		"1 kept 1 refused 1 rejected: log record: traceId: a trace id must have 16 bytes")
	f("broken scope keeps its siblings", msg(1, msg(2, goodLog, []byte{0x12, 99, 1}), msg(2, goodLog)),
		"2 kept 1 refused 1 rejected: ScopeLogs cannot be read on from byte 30 of the request")
	f("bad resource", bytes.Join([][]byte{msg(1, msg(1, num(1, 1)), msg(2, goodLog, goodLog)), inScope(goodLog)}, nil),
		"1 kept 2 refused 2 rejected: ResourceLogs: resource: wrong wireType = 0 for field Attributes")
	f("cut off", cut(inScope(goodLog), 1),
		fmt.Sprintf("400 request is not an OTLP protobuf message: it breaks at byte 0 of %d", len(inScope(goodLog))-1))
	f("second resource cut off", append(inScope(goodLog), cut(inScope(goodLog), 3)...),
		fmt.Sprintf("400 request is not an OTLP protobuf message: it breaks at byte %d of %d", len(inScope(goodLog)), 2*len(inScope(goodLog))-3))
	f("text", []byte("hello, world"), "400 request is not an OTLP protobuf message: it breaks at byte 2 of 12")
}

func TestDecodeProtoSpansAndPoints(t *testing.T) {
	f := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("\n got %s\nwant %s", got, want)
		}
	}
	spans := func(records ...[]byte) string { return outcome(tracesSignal, inScope(records...), protobuf) }
	f(outcome(tracesSignal, protoOf(tracesSignal, sampleTraces()), protobuf), "6 kept 0 refused")
	f(spans(goodSpan, msg(2, msg(1, traceID[:3]), msg(2, spanID[:]))),
		"1 kept 1 refused 1 rejected: span: traceId: a trace id must have 16 bytes")
	f(spans(msg(2), goodSpan, msg(2, msg(1, traceID[:2]))),
		"2 kept 1 refused 1 rejected: span: traceId: a trace id must have 16 bytes")
	f(spans(msg(2, msg(1, traceID[:]), msg(2, spanID[:]), msg(13, msg(1, traceID[:1]))), goodSpan),
		"1 kept 1 refused 1 rejected: span: links: a trace id must have 16 bytes")

	points := func(records ...[]byte) string { return outcome(metricsSignal, inScope(records...), protobuf) }
	f(outcome(metricsSignal, protoOf(metricsSignal, sampleMetrics()), protobuf), "14 kept 0 refused")
	f(points(goodGage, msg(2, text(1, "n"), msg(7, msg(1, num(3, 1)), msg(1)))),
		"2 kept 1 refused 1 rejected: data point: timeUnixNano: wrong wireType = 0 for field TimeUnixNano")
	f(points(goodGage, msg(2, num(1, 1), msg(7, msg(1), msg(1)))),
		"1 kept 2 refused 2 rejected: metric: name: wrong wireType = 0 for field Name")
	f(points(msg(2, msg(9, msg(1, text(6, "odd")), msg(1))), msg(2, msg(10, msg(1, msg(8, num(1, 1)), msg(11, msg(5, spanID[:2])))))),
		"1 kept 2 refused 1 rejected: exponential histogram data point: exemplars: a trace id must have 16 bytes; "+
			"1 rejected: histogram data point: bucketCounts: invalid field len = 3 for field BucketCounts")
}

func TestDecodeJSON(t *testing.T) {
	f := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("\n got %s\nwant %s", got, want)
		}
	}
	logs := func(body string) string { return outcome(logsSignal, []byte(body), jsonText) }
	spans := func(records ...string) string {
		return outcome(tracesSignal, []byte(jsonSpans(records...)), jsonText)
	}
	points := func(records ...string) string {
		return outcome(metricsSignal, []byte(jsonPoints(records...)), jsonText)
	}
	f(logs(`{}`), "0 kept 0 refused")
	f(logs(jsonLogs(`{}`, `{"severityText":"x"}`)), "2 kept 0 refused")
	f(logs(jsonLogs(`{"traceId":"xyz"}`, `{}`)),
		"1 kept 1 refused 1 rejected: log record: traceId: must be a string of 32 hexadecimal digits")
	f(logs(jsonLogs(`{"traceId":null,"body":null}`, `{"attributes":[{"key":"a","value":null}]}`)), "2 kept 0 refused")
	f(logs(jsonLogs(`{"timeUnixNano":true}`, `{"severityNumber":"LOUD"}`, `{"timeUnixNano":"12x"}`, `{}`, `null`, `7`)),
		"2 kept 4 refused 1 rejected: log record is not an object; "+
			"1 rejected: log record: severityNumber: ReadEnumValue: unknown string value; "+
			"1 rejected: log record: timeUnixNano: ReadUint64: unsupported value type; "+
			"1 rejected: log record: timeUnixNano: a number is malformed or out of range")
	f(logs(`{"resourceLogs":[{"resource":{"attributes":[{"key":1}]},"scopeLogs":[{"logRecords":[{},{}]}]},{"scopeLogs":[{"logRecords":[{}]},5]}]}`),
		"1 kept 3 refused 2 rejected: ResourceLogs: resource: ReadString: expects \" or n, but found 1; 1 rejected: ScopeLogs is not an object")
	f(logs(`{"resourceLogs":[{"scopeLogs":{"logRecords":[{}]}},{"resource":null,"schemaUrl":null,"scopeLogs":[{"scope":null,"logRecords":[{}]}]}]}`),
		"1 kept 1 refused 1 rejected: scopeLogs is not a list")
	f(logs(`{"resourceLogs":null}`), "0 kept 0 refused")
	f(logs(`{"" : 1,"resourceLogs":[{"scopeLogs":[{"":{},"logRecords":[{},{"":5,"severityText":"x"}]}]}]}`), "2 kept 0 refused")
	f(logs("{\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":[{\"severityText\":\"\xff\"},{\"flags\":\"-1\"}]}]}]}"),
		"1 kept 1 refused 1 rejected: log record: flags: a number is malformed or out of range")

	f(logs(jsonSpans(jsonGoodSpan)),
		"0 kept 0 refused 1 noted: request has no resourceLogs but \"resource_spans\", which is ignored: was it sent to the right path?")
	f(logs(`{""`+strings.Repeat(" ", 1000)+`:1,"resourceLogs":[{"scopeLogs":[{"logRecords":[{}]}]}]}`), "1 kept 0 refused")

	f(logs(``), "400 request is not JSON: unexpected end of JSON input, at byte 0")
	f(logs(`{"resourceLogs":[{]}`), "400 request is not JSON: invalid character ']' looking for beginning of object key string, at byte 19")
	f(logs(`{"resourceLogs":[]} {"resourceLogs":[]}`), "400 request is not JSON: invalid character '{' after top-level value, at byte 21")
	f(logs(`[]`), "400 request is not an OTLP JSON message: it is not an object")
	f(logs(`"x"`), "400 request is not an OTLP JSON message: it is not an object")
	f(logs(`{"resourceLogs":7}`), "0 kept 1 refused 1 rejected: resourceLogs is not a list")

	f(spans(jsonGoodSpan, `{"traceId":"AQIDBAUGBwgJCgsMDQ4PEA==","spanId":"0102030405060708"}`),
		"1 kept 1 refused 1 rejected: span: traceId: must be a string of 32 hexadecimal digits, this looks like base64")
	f(spans(`{"traceId":"0102030405060708090a0b0c0d0e0f10","spanId":"AQIDBAUGBwg="}`, jsonGoodSpan),
		"1 kept 1 refused 1 rejected: span: spanId: must be a string of 16 hexadecimal digits, this looks like base64")
	f(spans(`{"trace_id":"0102030405060708090a0b0c0d0e0fzz","span_id":"0102030405060708"}`, jsonGoodSpan),
		"1 kept 1 refused 1 rejected: span: trace_id: must be a string of 32 hexadecimal digits")
	f(spans(`{"traceId":"00000000000000000000000000000000","spanId":"0102030405060708"}`, jsonGoodSpan, `{}`), "3 kept 0 refused")
	f(spans(strings.Replace(jsonGoodSpan, `"name"`, `"parentSpanId":null,"name"`, 1)), "1 kept 0 refused")
	f(spans(strings.Replace(jsonGoodSpan, `"name"`, `"links":[{"traceId":"1"}],"name"`, 1)),
		"0 kept 1 refused 1 rejected: span: links: an id is not hexadecimal digits of the right number")
	f(spans(strings.Replace(jsonGoodSpan, `"traceId"`, `"trace\u0049d"`, 1), `{"trace\u0049d":5}`),
		"1 kept 1 refused 1 rejected: span: traceId: must be a string of 32 hexadecimal digits")

	f(points(`{"asInt":"5"}`, `{"asInt":"x"}`, `{"asDouble":"NaN"}`),
		"2 kept 1 refused 1 rejected: data point: asInt: a number is malformed or out of range")
	f(points(`{"exemplars":[{"spanId":"zz"}]}`, `{}`),
		"1 kept 1 refused 1 rejected: data point: exemplars: an id is not hexadecimal digits of the right number")
	f(outcome(metricsSignal, []byte(`{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":5,"sum":{"dataPoints":[{},{}]}},{"gauge":[1]},{"gauge":{"dataPoints":[{}]}}]}]}]}`), jsonText),
		"1 kept 3 refused 2 rejected: metric: name: ReadString: expects \" or n, but found 5; 1 rejected: gauge is not an object")
}

// A record that protobuf could not hold must not be acknowledged: the journal
// keeps protobuf.
func TestDecodeJSONNesting(t *testing.T) {
	nested := func(depth int) string {
		return `{"body":` + strings.Repeat(`{"arrayValue":{"values":[`, depth) + `{"stringValue":"x"}` + strings.Repeat(`]}}`, depth) + `}`
	}
	f := func(depth int, want string) {
		t.Helper()
		if got := outcome(logsSignal, []byte(jsonLogs(`{}`, nested(depth))), jsonText); got != want {
			t.Errorf("depth %d:\n got %s\nwant %s", depth, got, want)
		}
	}
	f(20, "2 kept 0 refused")
	f(49, "2 kept 0 refused")
	f(50, "1 kept 1 refused 1 rejected: log record: body: nested too deeply")
	f(3000, "1 kept 1 refused 1 rejected: log record: body: nested too deeply")
	if testing.Short() {
		return
	}
	f(1_000_000, "400 request is not JSON: invalid character '{' exceeded max depth, at byte 83347")
}

func TestDecodeMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("decodes hundreds of megabytes")
	}
	f := func(got, wantPrefix string) {
		t.Helper()
		if !strings.HasPrefix(got, wantPrefix) {
			t.Errorf("\n got %s\nwant %s…", got, wantPrefix)
		}
	}
	records := bytes.Repeat([]byte{0x12, 0}, 30<<20)
	f(outcome(logsSignal, msg(1, msg(2, records)), protobuf), "413 request takes more than 512 MiB")
	f(outcome(tracesSignal, msg(1, records), protobuf), "413 request takes more than 512 MiB")
	f(outcome(metricsSignal, msg(1, msg(2, msg(2, msg(10, msg(1, msg(8, msg(2, records))))))), protobuf), "413 request takes more than 512 MiB")
	objects := bytes.Repeat([]byte("{},"), 20<<20)
	objects[len(objects)-1] = ' '
	f(outcome(logsSignal, []byte(jsonLogs(string(objects))), jsonText), "413 request takes more than 512 MiB")
}

// Millions of bad records in one request are refused in seconds.
func TestDecodeManyBadRecords(t *testing.T) {
	if testing.Short() {
		t.Skip("decodes tens of megabytes")
	}
	f := func(s *signal[plog.Logs], body []byte, enc encoding, want string) {
		t.Helper()
		begin := time.Now()
		if got := outcome(s, body, enc); !strings.HasPrefix(got, want) {
			t.Errorf("\n got %s\nwant %s…", got, want)
		}
		if d := time.Since(begin); d > 30*time.Second {
			t.Errorf("it took %s", d)
		}
	}
	f(logsSignal, inScope(goodLog, bytes.Repeat([]byte{0x12, 1, 0xff}, 300_000)), protobuf, "1 kept 300000 refused")
	f(logsSignal, []byte(jsonLogs(`{}`, strings.Repeat("7,", 3_000_000)+"7")), jsonText, "1 kept 3000001 refused")
	f(logsSignal, []byte(jsonLogs(strings.Repeat("null,", 5_000_000)+"{}")), jsonText, "413 ")
}
