package truth

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"inquest/alert"
	"inquest/record"
)

// Settings are what the program gives to a checker. All may be left out.
type Settings struct {
	Logger *slog.Logger
	// Finding is called when what is found of a service changes. Calls for one
	// service come one after the other; the next look waits for it.
	Finding func(service string, f record.Finding)
	// Alert is called when something is found that contradicts, or that keeps the
	// truth from being told. [alert.Alerter.Notify] fits.
	Alert func(alert.Event)
}

// Checker looks at services. It is safe for concurrent use.
type Checker struct {
	conf    Config
	set     Settings
	watches map[string]*watch // does not change
	order   []*watch
	client  *http.Client
	conns   *http.Transport
	hasher  *hasher
	slots   chan struct{} // of looks at once
	stop    context.CancelFunc
	wg      sync.WaitGroup
}

// New starts a checker; [Checker.Close] ends it. Without services it does nothing.
func New(c Config, set Settings) (*Checker, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("cannot set up the truth check: %w", err)
	}
	return start(c.withDefaults(), set), nil
}

func start(c Config, set Settings) *Checker {
	if set.Logger == nil {
		set.Logger = slog.New(slog.DiscardHandler)
	}
	if set.Finding == nil {
		set.Finding = func(string, record.Finding) {}
	}
	if set.Alert == nil {
		set.Alert = func(alert.Event) {}
	}
	ctx, stop := context.WithCancel(context.Background())
	tr := &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConnsPerHost: 1, IdleConnTimeout: 90 * time.Second, MaxResponseHeaderBytes: 64 << 10,
	}
	k := &Checker{
		conf: c, set: set, watches: map[string]*watch{}, conns: tr, stop: stop,
		client: &http.Client{
			Transport: tr,
			// Another address is another service.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		hasher: newHasher(c.HashRate, c.Concurrency), slots: make(chan struct{}, c.Concurrency),
	}
	for _, s := range c.Services {
		w := newWatch(k, s.withDefaults())
		k.watches[s.Name] = w
		k.order = append(k.order, w)
	}
	for _, w := range k.order {
		k.wg.Go(func() { w.run(ctx) })
	}
	return k
}

// Close ends all looks. It returns an error when ctx ends first, as on a file
// system that hangs; then goroutines are left that end when it answers.
func (k *Checker) Close(ctx context.Context) error {
	k.stop()
	done := make(chan struct{})
	go func() { k.wg.Wait(); close(done) }()
	select {
	case <-done:
		k.conns.CloseIdleConnections()
		return nil
	case <-ctx.Done():
		return fmt.Errorf("cannot end the truth check in time: a file system or health address does not answer: %w", ctx.Err())
	}
}

// State returns what the last look at a service found, nil for a service that
// is not configured. It takes no lock.
func (k *Checker) State(service string) *State {
	if w := k.watches[service]; w != nil {
		return w.state.Load()
	}
	return nil
}

// States returns the state of every service, in the order of the configuration.
func (k *Checker) States() []*State {
	out := make([]*State, 0, len(k.order))
	for _, w := range k.order {
		out = append(out, w.state.Load())
	}
	return out
}

// Refresh looks at a service now, waits until its files are hashed, and returns
// the state.
func (k *Checker) Refresh(ctx context.Context, service string) (*State, error) {
	w := k.watches[service]
	if w == nil {
		return nil, fmt.Errorf("cannot check service %q: it is not configured; add it to the services of the truth check", service)
	}
	reply := make(chan *State, 1)
	select {
	case w.asked <- reply:
	case <-ctx.Done():
		return nil, fmt.Errorf("cannot check service %q: %w", service, ctx.Err())
	}
	select {
	case st := <-reply:
		return st, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("cannot check service %q: %w", service, ctx.Err())
	}
}

// Load is what a service's own event says of a load of its model.
type Load struct {
	At time.Time
	// SHA256 is the hash of what it loaded; empty where it does not say.
	SHA256 string
}

// Loaded takes notice of a load, after which files may not change. It does not
// wait. A load older than one already known is ignored.
func (k *Checker) Loaded(service string, l Load) {
	if w := k.watches[service]; w != nil && !l.At.IsZero() {
		w.loaded(l)
	}
}
