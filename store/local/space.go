package local

import (
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"inquest/store"
)

// spaceGuard tells whether the disk has room. The libraries below end the
// process when a write fails, so it is asked first.
type spaceGuard struct {
	dir     string
	minFree int64
	statfs  func(dir string) (int64, error)

	mu   sync.Mutex
	next time.Time // when to look again
	err  error
}

// spaceInterval is how long an answer holds. At the speed of a fast disk less
// than the default minimum is written in that time.
const spaceInterval = 100 * time.Millisecond

// check returns [store.ErrUnavailable] when there is no room.
func (g *spaceGuard) check() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if now.Before(g.next) {
		return g.err
	}
	g.next = now.Add(spaceInterval)
	free, err := g.statfs(g.dir)
	switch {
	case err != nil:
		g.err = fmt.Errorf("cannot see how much room is left in %s: %w: %w", g.dir, err, store.ErrUnavailable)
	case free < g.minFree:
		g.err = fmt.Errorf("%d MiB are free at %s and %d are to stay free: make room or lower the retention: %w", free>>20, g.dir, g.minFree>>20, store.ErrUnavailable)
	default:
		g.err = nil
	}
	return g.err
}

func freeBytes(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * s.Bsize, nil
}
