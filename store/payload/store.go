package payload

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"
)

// keeper is the [Store] over [Blobs]. What lies there is the truth; the index
// in memory says what that is, so that retention and erasure need not read it.
type keeper struct {
	blobs  Blobs
	o      Options
	secret []byte

	// gate is held for reading by whatever changes one payload, and alone by
	// erasures and Close.
	gate   sync.RWMutex
	closed bool
	// turns has one lock for the payloads whose sum begins with the same byte.
	turns [256]sync.Mutex
	// evict is held by whoever makes room.
	evict sync.Mutex

	mu      sync.Mutex // of what follows
	index   map[Sum]*entry
	bytes   int64 // of content in index
	pending int64 // of content that is being put
	erased  map[UserKey]erasure
}

// entry is what the index knows about a payload. It is changed under mu.
type entry struct {
	size   int64
	newest int64     // ns; when not loaded, when the references were written
	users  []UserKey // known ones
	loaded bool      // newest and users are from the references
	// orphaned: the references cannot be read, so the payload may be anybody's.
	orphaned bool
	// unsure: a write failed, or damage was seen. What lies there is not what
	// should, or it is not durable, so the next Put writes all of it.
	unsure bool
	// absent: no Put has succeeded, or a removal has begun. It is in the index
	// only because something may lie there.
	absent bool
}

var _ Store = (*keeper)(nil)

// turn returns the lock for payloads like sum.
func (k *keeper) turn(sum Sum) *sync.Mutex { return &k.turns[sum[0]] }

// enter lets a call in that changes or reads single payloads. When it returns
// nil, the caller calls k.gate.RUnlock.
func (k *keeper) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	k.gate.RLock()
	if k.closed {
		k.gate.RUnlock()
		return ErrClosed
	}
	return nil
}

// look returns a copy of the entry. It is missing, too, when it is absent.
func (k *keeper) look(sum Sum) (entry, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.index[sum]
	if e == nil || e.absent {
		return entry{}, false
	}
	return *e, true
}

// set puts the entry into the index in place of what was there.
func (k *keeper) set(sum Sum, e entry) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if old := k.index[sum]; old != nil {
		k.bytes -= old.size
	}
	k.index[sum] = &e
	k.bytes += e.size
}

// forget takes the entry out of the index and returns its size.
func (k *keeper) forget(sum Sum) int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.index[sum]
	if e == nil {
		return 0
	}
	k.bytes -= e.size
	delete(k.index, sum)
	return e.size
}

// doubt marks that what lies there is not known.
func (k *keeper) doubt(sum Sum, absent bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e := k.index[sum]; e != nil {
		e.unsure = true
		e.absent = e.absent || absent
	}
}

// sums returns the sorted sums of the index.
func (k *keeper) sums(want func(Sum, *entry) bool) []Sum {
	k.mu.Lock()
	defer k.mu.Unlock()
	var sums []Sum
	for sum, e := range k.index {
		if want(sum, e) {
			sums = append(sums, sum)
		}
	}
	slices.SortFunc(sums, func(a, b Sum) int { return slices.Compare(a[:], b[:]) })
	return sums
}

// Get implements [Store].
func (k *keeper) Get(ctx context.Context, sum Sum) ([]byte, error) {
	if err := k.enter(ctx); err != nil {
		return nil, err
	}
	defer k.gate.RUnlock()
	e, found := k.look(sum)
	if !found {
		return nil, fmt.Errorf("%s: %w", sum, ErrNotFound)
	}
	content, err := k.blobs.Read(ctx, contentName(sum), max(e.size, k.o.MaxPayload))
	if _, found := k.look(sum); !found { // removed meanwhile
		return nil, fmt.Errorf("%s: %w", sum, ErrNotFound)
	}
	if errors.Is(err, fs.ErrNotExist) {
		k.doubt(sum, false)
		return nil, fmt.Errorf("%s: %w: its content is missing", sum, ErrDamaged)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read payload %s: %w", sum, unavailable(err))
	}
	if got := SumOf(content); got != sum {
		k.doubt(sum, false)
		return nil, fmt.Errorf("%s: %w: the %d bytes that lie there have the hash %s; restore the file or delete the payload", sum, ErrDamaged, len(content), got)
	}
	return content, nil
}

