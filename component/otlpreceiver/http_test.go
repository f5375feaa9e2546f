package otlpreceiver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"inquest/admit"
)

// late is an error after which a sender should wait.
type late time.Duration

func (l late) Error() string             { return "no room" }
func (l late) RetryDelay() time.Duration { return time.Duration(l) }

func TestHTTP(t *testing.T) {
	r := start(t, nil)
	f := func(path, contentType string, body []byte, wantCode, wantKept int, wantText string) {
		t.Helper()
		got := r.post(t, path, body, "Content-Type", contentType)
		if got.code != wantCode || !strings.Contains(string(got.body), wantText) {
			t.Errorf("answer %s, want %d with %q", got, wantCode, wantText)
		}
		if kept := r.records(); kept != wantKept {
			t.Errorf("%d records kept, want %d", kept, wantKept)
		}
	}
	badLog := msg(2, msg(9, traceID[:4]))
	f("/v1/logs", typeProto, protoOf(logsSignal, sampleLogs()), 200, 6, "")
	f("/v1/traces", typeProto, protoOf(tracesSignal, sampleTraces()), 200, 6, "")
	f("/v1/metrics", typeProto, protoOf(metricsSignal, sampleMetrics()), 200, 14, "")
	f("/v1/logs", typeJSON, must(logsRequest(sampleLogs()).MarshalJSON()), 200, 6, "{}")
	f("/v1/traces", typeJSON+"; charset=utf-8", must(tracesRequest(sampleTraces()).MarshalJSON()), 200, 6, "{}")
	f("/v1/metrics", typeJSON, must(metricsRequest(sampleMetrics()).MarshalJSON()), 200, 14, "{}")
	f("/v1/logs", typeProto, nil, 200, 0, "")
	f("/v1/logs", typeJSON, []byte(`{}`), 200, 0, "{}")

	f("/v1/logs", typeProto, inScope(goodLog, badLog, goodLog), 200, 2, "traceId: a trace id must have 16 bytes")
	f("/v1/logs", typeProto, inScope(badLog), 200, 0, "traceId: a trace id must have 16 bytes")
	f("/v1/traces", typeJSON, []byte(jsonSpans(jsonGoodSpan, `{"traceId":"AQIDBAUGBwgJCgsMDQ4PEA==","spanId":"0102030405060708"}`)),
		200, 1, `{"partialSuccess":{"rejectedSpans":"1","errorMessage":"1 rejected: span: traceId: must be a string of 32`)
	f("/v1/metrics", typeJSON, []byte(jsonPoints(`{"asInt":"1"}`, `{"asInt":"x"}`)), 200, 1, `"rejectedDataPoints":"1"`)
	f("/v1/logs", typeJSON, []byte("{\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":[{\"severityText\":\"\xff\"}]}]}]}"), 200, 1, "{}")

	f("/v1/logs", typeProto, []byte("hello, world"), 400, 0, "it breaks at byte 2 of 12")
	f("/v1/logs", typeJSON, []byte(`{"resourceLogs":`), 400, 0, "request is not JSON: unexpected end of JSON input")
	f("/v1/logs", "text/plain", []byte("hello"), 415, 0, `content type "text/plain" is not OTLP`)
	f("/v1/logs", "", []byte("hello"), 415, 0, "send application/x-protobuf or application/json")
	f("/v1/profiles", typeProto, nil, 404, 0, "")
	got := r.send(t, http.MethodGet, "/v1/logs", nil)
	if got.code != 405 || got.header.Get("Allow") != "POST" {
		t.Errorf("GET is answered with %s", got)
	}
}

// Error answers are a google.rpc.Status in the encoding of the request.
func TestHTTPErrorBody(t *testing.T) {
	r := start(t, nil)
	f := func(contentType string, body []byte, encoding string, read func([]byte, proto.Message) error, wantHTTP int, want codes.Code) {
		t.Helper()
		got := r.post(t, "/v1/logs", body, "Content-Type", contentType, "Content-Encoding", encoding)
		var st spb.Status
		if err := read(got.body, &st); err != nil {
			t.Fatalf("%s: %v", got, err)
		}
		if got.code != wantHTTP || codes.Code(st.Code) != want || st.Message == "" || got.header.Get("Content-Type") != contentType {
			t.Errorf("answer %s is %v, want %d and %v", got, &st, wantHTTP, want)
		}
	}
	js := func(b []byte, m proto.Message) error { return protojson.Unmarshal(b, m) }
	f(typeProto, []byte("hello"), "", proto.Unmarshal, 400, codes.InvalidArgument)
	f(typeJSON, []byte("hello"), "", js, 400, codes.InvalidArgument)
	f(typeProto, []byte("hello"), "gzip", proto.Unmarshal, 400, codes.InvalidArgument)
	f(typeJSON, []byte("hello"), "zstd", js, 400, codes.InvalidArgument)
	f(typeProto, nil, "br", proto.Unmarshal, 415, codes.InvalidArgument)
	f(typeJSON, nil, "br", js, 415, codes.InvalidArgument)
}

func TestHTTPConsumer(t *testing.T) {
	r := start(t, nil)
	f := func(before func(context.Context) error, wantCode int, wantDelay, wantText string) {
		t.Helper()
		r.before = before
		for _, c := range []struct {
			path string
			body []byte
		}{
			{"/v1/logs", protoOf(logsSignal, sampleLogs())},
			{"/v1/traces", protoOf(tracesSignal, sampleTraces())},
			{"/v1/metrics", protoOf(metricsSignal, sampleMetrics())},
		} {
			got := r.post(t, c.path, c.body, "Content-Type", typeProto)
			if got.code != wantCode || got.header.Get("Retry-After") != wantDelay || !strings.Contains(string(got.body), wantText) {
				t.Errorf("%s: answer %s after %q, want %d, %q, %q", c.path, got, got.header.Get("Retry-After"), wantCode, wantDelay, wantText)
			}
		}
	}
	fail := func(err error) func(context.Context) error {
		return func(context.Context) error { return err }
	}
	f(fail(errors.New("disk gone")), 503, "1", "disk gone")
	f(fail(fmt.Errorf("exporter: %w", late(1500*time.Millisecond))), 503, "2", "no room")
	f(fail(late(0)), 503, "1", "no room")
	f(fail(consumererror.NewPermanent(errors.New("never"))), 400, "", "never")
	f(fail(fmt.Errorf("waiting: %w", context.DeadlineExceeded)), 504, "", "waiting")
	f(fail(context.Canceled), 503, "", "canceled")
	f(fail(errors.New(strings.Repeat("\xffx", 5000))), 503, "1", "...")
	f(func(ctx context.Context) error {
		admit.ReportFrom(ctx).Reject(2, "too old")
		admit.ReportFrom(ctx).Warn("clock is off")
		return nil
	}, 200, "", "clock is off")
	f(fail(nil), 200, "", "")
}

// A warning goes out as a partial success that rejects nothing.
func TestHTTPPartialSuccess(t *testing.T) {
	r := start(t, nil)
	f := func(reject int, wantMessage string) {
		t.Helper()
		r.before = func(ctx context.Context) error {
			admit.ReportFrom(ctx).Reject(reject, "bad")
			if reject == 0 {
				admit.ReportFrom(ctx).Warn("careful")
			}
			return nil
		}
		check := func(rejected int64, message string, err error) {
			t.Helper()
			if err != nil || int(rejected) != reject || !strings.Contains(message, wantMessage) {
				t.Errorf("got %d, %q, %v, want %d, %q", rejected, message, err, reject, wantMessage)
			}
		}
		logs := plogotlp.NewExportResponse()
		err := logs.UnmarshalProto(r.post(t, "/v1/logs", inScope(goodLog, goodLog), "Content-Type", typeProto).body)
		check(logs.PartialSuccess().RejectedLogRecords(), logs.PartialSuccess().ErrorMessage(), err)
		traces := ptraceotlp.NewExportResponse()
		err = traces.UnmarshalProto(r.post(t, "/v1/traces", inScope(goodSpan, goodSpan), "Content-Type", typeProto).body)
		check(traces.PartialSuccess().RejectedSpans(), traces.PartialSuccess().ErrorMessage(), err)
		metrics := pmetricotlp.NewExportResponse()
		err = metrics.UnmarshalJSON(r.post(t, "/v1/metrics", []byte(jsonPoints(`{}`)), "Content-Type", typeJSON).body)
		check(metrics.PartialSuccess().RejectedDataPoints(), metrics.PartialSuccess().ErrorMessage(), err)
	}
	f(1, "1 rejected: bad")
	f(0, "careful")
}

func TestHTTPPathsAndCORS(t *testing.T) {
	r := start(t, func(c *Config) {
		h := c.Protocols.HTTP.Get()
		h.LogsURLPath = "/my/logs"
		h.CORS.GetOrInsertDefault().AllowedOrigins = []string{"https://*.example.com"}
	})
	if got := r.post(t, "/my/logs", inScope(goodLog), "Content-Type", typeProto, "Origin", "https://a.example.com"); got.code != 200 ||
		got.header.Get("Access-Control-Allow-Origin") != "https://a.example.com" {
		t.Errorf("answer %s with %v", got, got.header)
	}
	if got := r.post(t, "/v1/logs", inScope(goodLog), "Content-Type", typeProto); got.code != 404 {
		t.Errorf("default path is answered with %s", got)
	}
	if n := r.records(); n != 1 {
		t.Errorf("%d records kept, want 1", n)
	}
	got := r.send(t, http.MethodOptions, "/my/logs", bytes.NewReader(nil),
		"Origin", "https://a.example.com", "Access-Control-Request-Method", "POST")
	if got.code != 204 || got.header.Get("Access-Control-Allow-Methods") != "POST" {
		t.Errorf("preflight is answered with %s, %v", got, got.header)
	}
}
