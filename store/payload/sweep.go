package payload

import (
	"cmp"
	"context"
	"errors"
	"slices"
)

// Sweep implements [Store].
func (k *keeper) Sweep(ctx context.Context) (Swept, error) {
	var swept Swept
	if err := k.enter(ctx); err != nil {
		return swept, err
	}
	defer k.gate.RUnlock()
	if k.o.MaxAge >= 0 {
		oldest := k.oldest().UnixNano()
		tooOld := func(e *entry) bool { return e.newest < oldest }
		for _, sum := range k.sums(func(_ Sum, e *entry) bool { return tooOld(e) }) {
			size, err := k.remove(ctx, sum, tooOld)
			if err != nil {
				return swept, err
			}
			swept.Expired++
			swept.Bytes += size
		}
	}
	evicted, bytes, err := k.evictOldest(ctx, k.o.MaxTotal, k.o.MaxPayloads)
	swept.Evicted, swept.Bytes = evicted, swept.Bytes+bytes
	return swept, errors.Join(err, k.forgetErasures(ctx))
}

// makeRoom removes the oldest payloads when what is put now would exceed the
// bounds. It removes a little more than needed, since finding the oldest means
// looking at all.
func (k *keeper) makeRoom(ctx context.Context) error {
	k.evict.Lock()
	defer k.evict.Unlock()
	k.mu.Lock()
	full := k.bytes+k.pending > k.o.MaxTotal || len(k.index) >= k.o.MaxPayloads
	k.mu.Unlock()
	if !full {
		return nil
	}
	_, _, err := k.evictOldest(ctx, k.o.MaxTotal-k.o.MaxTotal/20, k.o.MaxPayloads-max(1, k.o.MaxPayloads/20))
	return err
}

// evictOldest removes the oldest payloads until the rest keeps to the bounds,
// together with what is being put.
func (k *keeper) evictOldest(ctx context.Context, maxBytes int64, maxPayloads int) (evicted int, bytes int64, err error) {
	type aged struct {
		sum    Sum
		newest int64
	}
	k.mu.Lock()
	over := func() bool { return k.bytes+k.pending > maxBytes || len(k.index) > maxPayloads }
	if !over() {
		k.mu.Unlock()
		return 0, 0, nil
	}
	all := make([]aged, 0, len(k.index))
	for sum, e := range k.index {
		all = append(all, aged{sum, e.newest})
	}
	k.mu.Unlock()
	slices.SortFunc(all, func(a, b aged) int {
		return cmp.Or(cmp.Compare(a.newest, b.newest), slices.Compare(a.sum[:], b.sum[:]))
	})
	for _, a := range all {
		k.mu.Lock()
		enough := !over()
		k.mu.Unlock()
		if enough {
			break
		}
		// One that was referred to meanwhile is no longer the oldest.
		size, err := k.remove(ctx, a.sum, func(e *entry) bool { return e.newest == a.newest })
		if err != nil {
			return evicted, bytes, err
		}
		evicted++
		bytes += size
	}
	return evicted, bytes, nil
}
