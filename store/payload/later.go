package payload

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Later is a store at a place that may be out of reach now, such as a bucket on
// another machine: whoever uses it can start meanwhile. Until the place is
// reached all methods but Close and Usage return [ErrUnavailable].
type Later struct {
	open   func(context.Context) (Store, error)
	log    *slog.Logger
	cancel context.CancelFunc
	done   chan struct{} // closed when it no longer tries

	mu     sync.Mutex
	store  Store
	err    error // of the last try
	closed bool
}

var _ Store = (*Later)(nil)

// OpenLater calls open, and when that fails with [ErrUnavailable] calls it again
// every interval in the background. Any other error is returned at once, and
// ends the tries where it comes later: then somebody has to mend something.
func OpenLater(ctx context.Context, open func(context.Context) (Store, error), interval time.Duration, log *slog.Logger) (*Later, error) {
	l := &Later{open: open, log: log, done: make(chan struct{})}
	l.store, l.err = open(ctx)
	if l.err != nil && !errors.Is(l.err, ErrUnavailable) {
		return nil, l.err
	}
	bg, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	if l.err == nil {
		close(l.done)
		return l, nil
	}
	log.Error("the payload store cannot be opened yet; it is tried again", "interval", interval.String(), "error", l.err)
	go l.try(bg, interval)
	return l, nil
}

func (l *Later) try(ctx context.Context, interval time.Duration) {
	defer close(l.done)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		store, err := l.open(ctx)
		if ctx.Err() != nil && err != nil {
			return
		}
		l.mu.Lock()
		l.store, l.err = store, err
		l.mu.Unlock()
		switch {
		case err == nil:
			l.log.Info("the payload store is open")
			return
		case !errors.Is(err, ErrUnavailable):
			l.log.Error("the payload store cannot be opened; mend this and start again", "error", err)
			return
		}
	}
}

func (l *Later) get() (Store, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return nil, ErrClosed
	case l.err != nil && errors.Is(l.err, ErrUnavailable):
		return nil, fmt.Errorf("it is not open yet: %w", l.err)
	case l.err != nil:
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, l.err)
	}
	return l.store, nil
}

// Put implements [Store].
func (l *Later) Put(ctx context.Context, want Sum, m Meta, content []byte) (Sum, error) {
	s, err := l.get()
	if err != nil {
		return Sum{}, err
	}
	return s.Put(ctx, want, m, content)
}

// Get implements [Store].
func (l *Later) Get(ctx context.Context, sum Sum) ([]byte, error) {
	s, err := l.get()
	if err != nil {
		return nil, err
	}
	return s.Get(ctx, sum)
}

// Stat implements [Store].
func (l *Later) Stat(ctx context.Context, sum Sum) (Info, error) {
	s, err := l.get()
	if err != nil {
		return Info{}, err
	}
	return s.Stat(ctx, sum)
}

// Walk implements [Store].
func (l *Later) Walk(ctx context.Context, fn func(Info) error) error {
	s, err := l.get()
	if err != nil {
		return err
	}
	return s.Walk(ctx, fn)
}

// Delete implements [Store].
func (l *Later) Delete(ctx context.Context, sum Sum) error {
	s, err := l.get()
	if err != nil {
		return err
	}
	return s.Delete(ctx, sum)
}

// EraseUser implements [Store].
func (l *Later) EraseUser(ctx context.Context, userID string) (Erased, error) {
	s, err := l.get()
	if err != nil {
		return Erased{}, err
	}
	return s.EraseUser(ctx, userID)
}

// Sweep implements [Store].
func (l *Later) Sweep(ctx context.Context) (Swept, error) {
	s, err := l.get()
	if err != nil {
		return Swept{}, err
	}
	return s.Sweep(ctx)
}

// Usage implements [Store]. It is zero until the store is open.
func (l *Later) Usage() Usage {
	s, err := l.get()
	if err != nil {
		return Usage{}
	}
	return s.Usage()
}

// Close implements [Store].
func (l *Later) Close() error {
	l.cancel()
	<-l.done
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.store == nil {
		l.closed = true
		return nil
	}
	l.closed = true
	return l.store.Close()
}
