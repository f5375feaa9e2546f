package inquesthttp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"

	inquest "inquest.dev/sdk/go"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func tracing(t *testing.T) (*sdktrace.TracerProvider, *tracetest.SpanRecorder) {
	rec := tracetest.NewSpanRecorder()
	p := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(inquest.NewSpanProcessor()), sdktrace.WithSpanProcessor(rec))
	t.Cleanup(func() { p.Shutdown(context.Background()) })
	return p, rec
}

func attr(s sdktrace.ReadOnlySpan, key string) string {
	for _, kv := range s.Attributes() {
		if string(kv.Key) == key {
			return kv.Value.Emit()
		}
	}
	return ""
}

// client returns a client that trusts srv and calls it by name, so that there is a
// name to look up.
func client(t *testing.T, srv *httptest.Server, p *sdktrace.TracerProvider) (*http.Client, string) {
	roots := x509.NewCertPool()
	base := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "example.com"}, ForceAttemptHTTP2: srv.EnableHTTP2}
	if c := srv.Certificate(); c != nil {
		roots.AddCert(c)
	}
	c := &http.Client{Transport: NewTransport(base, Options{Tracer: p})}
	t.Cleanup(c.CloseIdleConnections)
	return c, strings.Replace(srv.URL, "127.0.0.1", "localhost", 1)
}

func get(ctx context.Context, c *http.Client, url string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	return resp, nil
}

func names(spans []sdktrace.ReadOnlySpan) string {
	var out []string
	seen := map[string]bool{}
	for _, s := range spans {
		if !seen[s.Name()] { // connect may try two addresses
			out = append(out, s.Name())
		}
		seen[s.Name()] = true
	}
	return strings.Join(out, " ")
}

// TestPhases calls real servers, over TLS and without, HTTP/1 and HTTP/2.
func TestPhases(t *testing.T) {
	f := func(name string, secure, http2 bool, want string) {
		t.Run(name, func(t *testing.T) {
			p, rec := tracing(t)
			srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				time.Sleep(20 * time.Millisecond)
			}))
			srv.EnableHTTP2 = http2
			if secure {
				srv.StartTLS()
			} else {
				srv.Start()
			}
			defer srv.Close()
			c, url := client(t, srv, p)
			ctx := inquest.WithRequest(t.Context(), inquest.Request{ID: "r-1"})
			if _, err := get(ctx, c, url); err != nil {
				t.Fatal(err)
			}
			spans := rec.Ended()
			if got := names(spans); got != want {
				t.Errorf("spans %s, want %s", got, want)
			}
			top := spans[len(spans)-1]
			for _, s := range spans[:len(spans)-1] {
				if s.Parent().SpanID() != top.SpanContext().SpanID() || attr(s, inquest.KeyRequestID) != "r-1" {
					t.Errorf("%s is not a child with the request's id", s.Name())
				}
				if s.Name() == phaseFirstByte && s.EndTime().Sub(s.StartTime()) < 15*time.Millisecond {
					t.Errorf("the server took 20 ms, the first byte %s", s.EndTime().Sub(s.StartTime()))
				}
				if s.Name() == phaseTLS && !strings.HasPrefix(attr(s, "tls.protocol.version"), "TLS 1.3") {
					t.Errorf("version %s", attr(s, "tls.protocol.version"))
				}
			}
			if attr(top, "http.connection.reused") != "false" {
				t.Error("a new connection counts as used again")
			}
			if _, err := get(ctx, c, url); err != nil {
				t.Fatal(err)
			}
			if got := names(rec.Ended()[len(spans):]); got != phaseFirstByte+" HTTP GET" {
				t.Errorf("the second call: %s", got)
			}
		})
	}
	f("plain", false, false, "http.dns http.connect http.first_byte HTTP GET")
	f("TLS", true, false, "http.dns http.connect http.tls http.first_byte HTTP GET")
	f("TLS and HTTP/2", true, true, "http.dns http.connect http.tls http.first_byte HTTP GET")
}

