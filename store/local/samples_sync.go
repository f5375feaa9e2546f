package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// maxLateBytes is the size of the log of out-of-order samples above which they
// are compacted into blocks. The database by itself does that only together
// with samples in order, so an import alone would fill disk and memory.
const maxLateBytes = 256 << 20

// Sync implements [store.Samples].
//
// The database has no call for it. A commit writes its records to the files of
// the write-ahead log (wlog.WL.Log flushes the page after the last record), and
// those out of order to the files of the write-behind log, but syncs neither.
// So Sync syncs what was written to since the last time. Chunks in chunks_head
// need no sync: at opening what is missing there is taken from the logs, which
// are cut only after blocks were made, and blocks are synced.
func (s *Samples) Sync(ctx context.Context) error {
	leave, err := s.gate.enter()
	if err != nil {
		return fmt.Errorf("cannot sync samples: %w", err)
	}
	defer leave()
	if err := s.sync(ctx); err != nil {
		return fmt.Errorf("cannot sync samples: %w", err)
	}
	s.compactLate()
	return nil
}

func (s *Samples) sync(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.meta.save(); err != nil {
		return err
	}
	if !s.unsynced {
		return nil
	}
	for i := range s.logs {
		if err := s.logs[i].sync(); err != nil {
			return err
		}
	}
	s.unsynced = false
	return nil
}

// logSync syncs the segments of one log.
type logSync struct {
	dir string
	// last is the newest segment at the last sync; older ones are not written
	// to any more.
	last    int
	started bool
}

func (l *logSync) sync() error {
	entries, err := os.ReadDir(l.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // made with the first sample out of order
	}
	if err != nil {
		return err
	}
	newest := l.last
	for _, e := range entries {
		n, err := strconv.Atoi(e.Name())
		if err != nil || e.IsDir() || l.started && n < l.last {
			continue
		}
		// It may have been cut off meanwhile: then blocks hold what was in it.
		if err := syncFile(filepath.Join(l.dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		newest = max(newest, n)
	}
	if newest != l.last || !l.started {
		for _, dir := range []string{l.dir, filepath.Dir(l.dir), filepath.Dir(filepath.Dir(l.dir))} {
			if err := syncDir(dir); err != nil {
				return err
			}
		}
	}
	l.last, l.started = newest, true
	return nil
}

// compactLate starts a compaction of out-of-order samples when there are many.
func (s *Samples) compactLate() {
	if dirBytes(s.logs[1].dir) < s.maxLate {
		return
	}
	select {
	case s.compacting <- struct{}{}:
	default:
		return
	}
	go func() {
		defer func() { <-s.compacting }()
		if err := s.db.CompactOOOHead(s.gate.closing); err != nil && s.gate.closing.Err() == nil {
			s.opts.Logger.Error("cannot compact samples out of order; it is tried again", "error", err)
		}
	}()
}

// dirBytes returns the size of the files in dir, 0 when it cannot be read.
func dirBytes(dir string) int64 {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0
	}
	n := int64(0)
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			n += info.Size()
		}
	}
	return n
}
