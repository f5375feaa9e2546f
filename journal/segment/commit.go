package segment

import (
	"errors"
	"fmt"
	"time"

	"inquest/journal"
	"inquest/journal/vfs"
)

// maxSpare is the largest buffer that is kept for the next use.
const maxSpare = 16 << 20

// controlCall is work for the committer's goroutine.
type controlCall struct {
	do   func() error
	done chan<- error
}

// run is the committer. It ends when the journal is closed and every entry that
// waited has its answer.
func (l *Log) run() {
	defer close(l.done)
	for {
		select {
		case <-l.wake:
		case c := <-l.control:
			c.done <- c.do()
			continue
		}
		for {
			b, closed := l.take()
			if b != nil {
				l.finish(b, l.commit(b))
				continue
			}
			if closed {
				return
			}
			break
		}
	}
}

// inCommitter runs do in the committer's goroutine.
func (l *Log) inCommitter(do func() error) error {
	done := make(chan error, 1)
	select {
	case l.control <- controlCall{do, done}:
		return <-done
	case <-l.done:
		return journal.ErrClosed
	}
}

// take returns the batch that waits, or nil.
func (l *Log) take() (*batch, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.pending
	if len(b.recs) == 0 {
		return nil, l.closed
	}
	l.pending = newBatch(l.spare)
	l.spare = nil
	l.writing = int64(len(b.buf))
	close(b.taken)
	return b, l.closed
}

// finish makes the batch visible if it is durable, and answers its senders.
func (l *Log) finish(b *batch, err error) {
	l.mu.Lock()
	l.writing = 0
	if err == nil {
		l.last = b.first + uint64(len(b.recs)) - 1
		l.active.state.size = l.active.end
		l.active.state.file = max(l.active.state.file, l.active.end)
		l.active.state.last = l.last
		l.stats.Appends += uint64(len(b.recs))
		l.stats.AppendedBytes += b.payload
		l.broadcast()
	}
	l.mu.Unlock()
	b.err = err
	if cap(b.buf) <= maxSpare {
		l.spare = b.buf
	}
	close(b.done)
}

// commit makes the batch durable. When it returns an error, no entry of the
// batch is stored, unless the error is [ErrUnknown].
func (l *Log) commit(b *batch) error {
	if l.failure != nil && time.Now().Before(l.retryAt) {
		return l.failure
	}
	err := l.checkFree(len(b.buf))
	if err != nil {
		l.noteFailure(err, 0)
		return err
	}
	if err = l.tryCommit(b); err == nil {
		if l.failure != nil {
			l.opts.Logger.Info("the journal takes entries again")
			l.failure = nil
		}
		return nil
	}
	l.noteFailure(err, l.opts.RetryInterval)
	return err
}

// noteFailure has err answered to senders until pause is over, and reports it if
// all was well before.
func (l *Log) noteFailure(err error, pause time.Duration) {
	if l.failure == nil {
		l.opts.Logger.Error("the journal cannot store entries; senders are told to try again", "error", err)
	}
	l.failure = err
	if errors.Is(err, ErrUnknown) {
		// What is unknown of this batch is known of the next: it is not written.
		l.failure = fmt.Errorf("cannot append: the disk failed: %w", journal.ErrClosed)
	}
	l.retryAt = time.Now().Add(pause)
}

// checkFree refuses a batch while the disk is nearly full.
func (l *Log) checkFree(size int) error {
	if l.opts.MinFreeBytes == 0 {
		return nil
	}
	free, err := l.fs.Free(l.opts.Dir)
	if err != nil {
		return fmt.Errorf("cannot append: %w: %w", journal.ErrClosed, err)
	}
	if free < l.opts.MinFreeBytes+int64(size) {
		return fmt.Errorf("cannot append: only %d bytes are free on the disk of %s, of which %d are kept free; make room there: %w", free, l.opts.Dir, l.opts.MinFreeBytes, journal.ErrFull)
	}
	return nil
}

// tryCommit writes the batch to the active segment and, when the disk fails
// there, once more to a new one.
func (l *Log) tryCommit(b *batch) error {
	var failed []error
	for range 2 {
		if l.active == nil || l.active.doubt || l.tooLong(len(b.buf)) {
			if err := l.rotate(); err != nil {
				failed = append(failed, err)
				break
			}
		}
		err := l.write(b)
		if err == nil {
			for _, e := range failed {
				l.opts.Logger.Warn("the disk failed; the entries are safe in a new segment", "error", e)
			}
			return nil
		}
		failed = append(failed, err)
		if vfs.IsNoSpace(err) {
			break
		}
		l.active.stale = true
	}
	// A new segment makes void what the failed writes may have left.
	if l.active != nil && l.active.doubt {
		if err := l.rotate(); err != nil {
			failed = append(failed, err)
		}
	}
	err := errors.Join(failed...)
	switch {
	case l.active != nil && l.active.doubt:
		return fmt.Errorf("cannot append: %w: %w: %w", journal.ErrClosed, ErrUnknown, err)
	case vfs.IsNoSpace(failed[0]):
		return fmt.Errorf("cannot append: %w: make room on the disk of %s: %w", journal.ErrFull, l.opts.Dir, err)
	}
	return fmt.Errorf("cannot append: %w: %w", journal.ErrClosed, err)
}

// tooLong tells whether the active segment has its size, or must not be used
// any more.
func (l *Log) tooLong(size int) bool {
	a := l.active
	return a.stale || a.end > headerSize && a.end+int64(size) > l.opts.SegmentBytes
}

// write appends the batch to the active segment and syncs it. When it fails and
// what it wrote could not be taken back, the segment is in doubt.
func (l *Log) write(b *batch) error {
	a := l.active
	b.seal(l.last+1, a.state.salt)
	if _, err := a.f.WriteAt(b.buf, a.end); err != nil {
		if undo := l.undo(); undo != nil {
			a.doubt = true
			l.grown(int64(len(b.buf)))
			err = errors.Join(err, undo)
		}
		return fmt.Errorf("cannot write to %s: %w", a.state.path, err)
	}
	if err := l.sync(a.f); err != nil {
		// What became of the bytes cannot be known any more: the system may have
		// dropped them, and may have marked them as written.
		a.doubt = true
		l.grown(int64(len(b.buf)))
		return err
	}
	a.end += int64(len(b.buf))
	return nil
}

// undo takes back a write that failed before any sync did.
func (l *Log) undo() error {
	if err := l.active.f.Truncate(l.active.end); err != nil {
		return err
	}
	return l.sync(l.active.f)
}

// grown notes that the active file may have bytes behind its end.
func (l *Log) grown(n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.active.state.file = l.active.end + n
}

func (l *Log) sync(f vfs.File) error {
	start := time.Now()
	err := f.Sync()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stats.Syncs++
	l.stats.SyncNanos += uint64(time.Since(start))
	return err
}
