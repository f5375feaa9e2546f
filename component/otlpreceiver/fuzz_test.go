package otlpreceiver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"testing"

	"inquest/admit"
)

// checkDecode holds a lenient decoder against the strict one: whatever the
// strict one takes comes out the same, an answer is a refusal or can be read
// again from protobuf, and nothing panics.
func checkDecode[T any](t *testing.T, s *signal[T], body []byte, enc encoding) {
	strict := s.proto
	if enc == jsonText {
		strict = s.json
		// pdata takes some text that is not JSON, or ends an object too early.
		shape, err := inspect(body)
		if err != nil || shape.emptyKey || shape.depth > safeDepth {
			strict = func([]byte) (none T, err error) { return none, errors.New("not compared") }
		}
	}
	_, report := admit.WithReport(context.Background())
	got, err := s.decode(bytes.Clone(body), enc, report)

	want, strictErr := strict(body)
	if strictErr == nil {
		if err != nil {
			t.Fatalf("refused what the strict decoder takes: %v", err)
		}
		if report.Rejected() != 0 {
			t.Fatalf("%d records refused: %s", report.Rejected(), report.Message())
		}
		if a, b := protoOf(s, got), protoOf(s, want); !bytes.Equal(a, b) {
			t.Fatalf("decoded to\n%x, want\n%x", a, b)
		}
	}
	var r *refusal
	if err != nil && !errors.As(err, &r) {
		t.Fatalf("error is no refusal: %v", err)
	}
	if err == nil {
		if _, err := s.proto(protoOf(s, got)); err != nil {
			t.Fatalf("what was taken cannot be read again: %v", err)
		}
	}
}

func fuzzProto[T any](f *testing.F, s *signal[T], sample T, record []byte) {
	whole := protoOf(s, sample)
	f.Add(whole)
	f.Add(cut(whole, 3))
	f.Add(inScope(record, msg(2, msg(1, traceID[:3])), msg(2, num(1, 3)), num(2, 1), record))
	f.Add(msg(1, msg(1000, record), msg(2, record, []byte{0x12, 99})))
	f.Fuzz(func(t *testing.T, body []byte) { checkDecode(t, s, body, protobuf) })
}

func fuzzJSON[T any](f *testing.F, s *signal[T], whole response, wrap func(...string) string, record string) {
	f.Add(must(whole.MarshalJSON()))
	f.Add([]byte(wrap(record, `{"traceId":"AQIDBAUGBwgJCgsMDQ4PEA=="}`, `null`, `{"attributes":[{"key":"k","value":{"intValue":"x"}}]}`)))
	f.Add([]byte(wrap(record, `{"":[], "exemplars":[{"spanId":"1"}],"flags":null}`)))
	f.Fuzz(func(t *testing.T, body []byte) {
		checkDecode(t, s, body, jsonText)
		if json.Valid(body) && !json.Valid(tidy(body)) {
			t.Fatalf("tidied to what is not JSON: %s", tidy(body))
		}
	})
}

func FuzzProtoLogs(f *testing.F)    { fuzzProto(f, logsSignal, sampleLogs(), goodLog) }
func FuzzProtoTraces(f *testing.F)  { fuzzProto(f, tracesSignal, sampleTraces(), goodSpan) }
func FuzzProtoMetrics(f *testing.F) { fuzzProto(f, metricsSignal, sampleMetrics(), goodGage) }

func FuzzJSONLogs(f *testing.F) {
	fuzzJSON(f, logsSignal, logsRequest(sampleLogs()), jsonLogs, `{"severityText":"x"}`)
}

func FuzzJSONTraces(f *testing.F) {
	fuzzJSON(f, tracesSignal, tracesRequest(sampleTraces()), jsonSpans, jsonGoodSpan)
}

func FuzzJSONMetrics(f *testing.F) {
	fuzzJSON(f, metricsSignal, metricsRequest(sampleMetrics()), jsonPoints, `{"asInt":"1"}`)
}
