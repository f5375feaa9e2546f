package alert

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// receiver is a webhook service that remembers what it was sent.
type receiver struct {
	mu     sync.Mutex
	calls  []*http.Request
	bodies [][]byte
	times  []time.Time
	answer func(n int, w http.ResponseWriter) // n counts from 0
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	r.mu.Lock()
	n := len(r.calls)
	r.calls, r.bodies, r.times = append(r.calls, req), append(r.bodies, body), append(r.times, time.Now())
	r.mu.Unlock()
	if r.answer != nil {
		r.answer(n, w)
	}
}

func (r *receiver) len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.calls)
}

func (r *receiver) body(i int) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bodies[i]
}

// RoundTrip serves without a network, so that time can be faked. An answer
// function that panics with errNoNetwork is a network that fails.
func (r *receiver) RoundTrip(req *http.Request) (resp *http.Response, err error) {
	defer func() {
		if e, ok := recover().(error); ok {
			if !errors.Is(e, errNoNetwork) {
				panic(e)
			}
			resp, err = nil, e
		}
	}()
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	r.ServeHTTP(w, req)
	return w.Result(), nil
}

var errNoNetwork = errors.New("connection refused")

// start returns an alerter for the hook and closes it with the test.
func start(t *testing.T, set Settings, hooks ...Hook) *Alerter {
	t.Helper()
	a, err := New(Config{Hooks: hooks}, set)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		_ = a.Close(ctx)
	})
	return a
}

// wait waits until ok, or fails.
func wait(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
