package alert

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// told returns count and reason of each message that a generic receiver got.
func told(t *testing.T, r *receiver) (out []string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, raw := range r.bodies {
		var b genericBody
		if err := json.Unmarshal(raw, &b); err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprintf("%d %s/%s", b.Count, b.Reason, b.Service))
	}
	return out
}

func same(t *testing.T, got []string, want ...string) {
	t.Helper()
	if strings.Join(got, ", ") != strings.Join(want, ", ") {
		t.Errorf("told %q, want %q", got, want)
	}
}

const testURL = "http://localhost/hook-of-the-test"

func TestInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{}
		a := start(t, Settings{Transport: r}, Hook{Name: "h", Kind: KindGeneric, URL: testURL, MinInterval: time.Minute})
		ev := func(reason, service string) { a.Notify(Event{Reason: reason, Service: service}) }
		ev("size", "a")
		synctest.Wait()
		same(t, told(t, r), "1 size/a") // the first at once
		for range 10 {
			ev("size", "a")
			time.Sleep(time.Second)
		}
		ev("size", "b") // another group
		synctest.Wait()
		same(t, told(t, r), "1 size/a", "1 size/b")
		if s := a.Stats()[0]; s.Suppressed != 9 || s.Pending != 10 || s.Events != 12 {
			t.Errorf("stats %+v", s)
		}
		time.Sleep(49 * time.Second)
		synctest.Wait()
		if r.len() != 2 {
			t.Error("told before the interval was over")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		same(t, told(t, r), "1 size/a", "1 size/b", "10 size/a")
		time.Sleep(time.Hour) // quiet
		synctest.Wait()
		if r.len() != 3 {
			t.Error("told without an event")
		}
		ev("size", "a")
		synctest.Wait()
		same(t, told(t, r)[3:], "1 size/a")
	})
}

func TestFilters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{}
		a := start(t, Settings{Transport: r}, Hook{
			Name: "h", Kind: KindGeneric, URL: testURL, Reasons: []string{"schema.*"}, Services: []string{"a"},
		})
		for _, e := range []Event{{Reason: "schema.type", Service: "a"}, {Reason: "size", Service: "a"}, {Reason: "schema.type", Service: "b"}} {
			a.Notify(e)
		}
		synctest.Wait()
		same(t, told(t, r), "1 schema.type/a")
	})
}

func TestGroupsAreBoundedAndNothingIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{}
		a := start(t, Settings{Transport: r}, Hook{Name: "h", Kind: KindGeneric, URL: testURL, MaxGroups: 10})
		const n = 10_000
		for i := range n {
			a.Notify(Event{Reason: fmt.Sprint("r", i%2500), Service: "s"})
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		sum := int64(0)
		other := false
		for i := range r.len() {
			var b genericBody
			_ = json.Unmarshal(r.body(i), &b)
			sum += b.Count
			if b.Merged {
				other = true
				if b.Reason != "other" || len(b.Groups) != maxOthers+1 || b.Example.Reason == "" {
					t.Errorf("merged %+v", b)
				}
			}
		}
		if sum != n || !other {
			t.Errorf("told of %d events of %d, merged %v", sum, n, other)
		}
		if s := a.Stats()[0]; s.Merged != n-40 || s.Pending != 0 || len(a.senders[0].groups.byKey) > 10 {
			t.Errorf("stats %+v", s)
		}
		// Quiet groups make room.
		a.Notify(Event{Reason: "new", Service: "s"})
		synctest.Wait()
		if got := told(t, r); got[len(got)-1] != "1 new/s" {
			t.Errorf("told %q", got[len(got)-1])
		}
	})
}

func TestRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{answer: func(n int, w http.ResponseWriter) {
			switch n {
			case 0:
				panic(errNoNetwork)
			case 1:
				w.WriteHeader(503)
			case 2:
				w.Header().Set("Retry-After", "90")
				w.WriteHeader(429)
			}
		}}
		a := start(t, Settings{Transport: r}, Hook{Name: "h", Kind: KindGeneric, URL: testURL})
		a.Notify(Event{Reason: "size"})
		time.Sleep(4 * time.Minute)
		synctest.Wait()
		if r.len() != 4 {
			t.Fatalf("%d tries, want 4", r.len())
		}
		for i, least := range []time.Duration{800 * time.Millisecond, 1600 * time.Millisecond, 90 * time.Second} {
			if d := r.times[i+1].Sub(r.times[i]); d < least || d > least*5/4+time.Second {
				t.Errorf("try %d came after %s, want %s", i+1, d, least)
			}
		}
		if id := r.calls[0].Header.Get(HeaderID); id != r.calls[3].Header.Get(HeaderID) {
			t.Error("a repetition has another id")
		}
		if s := a.Stats()[0]; s.Sent != 1 || s.Retries != 3 || s.Failed != 0 || s.Pending != 0 {
			t.Errorf("stats %+v", s)
		}
	})
}

func TestGivenUpEventsAreToldLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var dead atomic.Bool
		dead.Store(true)
		r := &receiver{answer: func(_ int, w http.ResponseWriter) {
			if dead.Load() {
				panic(fmt.Errorf("Post %q: %w", testURL, errNoNetwork))
			}
		}}
		a := start(t, Settings{Transport: r, Logger: slog.New(slog.NewTextHandler(&log, nil))},
			Hook{Name: "h", Kind: KindGeneric, URL: testURL, Attempts: 3, MinInterval: time.Minute})
		for range 7 {
			a.Notify(Event{Reason: "size"})
		}
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if s := a.Stats()[0]; r.len() != 3 || s.Failed != 1 || s.Pending != 7 || s.Sent != 0 {
			t.Fatalf("%d tries, stats %+v", r.len(), s)
		}
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		// The longest backoff is five minutes.
		if n := r.len(); n < 200 || n > 24*60/4+10 {
			t.Errorf("%d tries in a day", n)
		}
		dead.Store(false)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		got := told(t, r)
		if got[len(got)-1] != "7 size/" || a.Stats()[0].Pending != 0 {
			t.Errorf("told %q, %+v", got[len(got)-1], a.Stats()[0])
		}
		has(t, log.String(), "cannot send alert", "hook=h", "connection refused", "alerts are taken again")
		lacks(t, log.String(), "hook-of-the-test")
	})
}

func TestPermanentErrorsAreNotRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{answer: func(_ int, w http.ResponseWriter) { io.WriteString(w, `{"errcode":93000,"errmsg":"invalid"}`) }}
		a := start(t, Settings{Transport: r}, Hook{Name: "h", Kind: KindWeCom, URL: testURL, MinInterval: time.Hour})
		a.Notify(Event{Reason: "size"})
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		if s := a.Stats()[0]; r.len() != 1 || s.Failed != 1 || !strings.Contains(s.LastError, "errcode 93000: invalid") {
			t.Errorf("%d tries, stats %+v", r.len(), s)
		}
	})
}

func TestRates(t *testing.T) {
	f := func(kind Kind, most int, per time.Duration) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			r := &receiver{answer: func(_ int, w http.ResponseWriter) {
				io.WriteString(w, map[Kind]string{KindSlack: "ok"}[kind]+map[bool]string{true: `{"errcode":0,"code":0}`}[kind != KindSlack])
			}}
			// Two hooks of one robot share its limit.
			h := Hook{Name: "a", Kind: kind, URL: testURL, Secret: map[Kind]Secret{KindPagerDuty: "k"}[kind]}
			g := h
			g.Name = "b"
			a := start(t, Settings{Transport: r}, h, g)
			for i := range 150 {
				a.Notify(Event{Reason: fmt.Sprint(i)})
			}
			time.Sleep(time.Hour)
			synctest.Wait()
			if r.len() != 300 {
				t.Errorf("%s: %d messages, want 300", kind, r.len())
			}
			for i := range r.times[:len(r.times)-most] {
				if d := r.times[i+most].Sub(r.times[i]); d < per {
					t.Fatalf("%s: %d messages in %s", kind, most+1, d)
				}
			}
		})
	}
	f(KindWeCom, 20, time.Minute)
	f(KindDingTalk, 20, time.Minute)
	f(KindFeishu, 5, time.Second)
	f(KindFeishu, 100, time.Minute)
	f(KindSlack, 1, time.Second)
	f(KindPagerDuty, 120, time.Minute)
}

func TestCloseFlushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{}
		a := start(t, Settings{Transport: r}, Hook{Name: "h", Kind: KindGeneric, URL: testURL, MinInterval: time.Hour})
		for range 2 { // the first of each is told at once, the second waits
			for i := range 100 {
				a.Notify(Event{Reason: fmt.Sprintf("r%02d", i)})
			}
			synctest.Wait()
		}
		before := r.len()
		if err := a.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		got := told(t, r)[before:]
		if len(got) != flushMessages+1 || !strings.Contains(strings.Join(got, ", "), "95 other/several services") {
			t.Errorf("told %q", got)
		}
		a.Notify(Event{Reason: "late"})
		if s := a.Stats()[0]; s.Lost != 1 || s.Pending != 0 {
			t.Errorf("stats %+v", s)
		}
	})
}

