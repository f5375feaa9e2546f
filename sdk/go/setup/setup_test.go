package setup

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	inquest "inquest.dev/sdk/go"
	"inquest.dev/sdk/go/spool"
)

func TestMain(m *testing.M) {
	if spool.RunIfWatchdog() {
		return
	}
	goleak.VerifyTestMain(m)
}

// server counts the requests by path.
type server struct {
	*httptest.Server
	mu    sync.Mutex
	paths map[string]int
}

func newServer(t *testing.T) *server {
	s := &server{paths: map[string]int{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.paths[r.URL.Path+" "+r.Header.Get("Content-Type")+" "+r.Header.Get("X-Token")]++
	}))
	t.Cleanup(s.Close)
	return s
}

// TestStart sends spans, log records and events of a wired application.
func TestStart(t *testing.T) {
	before := slog.Default()
	defer slog.SetDefault(before)
	f := func(name string, inProcess bool) {
		t.Run(name, func(t *testing.T) {
			srv := newServer(t)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			sdk, err := Start(ctx, Options{
				Service: "chat-api", Endpoint: srv.URL, SpoolDir: t.TempDir(), InProcess: inProcess,
				Headers: map[string]string{"X-Token": "t"}, Slog: slog.DiscardHandler,
				OnError: func(err error) { t.Error(err) },
			})
			if err != nil {
				t.Fatal(err)
			}
			in, span := sdk.Traces.Tracer("test").Start(inquest.WithRequest(ctx, inquest.Request{}), "serve")
			slog.InfoContext(in, "hello")
			if err := sdk.Events.Ingress(in, inquest.Ingress{Raw: "hello"}); err != nil {
				t.Error(err)
			}
			span.End()
			if err := sdk.Shutdown(ctx); err != nil {
				t.Error(err)
			}
			srv.mu.Lock()
			defer srv.mu.Unlock()
			for _, want := range []string{"/v1/traces application/x-protobuf t", "/v1/logs application/x-protobuf t", "/v1/logs application/json t"} {
				if srv.paths[want] == 0 {
					t.Errorf("nothing came to %s: %v", want, srv.paths)
				}
			}
		})
	}
	f("goroutine", true)
	f("watchdog", false)
}

func TestStartFails(t *testing.T) {
	f := func(o Options) {
		t.Helper()
		if _, err := Start(t.Context(), o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
	f(Options{})
	f(Options{Service: "x", Endpoint: "ftp://x", SpoolDir: t.TempDir()})
	f(Options{Service: "x", SpoolDir: "/dev/null/spool", InProcess: true})
}
