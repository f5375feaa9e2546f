package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
)

// testServer is a recorder as serve runs it, with ports of its own.
type testServer struct {
	otlp, api string // base URLs
	stop      func()
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// startServer runs serve on dir; more are further settings.
func startServer(t *testing.T, dir string, more ...string) *testServer {
	t.Helper()
	return startWith(t, serveOptions{data: dir}, more...)
}

func startWith(t *testing.T, opts serveOptions, more ...string) *testServer {
	t.Helper()
	otlp, api := freePort(t), freePort(t)
	opts.sets = append([]string{
		"receivers::otlp::protocols::grpc::endpoint=" + freePort(t),
		"receivers::otlp::protocols::http::endpoint=" + otlp,
		"extensions::inquest::api::endpoint=" + api,
		"extensions::inquest::disk::min_free=64MiB",
		"service::telemetry::metrics::level=none",
		"service::telemetry::logs::level=error",
	}, more...)
	col, err := newCollector(opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- col.Run(ctx) }()
	s := &testServer{otlp: "http://" + otlp, api: "http://" + api}
	s.stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve ended with %v", err)
		}
	}
	for range 200 {
		resp, err := http.Get(s.otlp)
		if err == nil {
			resp.Body.Close()
			return s
		}
		select {
		case err := <-done:
			t.Fatalf("serve ended with %v", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
	t.Fatal("serve does not listen")
	return nil
}

// post sends a body and returns status and answer.
func (s *testServer) post(t *testing.T, path, contentType, encoding string, body []byte) (int, string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, s.otlp+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", contentType)
	if encoding != "" {
		req.Header.Set("Content-Encoding", encoding)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(answer)
}

// count returns how many records a LogsQL filter finds.
func (s *testServer) count(t *testing.T, filter string) int {
	t.Helper()
	var out bytes.Buffer
	root := newRootCommand()
	root.SetArgs([]string{"logs", filter + " | stats count() n", "--server", s.api, "--from", "", "--output", "json"})
	root.SetOut(&out)
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	n := 0
	for dec := json.NewDecoder(&out); dec.More(); {
		var v any
		if err := dec.Decode(&v); err != nil {
			t.Fatalf("cannot read %q: %v", out.String(), err)
		}
		text, _ := json.Marshal(v)
		_, after, ok := strings.Cut(string(text), `"n":"`)
		if !ok {
			t.Fatalf("no count in %s", text)
		}
		if _, err := fmt.Sscanf(after, "%d", &n); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

func jsonLogs(records ...string) []byte {
	return []byte(`{"resourceLogs":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"bad-input"}}]},"scopeLogs":[{"logRecords":[` + strings.Join(records, ",") + `]}]}]}`)
}

func jsonLog(at time.Time, body, more string) string {
	return fmt.Sprintf(`{"timeUnixNano":"%d","body":{"stringValue":%q}%s}`, at.UnixNano(), body, more)
}

func zipped(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestBadInput sends what is wrong in each way to a running recorder: each
// request has its answer, the good records of the batch are kept, and the
// process goes on.
func TestBadInput(t *testing.T) {
	s := startServer(t, t.TempDir())
	defer s.stop()
	defer http.DefaultClient.CloseIdleConnections()
	now := time.Now()
	const js, pb = "application/json", "application/x-protobuf"
	n := 0
	// Each batch holds one good record besides; kept is how many must be found.
	f := func(name, path, contentType, encoding string, body func(mark string) []byte, wantStatus int, wantAnswer string, kept int) {
		t.Helper()
		n++
		mark := fmt.Sprintf("case%d", n)
		status, answer := s.post(t, path, contentType, encoding, body(mark))
		if status != wantStatus || !strings.Contains(answer, wantAnswer) {
			t.Errorf("%s: answered %d %.300q, want %d with %q", name, status, answer, wantStatus, wantAnswer)
		}
		if got := s.count(t, mark); got != kept {
			t.Errorf("%s: %d records kept, want %d", name, got, kept)
		}
	}
	good := func(mark string) string { return jsonLog(now, "good "+mark, "") }
	logs := func(make func(mark string) string) func(string) []byte {
		return func(mark string) []byte { return jsonLogs(good(mark), make(mark)) }
	}
	raw := func(b []byte) func(string) []byte { return func(string) []byte { return b } }

	f("good", "/v1/logs", js, "", logs(good), 200, "", 2)
	f("gzip", "/v1/logs", js, "gzip", func(m string) []byte { return zipped(t, jsonLogs(good(m))) }, 200, "", 1)
	f("malformed protobuf", "/v1/logs", pb, "", raw([]byte{0x0a, 0xff, 0xff, 0xff, 0x7f, 1, 2}), 400, "", 0)
	f("malformed protobuf spans", "/v1/traces", pb, "", raw([]byte("not protobuf")), 400, "", 0)
	f("malformed JSON", "/v1/logs", js, "", raw([]byte(`{"resourceLogs":[`)), 400, "", 0)
	f("wrong content type", "/v1/logs", "text/plain", "", raw([]byte("hello")), 415, "", 0)
	f("trace id of 5 digits", "/v1/logs", js, "", logs(func(m string) string { return jsonLog(now, m, `,"traceId":"abcde"`) }), 200, `"rejectedLogRecords":"1"`, 1)
	f("trace id in base64", "/v1/logs", js, "", logs(func(m string) string { return jsonLog(now, m, `,"traceId":"W47/95gDgQPSaYzgc3C6xA=="`) }), 200, `"rejectedLogRecords":"1"`, 1)
	f("1970", "/v1/logs", js, "", logs(func(m string) string { return jsonLog(time.Unix(1, 0), m, "") }), 200, `"rejectedLogRecords":"1"`, 1)
	f("2100", "/v1/logs", js, "", logs(func(m string) string { return jsonLog(time.Unix(4102444800, 0), m, "") }), 200, `"rejectedLogRecords":"1"`, 1)
	f("10,000 attributes", "/v1/logs", js, "", logs(func(m string) string { return jsonLog(now, m, manyAttributes(10_000)) }), 200, "", 2)
	f("gzip bomb", "/v1/logs", js, "gzip", func(string) []byte { return zipped(t, make([]byte, 1<<30)) }, 413, "", 0)
	f("not gzip", "/v1/logs", js, "gzip", raw([]byte("plain")), 400, "", 0)
	f("above the limit", "/v1/logs", js, "", raw(bytes.Repeat([]byte(" "), 64<<20+1)), 413, "", 0)
	f("record above 1 MiB", "/v1/logs", js, "", logs(func(m string) string { return jsonLog(now, m+" "+strings.Repeat("x", 2<<20), "") }), 200, `"rejectedLogRecords":"1"`, 1)
	f("empty", "/v1/logs", pb, "", raw(nil), 200, "", 0)

	f("invalid UTF-8", "/v1/logs", pb, "", func(m string) []byte {
		req := plogotlp.NewExportRequest()
		lr := req.Logs().ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
		lr.SetTimestamp(pcommon.NewTimestampFromTime(now))
		lr.Body().SetStr(m + " \xff\xfe")
		return marshal(t, req)
	}, 200, "", 1)
	f("span that ends before it starts", "/v1/traces", pb, "", func(m string) []byte {
		req := ptraceotlp.NewExportRequest()
		spans := req.Traces().ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
		for i, end := range []time.Time{now.Add(time.Second), now.Add(-time.Second)} {
			sp := spans.AppendEmpty()
			sp.SetTraceID(pcommon.TraceID{1})
			sp.SetSpanID(pcommon.SpanID{byte(i + 1)})
			sp.SetName("op")
			sp.Attributes().PutStr("mark", m)
			sp.SetStartTimestamp(pcommon.NewTimestampFromTime(now))
			sp.SetEndTimestamp(pcommon.NewTimestampFromTime(end))
		}
		return marshal(t, req)
	}, 200, "", 0) // the mark is in a field, counted below
	if got := s.count(t, fmt.Sprintf("mark:case%d", n)); got != 2 {
		t.Errorf("%d of 2 spans kept of which one ends before it starts", got)
	}
	f("good after all", "/v1/logs", js, "", logs(good), 200, "", 2)
}

func marshal(t *testing.T, req interface{ MarshalProto() ([]byte, error) }) []byte {
	t.Helper()
	b, err := req.MarshalProto()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func manyAttributes(n int) string {
	var b strings.Builder
	b.WriteString(`,"attributes":[`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"key":"k%d","value":{"intValue":"%d"}}`, i, i)
	}
	b.WriteString("]")
	return b.String()
}

func TestRestartKeepsRecords(t *testing.T) {
	defer http.DefaultClient.CloseIdleConnections()
	dir := t.TempDir()
	s := startServer(t, dir)
	if status, answer := s.post(t, "/v1/logs", "application/json", "", jsonLogs(jsonLog(time.Now(), "kept over a restart", ""))); status != 200 {
		t.Fatalf("answered %d %s", status, answer)
	}
	s.stop()
	s = startServer(t, dir)
	defer s.stop()
	if n := s.count(t, "restart"); n != 1 {
		t.Errorf("%d records after a restart, want 1", n)
	}
}

func TestInvestigateNothing(t *testing.T) {
	defer http.DefaultClient.CloseIdleConnections()
	s := startServer(t, t.TempDir())
	defer s.stop()
	var out bytes.Buffer
	root := newRootCommand()
	root.SetOut(&out)
	root.SetArgs([]string{"investigate", "--server", s.api, "--from", "10m"})
	if code := run(t.Context(), root); code != exitInconclusive {
		t.Errorf("exit status %d, want %d", code, exitInconclusive)
	}
	if !strings.Contains(strings.ToLower(out.String()), "inconclusive") || !strings.Contains(out.String(), "NOT examined") {
		t.Errorf("the report on nothing does not say so:\n%s", out.String())
	}

	out.Reset()
	root = newRootCommand()
	root.SetOut(&out)
	root.SetArgs([]string{"investigate", "--server", s.api, "--from", "10m", "--onset", "5m", "--baseline", "3h..2h", "--baseline", "26h..25h", "--output", "json"})
	if code := run(t.Context(), root); code != exitInconclusive {
		t.Errorf("exit status %d, want %d", code, exitInconclusive)
	}
	var v struct {
		Question struct {
			Onset    time.Time
			Baseline []struct{ From, To time.Time }
		}
	}
	if err := json.Unmarshal(out.Bytes(), &v); err != nil {
		t.Fatalf("%v:\n%s", err, out.String())
	}
	if q := v.Question; time.Since(q.Onset).Round(time.Minute) != 5*time.Minute || len(q.Baseline) != 2 || q.Baseline[1].To.Sub(q.Baseline[1].From) != time.Hour {
		t.Errorf("asked %+v", q)
	}
}

func TestServeErrors(t *testing.T) {
	f := func(opts serveOptions, want string) {
		t.Helper()
		col, err := newCollector(opts)
		if err == nil {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			err = col.Run(ctx)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
	quiet := "service::telemetry::logs::level=fatal"
	f(serveOptions{sets: []string{"novalue"}}, "key=value")
	f(serveOptions{scrapes: []string{"vllm="}}, "names no target")
	f(serveOptions{scrapes: []string{"=a:1"}}, "cannot be a name")
	f(serveOptions{scrapes: []string{"a:1"}, configs: []string{"serve_test.go"}}, "add a receiver scrape to your file")
	f(serveOptions{configs: []string{"/does/not/exist.yaml"}}, "cannot read the configuration")
	f(serveOptions{sets: []string{quiet, "extensions::inquest::retention=1m"}}, "at least 24h")
	f(serveOptions{sets: []string{quiet, "extensions::inquest::disk::min_free=lots"}}, "is not a size")
	f(serveOptions{sets: []string{quiet, "extensions::inquest::nonsense=1"}}, "nonsense")
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f(serveOptions{data: file, sets: []string{quiet}}, "data folder")
}
