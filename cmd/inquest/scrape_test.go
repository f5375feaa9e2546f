package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

const (
	scrapedTrace = "5b8efff798038103d269b633813fc60c"
	scrapedSpan  = "eee19b7ec3c1b174"
)

// get asks the API and returns the answer.
func (s *testServer) get(t *testing.T, path string, params ...string) string {
	t.Helper()
	q := url.Values{}
	for i := 0; i < len(params); i += 2 {
		q.Set(params[i], params[i+1])
	}
	resp, err := http.Get(s.api + path + "?" + q.Encode())
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// value returns the value of the only series that a PromQL expression gives, or
// "" when there is none.
func (s *testServer) value(t *testing.T, expr string) string {
	t.Helper()
	var answer struct {
		Data struct{ Result []struct{ Value [2]any } }
	}
	text := s.get(t, "/api/v1/query", "query", expr)
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		t.Fatalf("%s: %v in %s", expr, err, text)
	}
	switch r := answer.Data.Result; len(r) {
	case 0:
		return ""
	case 1:
		return r[0].Value[1].(string)
	default:
		return fmt.Sprintf("%d series: %s", len(r), text)
	}
}

// TestScrape runs serve with nothing but --scrape: metrics are there under
// Prometheus' names and the canonical ones, an exemplar leads to its trace and
// the trace's logs, and what is no longer shown ends.
func TestScrape(t *testing.T) {
	defer http.DefaultClient.CloseIdleConnections()
	var gone atomic.Bool
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/openmetrics-text; version=1.0.0")
		fmt.Fprintln(w, "# TYPE nv_inference_pending_request_count gauge\nnv_inference_pending_request_count 2")
		if !gone.Load() {
			fmt.Fprintf(w, `# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{model_name="tiny"} 3
# TYPE web_seconds histogram
# UNIT web_seconds seconds
web_seconds_bucket{le="0.1"} 1 # {trace_id="%s",span_id="%s"} 0.07 %d
web_seconds_bucket{le="+Inf"} 2
web_seconds_sum 5.5
web_seconds_count 2
# TYPE odd__name counter
odd__name_total 7
`, scrapedTrace, scrapedSpan, time.Now().Unix())
		}
		fmt.Fprintln(w, "# EOF")
	}))
	defer target.Close()
	s := startWith(t, serveOptions{data: t.TempDir(), scrapes: []string{"web=" + strings.TrimPrefix(target.URL, "http://")}},
		"receivers::scrape/web::interval=200ms")
	defer s.stop()

	now := time.Now().UnixNano()
	span := fmt.Sprintf(`{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"web"}}]},"scopeSpans":[{"spans":[
		{"traceId":"%s","spanId":"%s","name":"GET /","startTimeUnixNano":"%d","endTimeUnixNano":"%d"}]}]}]}`, scrapedTrace, scrapedSpan, now, now+7e7)
	if status, answer := s.post(t, "/v1/traces", "application/json", "", []byte(span)); status != 200 {
		t.Fatalf("answered %d %s", status, answer)
	}
	log := jsonLog(time.Now(), "slow request", fmt.Sprintf(`,"traceId":"%s","spanId":"%s"`, scrapedTrace, scrapedSpan))
	if status, answer := s.post(t, "/v1/logs", "application/json", "", jsonLogs(log)); status != 200 {
		t.Fatalf("answered %d %s", status, answer)
	}
	f := func(expr, want string) {
		t.Helper()
		got := ""
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			if got = s.value(t, expr); got == want {
				return
			}
		}
		t.Errorf("%s is %q, want %q", expr, got, want)
	}
	f(`up{job="web"}`, "1")
	f(`vllm:num_requests_waiting{service_name="web",model_name="tiny"}`, "3")
	f(`llm_engine_requests_waiting{job="web"}`, "3")
	f(`histogram_quantile(0.5, web_seconds_bucket)`, "0.1")
	f(`web_seconds_sum / web_seconds_count`, "2.75")
	f(`odd__name_total`, "7")
	f(`nv_inference_pending_request_count`, "2")
	f(`count({job="web",__name__=~".*_total_total|.*_seconds_seconds.*"})`, "")

	found := ""
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		found = s.get(t, "/api/v1/drilldown", "query", "web_seconds_bucket", "window", "5m")
		if strings.Contains(found, scrapedTrace) && strings.Contains(found, "slow request") {
			break
		}
	}
	for _, want := range []string{scrapedTrace, "GET /", "slow request"} {
		if !strings.Contains(found, want) {
			t.Errorf("drill-down has no %q: %s", want, found)
		}
	}

	gone.Store(true)
	f(`vllm:num_requests_waiting`, "")
	f(`llm_engine_requests_waiting{job="web"}`, "")
	f(`web_seconds_bucket{le="0.1"}`, "")
	f(`nv_inference_pending_request_count`, "2")
	target.Close()
	f(`up{job="web"}`, "0")
	f(`nv_inference_pending_request_count`, "")
}
