package truth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"inquest/alert"
	"inquest/record"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// healthServer answers with a body that can be changed, as a service that lies
// does.
type healthServer struct {
	*httptest.Server
	mu     sync.Mutex
	body   string
	status int
	slow   time.Duration
}

func newHealth(t *testing.T, body string) *healthServer {
	t.Helper()
	h := &healthServer{body: body, status: 200}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		body, status, slow := h.body, h.status, h.slow
		h.mu.Unlock()
		select {
		case <-time.After(slow):
		case <-r.Context().Done():
		}
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}))
	t.Cleanup(h.Close)
	return h
}

func (h *healthServer) tells(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.body = fmt.Sprintf(format, args...)
}

// heard collects findings and alerts.
type heard struct {
	mu       sync.Mutex
	findings []record.Finding
	alerts   []alert.Event
}

func (h *heard) settings() Settings {
	return Settings{
		Finding: func(_ string, f record.Finding) { h.mu.Lock(); h.findings = append(h.findings, f); h.mu.Unlock() },
		Alert:   func(e alert.Event) { h.mu.Lock(); h.alerts = append(h.alerts, e); h.mu.Unlock() },
	}
}

// kinds returns the findings as "kind direction quadrant entity".
func (h *heard) kinds() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []string
	for _, f := range h.findings {
		out = append(out, fmt.Sprintf("%s %s %s %s", f.Kind, f.Direction, f.Quadrant, f.Entity))
	}
	return out
}

// begin starts a checker that looks only when it is asked.
func begin(t *testing.T, set Settings, services ...Service) *Checker {
	t.Helper()
	c := Config{Interval: time.Hour, Timeout: 2 * time.Second, Services: services}
	k, err := New(c, set)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return k
}

func refresh(t *testing.T, k *Checker, service string) *State {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	st, err := k.Refresh(ctx, service)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// is checks the result of a look: "true", "false reason" or "unknown reason".
func is(t *testing.T, st *State, want string, details ...string) {
	t.Helper()
	got := "unknown " + string(st.Reason)
	if st.Validated != nil {
		got = strings.TrimSpace(fmt.Sprintf("%t %s", *st.Validated, st.Reason))
	}
	if got != want {
		t.Errorf("%s: got %s (%s), want %s", st.Service, got, st.Detail, want)
	}
	for _, d := range details {
		if !strings.Contains(st.Detail, d) {
			t.Errorf("%q is missing in %q", d, st.Detail)
		}
	}
}

// write makes a file that is older than any load of a test, unless age is 0.
func write(t *testing.T, path, content string, age time.Duration) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(content), 0o644))
	at := time.Now().Add(-age)
	must(t, os.Chtimes(path, at, at))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func sum(s string) string {
	b := sha256.Sum256([]byte(s))
	return hex.EncodeToString(b[:])
}

// tempDir is a folder without links on its path.
func tempDir(t *testing.T) string {
	t.Helper()
	d, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	return d
}
