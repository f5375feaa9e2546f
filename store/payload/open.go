package payload

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Open opens the store that lies in blobs, or makes one. It owns blobs from
// then on, also when it fails. It removes what interrupted calls have left and
// completes erasures.
func Open(ctx context.Context, blobs Blobs, o Options) (Store, error) {
	k := &keeper{blobs: blobs, index: map[Sum]*entry{}, erased: map[UserKey]erasure{}}
	err := func() (err error) {
		if k.o, err = o.withDefaults(); err != nil {
			return err
		}
		if k.secret, err = openFormat(ctx, blobs, k.o.UserKey); err != nil {
			return err
		}
		if err := k.list(ctx); err != nil {
			return err
		}
		if err := k.loadErasures(ctx); err != nil {
			return err
		}
		return k.finishErasures(ctx)
	}()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot open the payload store: %w", err), blobs.Close())
	}
	return k, nil
}

// found is what a listing says about one payload.
type found struct {
	size          int64
	modified      time.Time
	content, refs bool
}

// list fills the index. Content without references, or the other way round, is
// what a crash has left of a Put or a removal that had not returned.
func (k *keeper) list(ctx context.Context) error {
	all := map[Sum]found{}
	err := k.blobs.List(ctx, objectsDir, func(e Entry) error {
		sum, refs, ok := parseName(e.Name)
		if !ok {
			return fmt.Errorf("%q does not belong here: take it away", e.Name)
		}
		f := all[sum]
		if refs {
			f.refs, f.modified = true, e.Modified
		} else {
			f.content, f.size = true, e.Size
		}
		all[sum] = f
		return nil
	})
	if err != nil {
		return err
	}
	var blind []Sum // retention needs their size and time
	for sum, f := range all {
		e := entry{size: max(0, f.size)}
		if !f.modified.IsZero() {
			e.newest = f.modified.UnixNano()
		}
		k.set(sum, e)
		if f.content != f.refs {
			if _, err := k.remove(ctx, sum, func(*entry) bool { return true }); err != nil {
				return err
			}
		} else if f.size < 0 || f.modified.IsZero() {
			blind = append(blind, sum)
		}
	}
	return k.load(ctx, blind)
}

// loadAll reads the references that were only listed.
func (k *keeper) loadAll(ctx context.Context) error {
	return k.load(ctx, k.sums(func(_ Sum, e *entry) bool { return !e.loaded && !e.absent }))
}

func (k *keeper) load(ctx context.Context, sums []Sum) error {
	return each(ctx, sums, func(sum Sum) error {
		side, err := k.readRefs(ctx, sum)
		if err != nil && !errors.Is(err, ErrDamaged) {
			return err
		}
		k.mu.Lock()
		e := *k.index[sum]
		k.mu.Unlock()
		e.loaded = true
		if err != nil {
			e.orphaned, e.unsure = true, true
			if e.newest == 0 {
				e.newest = k.o.Now().UnixNano() // it goes when it has been here for long enough
			}
		} else {
			e.size, e.newest, e.users = side.Size, side.Newest.UnixNano(), side.users()
		}
		k.set(sum, e)
		return nil
	})
}

// atOnce is how many blobs are read or removed at a time, where there are many:
// object storage answers slowly, but many at once.
const atOnce = 16

// each calls fn for all sums, several at a time. The first error ends it.
func each(ctx context.Context, sums []Sum, fn func(Sum) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	work := make(chan Sum)
	var wg sync.WaitGroup
	for range min(atOnce, len(sums)) {
		wg.Go(func() {
			for sum := range work {
				if err := fn(sum); err != nil {
					cancel(err)
				}
			}
		})
	}
	for _, sum := range sums {
		if ctx.Err() != nil {
			break
		}
		work <- sum
	}
	close(work)
	wg.Wait()
	return context.Cause(ctx)
}