func TestCloseKeepsRetryingUntilItsTime(t *testing.T) {
	f := func(answers int, want string) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			r := &receiver{answer: func(n int, _ http.ResponseWriter) {
				if n < answers {
					panic(errNoNetwork)
				}
			}}
			a, err := New(Config{Hooks: []Hook{{Name: "h", Kind: KindGeneric, URL: testURL, Attempts: 20}}}, Settings{Transport: r})
			if err != nil {
				t.Fatal(err)
			}
			a.Notify(Event{Reason: "size"})
			time.Sleep(time.Minute) // far into the backoff
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			begin := time.Now()
			err = a.Close(ctx)
			if got := fmt.Sprint(err); !strings.Contains(got, want) {
				t.Errorf("Close: %v, want %s", err, want)
			}
			if d := time.Since(begin); d > 5*time.Second {
				t.Errorf("Close took %s", d)
			}
		})
	}
	f(7, "<nil>")
	f(1e6, `cannot tell hook "h" of 1 events`)
}

// TestSlowReceiver has a receiver that never answers and one that is dead: those
// who notify do not wait, and the third hook is told.
func TestSlowReceiver(t *testing.T) {
	block := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-block }))
	defer slow.Close()
	defer close(block)
	dead := httptest.NewServer(nil)
	dead.Close()
	r := &receiver{}
	good := httptest.NewServer(r)
	defer good.Close()
	a := start(t, Settings{},
		Hook{Name: "slow", Kind: KindGeneric, URL: Secret(slow.URL + "/slow-secret"), Timeout: 200 * time.Millisecond},
		Hook{Name: "dead", Kind: KindGeneric, URL: Secret(dead.URL + "/dead-secret")},
		Hook{Name: "good", Kind: KindGeneric, URL: Secret(good.URL)})
	begin := time.Now()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 5000 {
				a.Notify(Event{Reason: "size", Service: fmt.Sprint(i % 10), Text: "too large"})
			}
		})
	}
	wg.Wait()
	if d := time.Since(begin); d > 2*time.Second {
		t.Errorf("40,000 events took %s", d)
	}
	wait(t, "the good hook", func() bool { return a.Stats()[2].Sent >= 10 })
	wait(t, "the errors", func() bool { return a.Stats()[0].LastError != "" && a.Stats()[1].LastError != "" })
	st := a.Stats()
	has(t, st[0].LastError, "no answer within 200ms")
	has(t, st[1].LastError, "refused")
	lacks(t, st[0].LastError+st[1].LastError, "secret")
	for _, s := range st[:2] {
		if s.Pending != 40_000 {
			t.Errorf("hook %s: %d events wait, want 40000", s.Hook, s.Pending)
		}
	}
}

func TestRedirectIsNotFollowed(t *testing.T) {
	other := &receiver{}
	to := httptest.NewServer(other)
	defer to.Close()
	from := httptest.NewServer(http.RedirectHandler(to.URL, http.StatusTemporaryRedirect))
	defer from.Close()
	a := start(t, Settings{}, Hook{Name: "h", Kind: KindGeneric, URL: Secret(from.URL)})
	err := a.Send(context.Background(), "h", Event{Reason: "size"})
	if err == nil || !strings.Contains(err.Error(), "it redirects") || other.len() != 0 {
		t.Errorf("Send: %v, %d calls", err, other.len())
	}
}

func TestUntrustedCertificateIsRefused(t *testing.T) {
	r := &receiver{}
	srv := httptest.NewUnstartedServer(r)
	srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	srv.StartTLS()
	defer srv.Close()
	a := start(t, Settings{}, Hook{Name: "h", Kind: KindGeneric, URL: Secret(srv.URL + "/secret-path")})
	err := a.Send(context.Background(), "h", Event{Reason: "size"})
	if err == nil || !strings.Contains(err.Error(), "certificate") || strings.Contains(err.Error(), "secret-path") || r.len() != 0 {
		t.Errorf("Send: %v", err)
	}
}

func BenchmarkNotify(b *testing.B) {
	a, err := New(Config{Hooks: []Hook{{Name: "h", Kind: KindGeneric, URL: testURL}}}, Settings{Transport: &receiver{}})
	if err != nil {
		b.Fatal(err)
	}
	defer a.Close(context.Background())
	e := Event{Reason: "schema.pattern", Service: "chat-api", Text: "x"}
	b.ReportAllocs()
	for b.Loop() {
		a.Notify(e)
	}
}
