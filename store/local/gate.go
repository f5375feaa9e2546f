package local

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

var errClosed = errors.New("store is closed")

// gate counts who is inside a store: calls may enter until it is shut, and only
// so many of them may query at once.
type gate struct {
	// queries holds a token for each running query.
	queries chan struct{}
	// use is held for reading by every call, for writing by Close.
	use     sync.RWMutex
	closed  bool
	closing context.Context
	stop    context.CancelFunc
}

// open lets calls in.
func (g *gate) open(maxQueries int) {
	g.queries = make(chan struct{}, maxQueries)
	g.closing, g.stop = context.WithCancel(context.Background())
}

// enter marks the start of a call; leave must be called at its end.
func (g *gate) enter() (leave func(), err error) {
	g.use.RLock()
	if g.closed {
		g.use.RUnlock()
		return nil, errClosed
	}
	return g.use.RUnlock, nil
}

// turn waits until one more query may run; done must be called at its end.
func (g *gate) turn(ctx context.Context) (done func(), err error) {
	select {
	case g.queries <- struct{}{}:
		return func() { <-g.queries }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for other queries: %w", ctx.Err())
	case <-g.closing.Done():
		return nil, errClosed
	}
}

// whileOpen returns a context that ends with ctx and when the gate shuts; cancel
// must be called.
func (g *gate) whileOpen(ctx context.Context) (_ context.Context, cancel func()) {
	ctx, cause := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(g.closing, func() { cause(errClosed) })
	return ctx, func() {
		unhook()
		cause(nil)
	}
}

// shut ends running queries, waits for the calls inside and lets no other in.
// It returns false when the gate was shut before, else what to call when the
// store is closed.
func (g *gate) shut() (done func(), first bool) {
	g.stop()
	g.use.Lock()
	if g.closed {
		g.use.Unlock()
		return nil, false
	}
	g.closed = true
	return g.use.Unlock, true
}
