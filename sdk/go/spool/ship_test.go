package spool

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// server takes OTLP/JSON logs and remembers them.
type server struct {
	*httptest.Server
	mu       sync.Mutex
	status   int
	answer   string
	refuse   string // a request that holds it gets 400
	got      []got
	requests int
}

type got struct{ body, id, resource string }

func newServer(t *testing.T) *server {
	s := &server{status: 200}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	if s.status != 200 {
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(s.status)
		return
	}
	z, err := gzip.NewReader(r.Body)
	if err != nil || r.URL.Path != "/v1/logs" || r.Method != http.MethodPost {
		http.Error(w, fmt.Sprint(r.Method, r.URL.Path, err), 500)
		return
	}
	text, _ := io.ReadAll(z)
	if s.refuse != "" && strings.Contains(string(text), s.refuse) {
		http.Error(w, "bad record", 400)
		return
	}
	var req struct {
		ResourceLogs []struct {
			Resource  json.RawMessage
			ScopeLogs []struct {
				LogRecords []struct {
					Body       struct{ StringValue string }
					Attributes []struct {
						Key   string
						Value struct{ StringValue string }
					}
				}
			}
		}
	}
	if err := json.Unmarshal(text, &req); err != nil {
		http.Error(w, err.Error(), 400)
		return
	}
	for _, r := range req.ResourceLogs {
		for _, l := range r.ScopeLogs[0].LogRecords {
			g := got{body: l.Body.StringValue, resource: string(r.Resource)}
			for _, a := range l.Attributes {
				if a.Key == attributeID {
					g.id = a.Value.StringValue
				}
			}
			s.got = append(s.got, g)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, s.answer)
}

func (s *server) set(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}

func (s *server) bodies() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, g := range s.got {
		out = append(out, g.body)
	}
	return out
}

func record(n int) []byte { return fmt.Appendf(nil, `{"body":{"stringValue":"e%d"}}`, n) }

// filled returns a spool with n records whose writer is gone.
func filled(t *testing.T, n int) (dir string) {
	dir = t.TempDir()
	w := open(t, dir, Options{Resource: json.RawMessage(`{"attributes":[1]}`)})
	for i := range n {
		if err := w.Append(record(i)); err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	return dir
}

func shipper(t *testing.T, dir, endpoint string, opts ShipOptions) *Shipper {
	t.Helper()
	opts.Endpoint, opts.Poll, opts.MinBackoff = endpoint, 5*time.Millisecond, time.Millisecond
	s, err := NewShipper(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func drain(t *testing.T, s *Shipper) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := s.Drain(ctx); err != nil {
		t.Fatal(err)
	}
}

func asides(t *testing.T, dir string) []asideLine {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(dir, asideFolder, "*.jsonl"))
	var out []asideLine
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for l := range strings.Lines(string(b)) {
			var a asideLine
			if err := json.Unmarshal([]byte(l), &a); err != nil {
				t.Fatal(err)
			}
			out = append(out, a)
		}
	}
	return out
}

func TestShip(t *testing.T) {
	dir := filled(t, 7)
	srv := newServer(t)
	s := shipper(t, dir, srv.URL, ShipOptions{BatchRecords: 3})
	drain(t, s)
	if got := strings.Join(srv.bodies(), " "); got != "e0 e1 e2 e3 e4 e5 e6" || srv.requests != 3 {
		t.Errorf("%d requests: %s", srv.requests, got)
	}
	if srv.got[0].resource != `{"attributes":[1]}` {
		t.Errorf("resource %s", srv.got[0].resource)
	}
	drain(t, shipper(t, dir, srv.URL, ShipOptions{})) // nothing is left
	if srv.requests != 3 || s.Stats().Shipped != 7 {
		t.Errorf("%d requests, %+v", srv.requests, s.Stats())
	}
	// Without the position, as after a crash before it was stored: the same ids.
	first := srv.got
	srv.got = nil
	pos, _ := filepath.Glob(filepath.Join(dir, "*"+posSuffix))
	os.Remove(pos[0])
	drain(t, shipper(t, dir, srv.URL, ShipOptions{}))
	for i := range first {
		if srv.got[i] != first[i] || first[i].id == "" {
			t.Errorf("sent again as %v, first as %v", srv.got[i], first[i])
		}
	}
}