// Stat implements [Store].
func (k *keeper) Stat(ctx context.Context, sum Sum) (Info, error) {
	if err := k.enter(ctx); err != nil {
		return Info{}, err
	}
	defer k.gate.RUnlock()
	return k.stat(ctx, sum)
}

func (k *keeper) stat(ctx context.Context, sum Sum) (Info, error) {
	turn := k.turn(sum)
	turn.Lock()
	defer turn.Unlock()
	e, found := k.look(sum)
	if !found {
		return Info{}, fmt.Errorf("%s: %w", sum, ErrNotFound)
	}
	side, err := k.readRefs(ctx, sum)
	if errors.Is(err, ErrDamaged) {
		return Info{Sum: sum, Size: e.size, Newest: time.Unix(0, e.newest).UTC()}, err
	}
	if err != nil {
		return Info{}, err
	}
	return side.info(sum), nil
}

// readRefs reads a payload's references. What cannot be understood is [ErrDamaged].
func (k *keeper) readRefs(ctx context.Context, sum Sum) (*sidecar, error) {
	data, err := k.blobs.Read(ctx, refsName(sum), maxSidecar)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("references of %s: %w: they are missing", sum, ErrDamaged)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the references of payload %s: %w", sum, unavailable(err))
	}
	side, err := parseSidecar(data)
	if err != nil {
		return nil, fmt.Errorf("references of %s: %w: %w", sum, ErrDamaged, err)
	}
	return side, nil
}

// Walk implements [Store].
func (k *keeper) Walk(ctx context.Context, fn func(Info) error) error {
	if err := k.enter(ctx); err != nil {
		return err
	}
	sums := k.sums(func(_ Sum, e *entry) bool { return !e.absent })
	k.gate.RUnlock()
	for _, sum := range sums {
		// fn is called without a lock, so that it may use the store.
		info, err := k.Stat(ctx, sum)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil && !errors.Is(err, ErrDamaged) {
			return err
		}
		if err := fn(info); err != nil {
			return err
		}
	}
	return nil
}

// Delete implements [Store].
func (k *keeper) Delete(ctx context.Context, sum Sum) error {
	if err := k.enter(ctx); err != nil {
		return err
	}
	defer k.gate.RUnlock()
	_, err := k.remove(ctx, sum, func(*entry) bool { return true })
	return err
}

// remove takes a payload away if its entry, seen when it is its turn, is still
// one that ok wants, and returns the size of its content.
func (k *keeper) remove(ctx context.Context, sum Sum, ok func(*entry) bool) (int64, error) {
	turn := k.turn(sum)
	turn.Lock()
	defer turn.Unlock()
	k.mu.Lock()
	e := k.index[sum]
	going := e != nil && ok(e)
	if going {
		e.unsure, e.absent = true, true
	}
	k.mu.Unlock()
	if !going {
		return 0, nil
	}
	if err := k.blobs.Remove(ctx, contentName(sum), refsName(sum)); err != nil {
		return 0, fmt.Errorf("cannot remove payload %s: %w", sum, unavailable(err))
	}
	return k.forget(sum), nil
}

// Usage implements [Store].
func (k *keeper) Usage() Usage {
	k.mu.Lock()
	defer k.mu.Unlock()
	return Usage{Payloads: len(k.index), Bytes: k.bytes}
}

// Close implements [Store].
func (k *keeper) Close() error {
	k.gate.Lock()
	defer k.gate.Unlock()
	if k.closed {
		return ErrClosed
	}
	k.closed = true
	return k.blobs.Close()
}

// unavailable marks an error of the place as one that may go away.
func unavailable(err error) error {
	if errors.Is(err, ErrUnavailable) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}
