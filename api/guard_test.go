package api

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"

	"inquest/store"
)

func TestGuard(t *testing.T) {
	h := newTestHandler(t, Config{AllowedHosts: []string{"inquest.example"}, AllowedOrigins: []string{"https://grafana.example"}})
	f := func(header map[string]string, want int) {
		t.Helper()
		method, body := "GET", ""
		if header["Content-Type"] != "" {
			method, body = "POST", "query=up"
		}
		askChecked(t, h, want, method, "/api/v1/query?query=up", header, body)
	}
	f(map[string]string{"Host": "localhost"}, 200)
	f(map[string]string{"Host": "LOCALHOST.:4319"}, 200)
	f(map[string]string{"Host": "127.0.0.1:4319"}, 200)
	f(map[string]string{"Host": "127.1.2.3"}, 200)
	f(map[string]string{"Host": "[::1]:4319"}, 200)
	f(map[string]string{"Host": "inquest.localhost:1"}, 200)
	f(map[string]string{"Host": "inquest.example:1"}, 200)
	f(map[string]string{"Host": "attacker.example"}, 403)
	f(map[string]string{"Host": "127.0.0.1.attacker.example"}, 403)
	f(map[string]string{"Host": "192.168.1.1:4319"}, 403)
	f(map[string]string{"Host": "localhost.attacker.example"}, 403)
	f(map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, 403)
	f(map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 200)
	f(map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://grafana.example"}, 200)
	f(map[string]string{"Sec-Fetch-Site": "same-origin"}, 200)
	form := formHeader["Content-Type"]
	f(map[string]string{"Content-Type": form}, 200)
	f(map[string]string{"Content-Type": form, "Origin": "https://attacker.example"}, 403)
	f(map[string]string{"Content-Type": form, "Sec-Fetch-Site": "cross-site"}, 403)
	f(map[string]string{"Content-Type": form, "Origin": "https://grafana.example"}, 200)
	f(map[string]string{"Content-Type": form, "Origin": "http://localhost:4319"}, 200)

	if _, err := New(Config{Records: &fakeRecords{}, Samples: &fakeSamples{}, AllowedOrigins: []string{"grafana"}}); err == nil {
		t.Error("an origin without a scheme is taken")
	}
	if _, err := New(Config{}); err == nil {
		t.Error("an API without stores is built")
	}
}

// A server that others reach has names of its own.
func TestGuardOnlyOnLoopback(t *testing.T) {
	h := newTestHandler(t, Config{})
	req := httptest.NewRequest("GET", "/healthz", nil)
	f := func(addr net.Addr, want int) {
		t.Helper()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req.WithContext(context.WithValue(req.Context(), http.LocalAddrContextKey, addr)))
		if w.Code != want {
			t.Errorf("%v answers %d, want %d", addr, w.Code, want)
		}
	}
	f(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}, 403)
	f(&net.TCPAddr{IP: net.IPv6loopback, Port: 1}, 403)
	f(&net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 1}, 200)
	f(&net.UnixAddr{Name: "/run/inquest.sock"}, 200)
}

func TestNoRoute(t *testing.T) {
	h := newTestHandler(t, Config{})
	f := func(method, path string, want int, allow string) {
		t.Helper()
		w := ask(t, h, method, path, nil, "")
		if w.Code != want || w.Header().Get("Allow") != allow || !strings.Contains(w.Body.String(), `"hint"`) && !strings.HasPrefix(path, "/jaeger") {
			t.Errorf("%s %s answers %d, Allow %q: %s", method, path, w.Code, w.Header().Get("Allow"), w.Body)
		}
	}
	f("GET", "/", 404, "")
	f("GET", "/api/v1/targets", 404, "")
	f("GET", "/api/v1/label/values", 404, "")
	f("DELETE", "/api/v1/query", 405, "GET, POST")
	f("PUT", "/api/v1/investigations", 405, "GET, POST")
	f("POST", "/api/v1/traces/1", 405, "GET")
	f("POST", "/jaeger/api/services", 405, "GET")
}

