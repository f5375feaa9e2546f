package payload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Put implements [Store].
func (k *keeper) Put(ctx context.Context, want Sum, m Meta, content []byte) (Sum, error) {
	size := int64(len(content))
	if m.Time.IsZero() {
		return Sum{}, errors.New("cannot keep a payload without a time")
	}
	if size > min(k.o.MaxPayload, k.o.MaxTotal) {
		return Sum{}, fmt.Errorf("%w: %d bytes are above the limit of %d", ErrTooLarge, size, min(k.o.MaxPayload, k.o.MaxTotal))
	}
	sum := SumOf(content)
	if !want.IsZero() && want != sum {
		return Sum{}, fmt.Errorf("%w: expected %s, the content has %s", ErrMismatch, want, sum)
	}
	if err := k.enter(ctx); err != nil {
		return Sum{}, err
	}
	defer k.gate.RUnlock()
	user := keyOf(k.secret, m.UserID)
	if upTo, gone := k.erasedUpTo(user); gone && !m.Time.After(upTo) {
		return Sum{}, fmt.Errorf("%w: of %s, and the erasure covers all up to %s",
			ErrErased, m.Time.UTC().Format(time.RFC3339Nano), upTo.Format(time.RFC3339Nano))
	}
	if k.reserve(sum, size) {
		defer k.release(size)
		if err := k.makeRoom(ctx); err != nil {
			return Sum{}, err
		}
	}
	turn := k.turn(sum)
	turn.Lock()
	defer turn.Unlock()
	if err := k.put(ctx, sum, refOf(m, user), content); err != nil {
		return Sum{}, err
	}
	return sum, nil
}

// put writes what is not there yet. It is sum's turn.
func (k *keeper) put(ctx context.Context, sum Sum, r ref, content []byte) error {
	e, found := k.look(sum)
	side := &sidecar{}
	if found {
		var err error
		side, err = k.readRefs(ctx, sum)
		switch {
		case errors.Is(err, ErrDamaged):
			// Others may have referred to it: nobody can tell any more.
			side, e.unsure = &sidecar{More: true, Newest: time.Unix(0, e.newest).UTC()}, true
		case err != nil:
			return err
		}
	}
	before := side.users()
	changed := side.add(r, k.oldest(), k.o.MaxRefs)
	if found && !changed && !e.unsure {
		return nil
	}
	side.Size = int64(len(content))
	data, err := side.encode()
	if err != nil {
		return err
	}
	blobs := []Blob{{Name: refsName(sum), Data: data}}
	if !found || e.unsure {
		blobs = []Blob{{Name: contentName(sum), Data: content}, blobs[0]}
	}
	next := entry{size: side.Size, newest: side.Newest.UnixNano(), users: side.users(), loaded: true}
	if err := k.blobs.Write(ctx, blobs...); err != nil {
		k.putFailed(sum, next, before)
		return fmt.Errorf("cannot keep payload %s: %w", sum, unavailable(err))
	}
	k.set(sum, next)
	return nil
}

// putFailed remembers what may lie there now, the old references or the new
// ones, so that an erasure finds it.
func (k *keeper) putFailed(sum Sum, next entry, before []UserKey) {
	for _, u := range before {
		if !slices.Contains(next.users, u) {
			next.users = append(next.users, u)
		}
	}
	old, found := k.look(sum)
	next.unsure, next.absent, next.orphaned = true, !found, old.orphaned
	k.set(sum, next)
}

// oldest is the time before which retention takes references.
func (k *keeper) oldest() time.Time {
	if k.o.MaxAge < 0 {
		return time.Time{}
	}
	return k.o.Now().Add(-k.o.MaxAge)
}

// reserve sets bytes aside for content that is not there, and tells whether it did.
func (k *keeper) reserve(sum Sum, size int64) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e := k.index[sum]; e != nil && !e.absent {
		return false
	}
	k.pending += size
	return true
}

func (k *keeper) release(size int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pending -= size
}