// TestFailures ends the phase that failed with its error.
func TestFailures(t *testing.T) {
	f := func(name string, url string, c func(*sdktrace.TracerProvider) *http.Client, wait time.Duration, phase string) {
		t.Run(name, func(t *testing.T) {
			p, rec := tracing(t)
			ctx, cancel := context.WithTimeout(t.Context(), wait)
			defer cancel()
			cl := c(p)
			defer cl.CloseIdleConnections()
			if _, err := get(ctx, cl, url); err == nil {
				t.Fatal("the call went through")
			}
			found := false
			for _, s := range rec.Ended() {
				found = found || s.Name() == phase && s.Status().Code == codes.Error
			}
			if !found {
				t.Errorf("%s has not failed in %s", phase, names(rec.Ended()))
			}
			if len(rec.Started()) != len(rec.Ended()) {
				t.Errorf("%d spans have begun, %d ended", len(rec.Started()), len(rec.Ended()))
			}
		})
	}
	plain := func(p *sdktrace.TracerProvider) *http.Client {
		return &http.Client{Transport: NewTransport(&http.Transport{}, Options{Tracer: p})}
	}
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer silent.Close()
	secure := httptest.NewTLSServer(nil)
	secure.Config.ErrorLog = nil
	defer secure.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + l.Addr().String()
	l.Close()
	failing := func(p *sdktrace.TracerProvider) *http.Client {
		r := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no name server") }}
		return &http.Client{Transport: NewTransport(&http.Transport{DialContext: (&net.Dialer{Resolver: r}).DialContext}, Options{Tracer: p})}
	}
	f("name", "http://nowhere.invalid", failing, 5*time.Second, phaseDNS)
	f("connection refused", nobody, plain, 5*time.Second, phaseConnect)
	f("unknown authority", secure.URL, plain, 5*time.Second, phaseTLS)
	f("no answer", silent.URL, plain, 100*time.Millisecond, phaseFirstByte)
}

// TestRequestID follows the id from header to context, answer and the next service.
func TestRequestID(t *testing.T) {
	p, rec := tracing(t)
	var there http.Header
	backend := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { there = r.Header.Clone() }))
	defer backend.Close()
	calls, backendURL := client(t, backend, p)
	var here context.Context
	front := httptest.NewServer(Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		here = r.Context()
		inquest.SetInput(here, "hello")
		if _, err := get(r.Context(), calls, backendURL); err != nil {
			t.Error(err)
		}
	}), Options{Operation: "front", Tracer: p}))
	defer front.Close()
	defer http.DefaultClient.CloseIdleConnections()

	f := func(header map[string]string, want string) {
		t.Helper()
		req, err := http.NewRequest(http.MethodGet, front.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range header {
			req.Header.Set(k, v)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		id := resp.Header.Get("x-request-id")
		if want == "" && strings.HasPrefix(id, "r-") {
			want = id
		}
		if got := inquest.RequestID(here); id != want || got != want || there.Get("x-request-id") != want {
			t.Errorf("%v: answer %q, context %q, next service %q, want %q", header, id, got, there.Get("x-request-id"), want)
		}
		if !strings.Contains(there.Get("baggage"), "request.id="+want) || there.Get("traceparent") == "" || there.Get("x-inquest-input-hash") != inquest.HashInput("hello") {
			t.Errorf("%v: next service got %v", header, there)
		}
	}
	f(map[string]string{"x-request-id": "mine"}, "mine")
	f(map[string]string{"baggage": "request.id=from-baggage,user.id=u"}, "from-baggage")
	f(map[string]string{"x-request-id": "mine", "baggage": "request.id=other"}, "mine")
	f(nil, "")
	f(map[string]string{"x-request-id": strings.Repeat("x", 300)}, "")
	f(map[string]string{"x-request-id": "mine", "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}, "mine")

	waitFor(t, func() bool { return len(rec.Ended()) == len(rec.Started()) })
	refused := 0
	for _, s := range rec.Ended() {
		if attr(s, inquest.KeyRequestID) == "" {
			t.Errorf("%s has no request id", s.Name())
		}
		if attr(s, "request.id.refused") == "true" {
			refused++
		}
	}
	last := rec.Ended()[len(rec.Ended())-1]
	if refused != 1 || last.SpanContext().TraceID().String() != "4bf92f3577b34da6a3ce929d0e0e4736" {
		t.Errorf("%d ids refused, the last trace is %s", refused, last.SpanContext().TraceID())
	}
}

func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waited 5 s")
		}
	}
}

// TestSpanName names a server's span for its route, or as it is told.
func TestSpanName(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /items/{id}", func(http.ResponseWriter, *http.Request) {})
	f := func(operation, path, want string) {
		t.Helper()
		p, rec := tracing(t)
		Handler(mux, Options{Operation: operation, Tracer: p}).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil))
		if got := rec.Ended()[0].Name(); got != want {
			t.Errorf("%q, %s: span %q, want %q", operation, path, got, want)
		}
	}
	f("", "/items/7", "GET /items/{id}")
	f("", "/none", "GET")
	f("api", "/items/7", "api")
}

// TestStreaming lets a handler flush through the middleware.
func TestStreaming(t *testing.T) {
	p, _ := tracing(t)
	srv := httptest.NewServer(Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "one")
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
	}), Options{Tracer: p}))
	defer srv.Close()
	c := srv.Client()
	if _, err := get(t.Context(), c, srv.URL); err != nil {
		t.Error(err)
	}
}