func TestStoreErrors(t *testing.T) {
	f := func(err error, code int, kind string) {
		t.Helper()
		h := newTestHandler(t, Config{
			Samples: &fakeSamples{err: err},
			Records: &fakeRecords{answers: []fakeAnswer{{err: err}}},
		})
		for _, target := range []string{"/api/v1/query?query=up", "/api/v1/records/query?query=x", "/api/v1/labels", "/jaeger/api/services"} {
			w := ask(t, h, "GET", target, nil, "")
			if w.Code != code || !strings.Contains(w.Body.String(), kind) && !strings.HasPrefix(target, "/jaeger") {
				t.Errorf("%v: %s answers %d %s, want %d %s", err, target, w.Code, w.Body, code, kind)
			}
			if code != statusClientClosed {
				checkSchema(t, "GET", routeOf(t, "GET", target), w)
			}
			if again := w.Header().Get("Retry-After") != ""; again != (kind == kindUnavailable) {
				t.Errorf("%v: %s: Retry-After is %v", err, target, again)
			}
		}
	}
	f(fmt.Errorf("cannot parse: %w", store.ErrQuery), 400, kindBadData)
	f(fmt.Errorf("disk: %w", store.ErrUnavailable), 503, kindUnavailable)
	f(context.DeadlineExceeded, 503, kindTimeout)
	f(context.Canceled, statusClientClosed, kindCanceled)
	f(errors.New("broken"), 500, kindInternal)
}

func TestLimits(t *testing.T) {
	records := &fakeRecords{answers: []fakeAnswer{{contains: "slow", wait: true}}}
	h := newTestHandler(t, Config{Records: records, Limits: Limits{Concurrency: 1, QueueWait: 20 * time.Millisecond, BodyBytes: 100, QueryTimeout: 5 * time.Second}})

	w := askChecked(t, h, 503, "GET", "/api/v1/records/query?query=slow&timeout=10ms", nil, "")
	if !strings.Contains(w.Body.String(), `"errorType":"timeout"`) {
		t.Errorf("a query that takes too long answers %s", w.Body)
	}
	askChecked(t, h, 413, "POST", "/api/v1/query", formHeader, "query="+strings.Repeat("a", 200))

	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		req := httptest.NewRequestWithContext(ctx, "GET", "/api/v1/records/query?query=slow", nil)
		req.Host = "localhost"
		h.ServeHTTP(httptest.NewRecorder(), req)
	}()
	for start := time.Now(); ; {
		records.mu.Lock()
		n := len(records.asked)
		records.mu.Unlock()
		if n == 2 {
			break
		}
		if time.Since(start) > 5*time.Second {
			t.Fatal("the first query does not begin")
		}
		time.Sleep(time.Millisecond)
	}
	w = askChecked(t, h, 429, "GET", "/api/v1/query?query=up", nil, "")
	if w.Header().Get("Retry-After") == "" {
		t.Error("an answer of 429 has no Retry-After")
	}
	askChecked(t, h, 200, "GET", "/healthz", nil, "") // needs no turn
	cancel()
	<-done
	askChecked(t, h, 200, "GET", "/api/v1/query?query=up", nil, "")
}

func TestCatchUp(t *testing.T) {
	var called int
	cfg := Config{
		Samples: &fakeSamples{result: store.Result{Value: promql.Vector{}}},
		CatchUp: func(ctx context.Context) error {
			if called++; called > 1 {
				<-ctx.Done()
				return fmt.Errorf("the stores are 3 batches behind:\n%w", ctx.Err())
			}
			return nil
		},
		Limits: Limits{CatchUpWait: 10 * time.Millisecond},
	}
	h := newTestHandler(t, cfg)
	w := askChecked(t, h, 200, "GET", "/api/v1/query?query=up", nil, "")
	if called != 1 || w.Header().Get("Inquest-Lag") != "" {
		t.Errorf("caught up %d times, lag %q", called, w.Header().Get("Inquest-Lag"))
	}
	w = askChecked(t, h, 200, "GET", "/api/v1/query?query=up", nil, "")
	const want = "the newest records may be missing: the stores are 3 batches behind: context deadline exceeded"
	if got := w.Header().Get("Inquest-Lag"); got != want || !strings.Contains(w.Body.String(), `"warnings":["`+want) {
		t.Errorf("lag is %q, answer %s", got, w.Body)
	}
	askChecked(t, h, 200, "GET", "/healthz", nil, "")
	if called != 2 {
		t.Error("a request that needs no store waits for the stores")
	}
}

