package alert

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Settings are what the program gives to an alerter.
type Settings struct {
	// Logger says what could not be sent. Nil logs nothing.
	Logger *slog.Logger
	// Transport carries the messages. Nil is one of the alerter's own: TLS with
	// the system's certificates, proxies as the environment says.
	Transport http.RoundTripper
}

// Alerter tells hooks about events. It is safe for concurrent use.
type Alerter struct {
	senders []*sender
	stop    context.CancelFunc
	idle    func() // closes connections
	closing chan struct{}
	end     atomic.Int64
	once    sync.Once
	closed  atomic.Bool
	late    atomic.Int64
}

// Stats is what one hook did since it started.
type Stats struct {
	Hook string `json:"hook"`
	Kind Kind   `json:"kind"`
	// Events are those that the hook's filters let pass.
	Events int64 `json:"events"`
	// Sent are messages that the receiver took.
	Sent int64 `json:"sent"`
	// Failed are messages that were given up; their events are told later.
	Failed int64 `json:"failed"`
	// Retries are tries that failed and were followed by another.
	Retries int64 `json:"retries"`
	// Suppressed are events that had no message of their own, but were counted
	// into one.
	Suppressed int64 `json:"suppressed"`
	// Merged are events beyond the limit on groups, told in the group "other".
	Merged int64 `json:"merged"`
	// Pending are events that are not told yet.
	Pending int64 `json:"pending"`
	// Lost are events that nobody was told of, since the alerter closed.
	Lost int64 `json:"lost"`
	// LastSent is when the last message was taken; zero for never.
	LastSent time.Time `json:"last_sent,omitzero"`
	// LastError is why the last try that failed did; without secrets.
	LastError string `json:"last_error,omitempty"`
}

// New starts an alerter; [Alerter.Close] ends it. Without hooks it does nothing.
func New(c Config, set Settings) (*Alerter, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("cannot set up alerts: %w", err)
	}
	log := set.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	a := &Alerter{closing: make(chan struct{}), idle: func() {}}
	tr := set.Transport
	if tr == nil {
		own := &http.Transport{
			Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second,
			MaxIdleConnsPerHost: 1, IdleConnTimeout: 90 * time.Second, MaxResponseHeaderBytes: 64 << 10,
		}
		tr, a.idle = own, own.CloseIdleConnections
	}
	client := &http.Client{
		Transport: tr,
		// A redirect would carry the message to an address nobody configured.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	ctx, stop := context.WithCancel(context.Background())
	a.stop = stop
	limits := map[string]*limiter{}
	for _, h := range c.Hooks {
		h = h.withDefaults()
		sv := services[h.Kind]
		robot := sv.robot(&h)
		if limits[robot] == nil {
			limits[robot] = newLimiter(sv.rates())
		}
		s := &sender{
			hook: h, service: sv, client: client, redact: newRedactor(&h), limit: limits[robot], log: log,
			groups: newGroups(&h), wake: make(chan struct{}, 1), closing: a.closing, end: &a.end, done: make(chan struct{}),
		}
		a.senders = append(a.senders, s)
		go s.run(ctx)
	}
	return a, nil
}

// Notify counts an event for every hook that wants to hear of it. It never waits
// for a receiver, and takes well under a microsecond per hook.
func (a *Alerter) Notify(e Event) {
	if a.closed.Load() {
		a.late.Add(1)
		return
	}
	now := time.Now()
	for _, s := range a.senders {
		if matches(s.hook.Reasons, e.Reason) && matches(s.hook.Services, e.Service) {
			s.add(&e, now)
		}
	}
}

// Send tells one hook about one event now, past its filters and groups, with one
// try. It serves to test a configuration.
func (a *Alerter) Send(ctx context.Context, hook string, e Event) error {
	for _, s := range a.senders {
		if s.hook.Name != hook {
			continue
		}
		now := time.Now()
		if e.Time.IsZero() {
			e.Time = now
		}
		e = e.kept()
		m := &Message{
			ID: newID(), Reason: e.Reason, Service: e.Service, Severity: e.Severity,
			Count: 1, First: e.Time, Last: e.Time, Example: e,
		}
		if wait := s.limit.take(now); wait > 0 {
			return fmt.Errorf("cannot send to hook %q now: the service's limit allows the next message in %s", hook, wait.Round(time.Second))
		}
		if r := s.post(ctx, m); !r.ok {
			return fmt.Errorf("cannot send to hook %q: %s", hook, r.text)
		}
		return nil
	}
	return fmt.Errorf("cannot send to hook %q: there is none of that name", hook)
}

// Stats returns a snapshot for each hook, in the order of the configuration.
func (a *Alerter) Stats() []Stats {
	out := make([]Stats, 0, len(a.senders))
	for _, s := range a.senders {
		st := Stats{
			Hook: s.hook.Name, Kind: s.hook.Kind, Events: s.events.Load(), Sent: s.sent.Load(), Failed: s.failed.Load(),
			Retries: s.retries.Load(), Lost: s.lost.Load() + a.late.Load(),
		}
		st.Suppressed, st.Merged = s.groups.counts()
		st.Pending = s.groups.pending() + s.inHand.Load()
		if ns := s.lastSent.Load(); ns != 0 {
			st.LastSent = time.Unix(0, ns)
		}
		if e := s.lastError.Load(); e != nil {
			st.LastError = *e
		}
		out = append(out, st)
	}
	return out
}

// Close tells what is left without waiting for intervals, merging what are many
// groups, and ends the alerter. When ctx ends first, its error says how many
// events nobody was told of. Events that come after Close are counted as lost.
func (a *Alerter) Close(ctx context.Context) error {
	a.once.Do(func() {
		a.closed.Store(true)
		if end, ok := ctx.Deadline(); ok {
			a.end.Store(end.UnixNano())
		}
		close(a.closing)
	})
	// A sender in the middle of a try is stopped when ctx ends.
	unhook := context.AfterFunc(ctx, a.stop)
	defer unhook()
	var errs []error
	for _, s := range a.senders {
		<-s.done
		// Those that came while closing are left in the groups.
		s.lost.Add(s.groups.drop())
		if n := s.lost.Load(); n > 0 {
			errs = append(errs, fmt.Errorf("cannot tell hook %q of %d events: the receiver did not take them in time", s.hook.Name, n))
		}
	}
	a.stop()
	a.idle()
	return errors.Join(errs...)
}

func newID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
