package payload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// erasure is what is remembered of one: the blob of that user below erased.
type erasure struct {
	At   time.Time `json:"at"`    // when it was asked for
	UpTo time.Time `json:"up_to"` // the latest time of a reference that it covers
	Done bool      `json:"done"`  // nothing that it covers is left
}

// EraseUser implements [Store]. First the erasure itself is made durable: from
// then on the user's payloads are gone for good, since whoever opens the store
// completes it.
func (k *keeper) EraseUser(ctx context.Context, userID string) (Erased, error) {
	if userID == "" {
		return Erased{}, errors.New("cannot erase a user without an id")
	}
	if err := ctx.Err(); err != nil {
		return Erased{}, err
	}
	k.gate.Lock()
	defer k.gate.Unlock()
	if k.closed {
		return Erased{}, ErrClosed
	}
	user := keyOf(k.secret, userID)
	if err := k.loadAll(ctx); err != nil {
		return Erased{}, err
	}
	now := k.o.Now().UTC()
	er := erasure{At: now, UpTo: now}
	mine := k.sums(func(_ Sum, e *entry) bool { return slices.Contains(e.users, user) })
	for _, sum := range mine {
		// A sender's clock may be ahead of ours.
		if newest := k.newest(sum); newest.After(er.UpTo) {
			er.UpTo = newest
		}
	}
	if err := k.rememberErasure(ctx, user, er); err != nil {
		return Erased{}, err
	}
	return k.erase(ctx, user, er)
}

func (k *keeper) newest(sum Sum) time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return time.Unix(0, k.index[sum].newest).UTC()
}

// erase does what er says and remembers that it is done. The caller is alone.
func (k *keeper) erase(ctx context.Context, user UserKey, er erasure) (Erased, error) {
	sums := k.sums(func(_ Sum, e *entry) bool { return e.orphaned || slices.Contains(e.users, user) })
	var done Erased
	var mu sync.Mutex
	err := each(ctx, sums, func(sum Sum) error {
		one, err := k.eraseFrom(ctx, sum, user, er.UpTo)
		mu.Lock()
		defer mu.Unlock()
		done.Removed = append(done.Removed, one.Removed...)
		done.Shared = append(done.Shared, one.Shared...)
		done.Unreadable = append(done.Unreadable, one.Unreadable...)
		done.References += one.References
		done.Bytes += one.Bytes
		return err
	})
	for _, sums := range [][]Sum{done.Removed, done.Shared, done.Unreadable} {
		slices.SortFunc(sums, func(a, b Sum) int { return slices.Compare(a[:], b[:]) })
	}
	if err != nil {
		return done, fmt.Errorf("cannot erase all payloads of the user: %w; repeat it, or open the store again", err)
	}
	er.Done = true
	return done, k.rememberErasure(ctx, user, er)
}

// eraseFrom takes the user's references off one payload, and the payload away
// when no other is left.
func (k *keeper) eraseFrom(ctx context.Context, sum Sum, user UserKey, upTo time.Time) (Erased, error) {
	k.mu.Lock()
	e := *k.index[sum]
	k.mu.Unlock()
	always := func(*entry) bool { return true }
	side, err := k.readRefs(ctx, sum)
	if errors.Is(err, ErrDamaged) {
		// It may be all that is left of an earlier try. If not, it may be the
		// user's, and keeping it would break the promise.
		bytes, err := k.remove(ctx, sum, always)
		if err != nil {
			return Erased{}, err
		}
		if e.absent {
			return Erased{Removed: []Sum{sum}, Bytes: bytes}, nil
		}
		return Erased{Unreadable: []Sum{sum}, Bytes: bytes}, nil
	}
	if err != nil {
		return Erased{}, err
	}
	n := side.erase(user, upTo)
	if e.absent || len(side.Refs) == 0 && !side.More {
		bytes, err := k.remove(ctx, sum, always)
		if err != nil {
			return Erased{}, err
		}
		return Erased{Removed: []Sum{sum}, References: n, Bytes: bytes}, nil
	}
	if n == 0 && !e.unsure {
		return Erased{}, nil
	}
	data, err := side.encode()
	if err != nil {
		return Erased{}, err
	}
	if err := k.blobs.Write(ctx, Blob{Name: refsName(sum), Data: data}); err != nil {
		k.doubt(sum, false)
		return Erased{}, fmt.Errorf("cannot take the user's references off payload %s: %w", sum, unavailable(err))
	}
	e.users = side.users()
	k.set(sum, e)
	return Erased{Shared: []Sum{sum}, References: n}, nil
}

// rememberErasure makes it durable.
func (k *keeper) rememberErasure(ctx context.Context, user UserKey, er erasure) error {
	data, err := json.Marshal(er)
	if err != nil {
		return fmt.Errorf("cannot encode an erasure: %w", err)
	}
	if err := k.blobs.Write(ctx, Blob{Name: erasureName(user), Data: append(data, '\n')}); err != nil {
		return fmt.Errorf("cannot note the erasure of a user: %w", unavailable(err))
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.erased[user] = er
	return nil
}

// erasedUpTo tells whether the user asked for erasure, and up to which time.
func (k *keeper) erasedUpTo(user UserKey) (time.Time, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	er, found := k.erased[user]
	return er.UpTo, found
}

// forgetErasures drops what need not be remembered any longer.
func (k *keeper) forgetErasures(ctx context.Context) error {
	limit := k.o.Now().Add(-k.o.EraseMemory)
	var old []UserKey
	k.mu.Lock()
	for user, er := range k.erased {
		if er.Done && er.At.Before(limit) {
			old = append(old, user)
		}
	}
	k.mu.Unlock()
	for _, user := range old {
		if err := k.blobs.Remove(ctx, erasureName(user)); err != nil {
			return fmt.Errorf("cannot forget an old erasure: %w", unavailable(err))
		}
		k.mu.Lock()
		delete(k.erased, user)
		k.mu.Unlock()
	}
	return nil
}

// loadErasures reads what is remembered. One that cannot be read is taken to
// cover everything up to now, and is done again.
func (k *keeper) loadErasures(ctx context.Context) error {
	var names []string
	err := k.blobs.List(ctx, erasedDir, func(e Entry) error {
		names = append(names, e.Name)
		return nil
	})
	if err != nil {
		return err
	}
	for _, name := range names {
		user, err := parseUserKey(strings.TrimPrefix(name, erasedDir+"/"))
		if err != nil || user == (UserKey{}) {
			return fmt.Errorf("%q is no erasure: take it away", name)
		}
		data, err := k.blobs.Read(ctx, name, 4096)
		if err != nil {
			return err
		}
		var er erasure
		if json.Unmarshal(data, &er) != nil || er.UpTo.IsZero() {
			now := k.o.Now().UTC()
			er = erasure{At: now, UpTo: now}
		}
		k.erased[user] = er
	}
	return nil
}

// finishErasures completes what a crash has interrupted.
func (k *keeper) finishErasures(ctx context.Context) error {
	for user, er := range k.erased {
		if er.Done {
			continue
		}
		if err := k.loadAll(ctx); err != nil {
			return err
		}
		if _, err := k.erase(ctx, user, er); err != nil {
			return err
		}
	}
	return nil
}