// Rows reach a real client while the query still runs, and an answer that
// breaks off says so.
func TestRecordsOverHTTP(t *testing.T) {
	var rows []map[string]string
	for i := range 5 {
		rows = append(rows, map[string]string{"_msg": fmt.Sprintf("line %d \"quoted\"\n", i), "empty": "", "bad": "a\xffb"})
	}
	h := newTestHandler(t, Config{Records: &fakeRecords{answers: []fakeAnswer{
		{contains: "breaks", rows: rows, err: errors.New("disk gone")},
		{contains: "sort by", rows: rows},
		{contains: "", rows: rows},
	}}})
	srv := httptest.NewServer(h)
	defer srv.Close()
	f := func(query, accept, wantBody, wantCut, wantError string) {
		t.Helper()
		req, _ := http.NewRequest("GET", srv.URL+"/api/v1/records/query?"+query, nil)
		req.Header.Set("Accept", accept)
		resp, err := srv.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(bufio.NewReader(resp.Body))
		if err != nil {
			t.Fatal(err)
		}
		if string(body) != wantBody || resp.Trailer.Get("Inquest-Cut") != wantCut || resp.Trailer.Get("Inquest-Error") != wantError {
			t.Errorf("%s: got %s\ntrailer %v\nwant %s", query, body, resp.Trailer, wantBody)
		}
	}
	line := func(i int) string { return fmt.Sprintf(`{"_msg":"line %d \"quoted\"\n","bad":"a`+"\ufffd"+`b"}`, i) }
	f("query=x&limit=2", "*/*", line(0)+"\n"+line(1)+"\n", "true", "")
	f("query=x&limit=2", "application/json", "["+line(0)+",\n"+line(1)+"]\n", "true", "")
	f("query=x&limit=2", "application/x-ndjson, application/json", line(0)+"\n"+line(1)+"\n", "true", "")
	f("query=x&limit=1&order=newest", "", line(0)+"\n", "true", "")
	all := line(0) + "\n" + line(1) + "\n" + line(2) + "\n" + line(3) + "\n" + line(4) + "\n"
	f("query=x&limit=5", "", all, "false", "")
	f("query=x", "", all, "false", "")
	f("query=breaks", "", all+`{"status":"error","errorType":"internal","error":"disk gone","hint":"the server's log has more"}`+"\n", "", "disk gone")
	f("query=breaks", "application/json", "["+strings.ReplaceAll(strings.TrimSuffix(all, "\n"), "\n", ",\n"), "", "disk gone")
}

func TestRecordsParameters(t *testing.T) {
	records := &fakeRecords{}
	h := newTestHandler(t, Config{Records: records})
	f := func(params string, code int, want string) {
		t.Helper()
		w := askChecked(t, h, code, "POST", "/api/v1/records/query", formHeader, params)
		if code != 200 {
			if !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s answers %s, want %s", params, w.Body, want)
			}
			return
		}
		q := records.asked[len(records.asked)-1]
		if got := fmt.Sprintf("%s|%d|%v|%v", q.LogsQL, q.Limit, q.From.Unix(), q.To.Unix()); got != want {
			t.Errorf("%s asks %q, want %q", params, got, want)
		}
	}
	const open = "-62135596800"
	f("query=x", 200, "x|1001|"+open+"|"+open)
	f("query=x&start=10&end=20&limit=7", 200, "x|8|10|20")
	f("query=x %23 comment&order=oldest&limit=1", 200, "x # comment\n| sort by (\"_time\") limit 2|2|"+open+"|"+open)
	f("query=x&order=newest", 200, "x\n| sort by (\"_time\" desc) limit 1001|1001|"+open+"|"+open)
	f("", 400, "is missing")
	f("query=x&limit=0", 400, "at least 1")
	f("query=x&limit=100001", 400, "above the limit of 100000")
	f("query=x&order=up", 400, "newest or oldest")
	f("query=x&start=20&end=10", 400, "exchange start and end")
	f("query=x&start=x", 400, `invalid parameter \"start\"`)
}