// TestShipWhileWritten ships what a living writer has written so far.
func TestShipWhileWritten(t *testing.T) {
	dir := t.TempDir()
	srv := newServer(t)
	w := open(t, dir, Options{MaxFileBytes: 300})
	s := shipper(t, dir, srv.URL, ShipOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	for i := range 50 {
		if err := w.Append(record(i)); err != nil {
			t.Fatal(err)
		}
	}
	waitFor(t, "50 records", func() bool { return len(srv.bodies()) >= 50 })
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for i, b := range srv.bodies() {
		if b != fmt.Sprintf("e%d", i) {
			t.Fatalf("record %d is %s", i, b)
		}
	}
}

func TestServerAway(t *testing.T) {
	f := func(status int) {
		t.Helper()
		dir := filled(t, 3)
		srv := newServer(t)
		srv.set(status)
		told := make(chan error, 100)
		s := shipper(t, dir, srv.URL, ShipOptions{OnError: func(err error) { told <- err }})
		ended := make(chan error)
		go func() { ended <- s.Drain(t.Context()) }()
		<-told
		<-told
		srv.set(200)
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if len(srv.bodies()) != 3 || s.Stats().Retries < 2 || s.Stats().Rejected != 0 {
			t.Errorf("status %d: got %v, %+v", status, srv.bodies(), s.Stats())
		}
	}
	f(503)
	f(429)
	f(500)
	f(401) // a wrong token is mended by a person
	f(404)
	f(302) // its target would take the records for a GET
}

func TestRefused(t *testing.T) {
	dir := filled(t, 9)
	srv := newServer(t)
	srv.refuse = "e5"
	s := shipper(t, dir, srv.URL, ShipOptions{})
	drain(t, s)
	if got := strings.Join(srv.bodies(), " "); got != "e0 e1 e2 e3 e4 e6 e7 e8" {
		t.Errorf("got %s", got)
	}
	a := asides(t, dir)
	if len(a) != 1 || !strings.Contains(a[0].Line, "e5") || !strings.Contains(a[0].Reason, "bad record") {
		t.Errorf("aside %+v", a)
	}
	if s.Stats() != (ShipStats{Shipped: 8, Rejected: 1}) {
		t.Errorf("%+v", s.Stats())
	}
}

func TestPartialSuccess(t *testing.T) {
	dir := filled(t, 4)
	srv := newServer(t)
	srv.answer = `{"partialSuccess":{"rejectedLogRecords":"1","errorMessage":"one is odd"}}`
	s := shipper(t, dir, srv.URL, ShipOptions{})
	drain(t, s)
	if a := asides(t, dir); len(a) != 4 || !strings.Contains(a[0].Reason, "one is odd") {
		t.Errorf("aside %+v", a)
	}
	if s.Stats() != (ShipStats{Shipped: 3, Rejected: 1}) || srv.requests != 1 {
		t.Errorf("%+v in %d requests", s.Stats(), srv.requests)
	}
}

// TestBroken ships around lines and files that are damaged.
func TestBroken(t *testing.T) {
	f := func(name string, damage func([]byte) []byte, want string, aside int) {
		t.Run(name, func(t *testing.T) {
			dir := filled(t, 3)
			files, _ := list(dir)
			b, err := os.ReadFile(files[0].path)
			if err == nil {
				err = os.WriteFile(files[0].path, damage(b), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			srv := newServer(t)
			drain(t, shipper(t, dir, srv.URL, ShipOptions{}))
			if got := strings.Join(srv.bodies(), " "); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			if a := asides(t, dir); len(a) != aside {
				t.Errorf("aside %+v, want %d", a, aside)
			}
		})
	}
	replace := func(old, new string) func([]byte) []byte {
		return func(b []byte) []byte { return []byte(strings.Replace(string(b), old, new, 1)) }
	}
	add := func(s string) func([]byte) []byte {
		return func(b []byte) []byte { return append(b, s...) }
	}
	line := func(s string) func([]byte) []byte { return add(string(appendLine(nil, []byte(s)))) }
	f("changed", replace(`"e1"`, `"E1"`), "e0 e2", 1)
	f("not UTF-8", replace(`"e1"`, "\"\xff1\""), "e0 e2", 1)
	f("torn", add("0123"), "e0 e1 e2", 1)
	f("blank line", add("\n"), "e0 e1 e2", 1)
	f("no object", line("[1]"), "e0 e1 e2", 1)
	f("null", line("null"), "e0 e1 e2", 1)
	f("odd attributes", line(`{"attributes":7}`), "e0 e1 e2", 1)
	f("header", replace("inquest", "INQUEST"), "", 0)
	f("empty", func([]byte) []byte { return nil }, "", 0)
}

// TestOneShipper keeps a second shipper waiting while the first is at work.
func TestOneShipper(t *testing.T) {
	dir := filled(t, 1)
	srv := newServer(t)
	a, b := shipper(t, dir, srv.URL, ShipOptions{}), shipper(t, dir, srv.URL, ShipOptions{})
	release, err := a.acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := b.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) || srv.requests > 0 {
		t.Errorf("the second: %v, %d requests", err, srv.requests)
	}
	release()
	drain(t, b)
	if srv.requests != 1 {
		t.Errorf("%d requests", srv.requests)
	}
}

func TestLogsURL(t *testing.T) {
	f := func(endpoint, env, want string) {
		t.Helper()
		t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", env)
		got, err := logsURL(endpoint)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("logsURL(%q) = %q, %v, want %q", endpoint, got, err, want)
		}
	}
	f("", "", "http://localhost:4318/v1/logs")
	f("", "https://x:1", "https://x:1/v1/logs")
	f("http://a", "https://x:1", "http://a/v1/logs")
	f("http://a/", "", "http://a/v1/logs")
	f("http://a/otlp/v1/logs", "", "http://a/otlp/v1/logs")
	f("a:4318", "", "")
	f("ftp://a", "", "")
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	f := func(header string, want time.Duration) {
		t.Helper()
		if got := retryAfter(header, now); got != want {
			t.Errorf("retryAfter(%q) = %s, want %s", header, got, want)
		}
	}
	f("", 0)
	f("7", 7*time.Second)
	f("-7", 0)
	f("999999", time.Hour)
	f("Mon, 30 Nov 2026 12:00:30 GMT", 30*time.Second)
	f("Mon, 30 Nov 2026 11:00:00 GMT", 0)
	f("soon", 0)
}
