package spool

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	sweepEvery = 5 * time.Second
	// staleAfter is when a file that was never begun counts as left behind.
	staleAfter = time.Minute
)

// sweep removes shipped files that are older than keep and, from the oldest on,
// those that the folder has no room for; and what a crash left half made. It
// returns the bytes that are left. What is not shipped stays, however old.
func sweep(dir string, now time.Time, keep time.Duration, maxTotal int64) (total int64, err error) {
	files, err := list(dir)
	if err != nil {
		return 0, err
	}
	for _, f := range files {
		total += f.size
	}
	remove := func(f entry) {
		switch e := os.Remove(f.path); {
		case e == nil:
			total -= f.size
		case !errors.Is(e, os.ErrNotExist):
			err = errors.Join(err, fmt.Errorf("cannot make room in the spool: %w", e))
		}
	}
	for _, f := range files {
		switch filepath.Ext(f.path) {
		case spoolSuffix:
			if now.Sub(f.modified) < keep && total <= maxTotal/5*4 {
				continue
			}
			if pos, e := readPosition(f.path); e != nil || !pos.Done {
				continue
			}
			// The position goes last: a file without one would be sent again.
			remove(f)
			if info, e := os.Stat(posPath(f.path)); e == nil {
				remove(entry{path: posPath(f.path), size: info.Size()})
			}
		case posSuffix:
			if _, e := os.Stat(strings.TrimSuffix(f.path, posSuffix) + spoolSuffix); errors.Is(e, os.ErrNotExist) {
				remove(f)
			}
		case tempSuffix, ".new":
			if now.Sub(f.modified) < staleAfter {
				continue
			}
			if left, e := openFinal(f.path); e == nil && left != nil {
				remove(f)
				left.Close()
			}
		}
	}
	return total, err
}
