package segment

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"inquest/journal"
	"inquest/journal/vfs"
)

// activeSegment is the segment that the committer appends to.
type activeSegment struct {
	state *segmentState
	f     vfs.File
	end   int64 // all before is durable, nothing that counts lies behind
	// stale: the next entries begin a new segment.
	stale bool
	// doubt: there may be records behind end whose senders must not believe them
	// stored. Only a later segment makes them void.
	doubt bool
}

// rotate begins a new segment. When it fails, the old one is never written
// again: the new file may exist, and then it makes void what comes after.
func (l *Log) rotate() error {
	if l.active != nil {
		l.active.stale = true
	}
	h := segmentHeader{version: formatVersion, id: l.nextID, first: l.last + 1, created: time.Now().UnixNano()}
	l.nextID++
	var salt [4]byte
	if _, err := rand.Read(salt[:]); err != nil {
		return fmt.Errorf("cannot begin a segment: %w", err)
	}
	h.salt = binary.LittleEndian.Uint32(salt[:])
	path := filepath.Join(l.opts.Dir, h.fileName())
	f, err := l.createSegment(path, h)
	if err != nil {
		return fmt.Errorf("cannot begin a segment: %w", err)
	}
	if l.active != nil {
		// All that counts in it is durable; an error here says nothing new.
		l.active.f.Close()
	}
	state := &segmentState{segmentHeader: h, path: path, size: headerSize, file: headerSize, last: h.first - 1}
	l.active = &activeSegment{state: state, f: f, end: headerSize}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.segs = append(l.segs, state)
	return nil
}

// Roll begins a new segment, so that the next [Log.Truncate] can remove every
// entry that is in the journal now. Without entries it does nothing.
func (l *Log) Roll() error {
	err := l.inCommitter(func() error {
		if l.active == nil || l.active.state.last < l.active.state.first {
			return nil
		}
		return l.rotate()
	})
	if err != nil {
		return fmt.Errorf("cannot begin a segment: %w", err)
	}
	return nil
}

// createSegment returns an open segment file that is durable with its name.
func (l *Log) createSegment(path string, h segmentHeader) (vfs.File, error) {
	f, err := l.fs.Create(path)
	if err != nil {
		return nil, err
	}
	_, err = f.WriteAt(h.encode(), 0)
	if err == nil {
		err = l.sync(f)
	}
	if err == nil {
		err = l.fs.SyncDir(l.opts.Dir)
	}
	if err != nil {
		// A file that stays is harmless: it is empty, and its id is not used again.
		return nil, errors.Join(err, f.Close(), l.fs.Remove(path))
	}
	return f, nil
}

// closeActive marks the active segment as complete and closes it.
func (l *Log) closeActive() error {
	a := l.active
	if a == nil {
		return nil
	}
	l.active = nil
	if a.doubt || a.stale {
		return a.f.Close()
	}
	b := make([]byte, recordHeaderSize)
	endMark(l.last+1).put(b, a.state.salt)
	_, err := a.f.WriteAt(b, a.end)
	if err == nil {
		err = l.sync(a.f)
	}
	return errors.Join(err, a.f.Close())
}

// Truncate implements [journal.Journal]. It removes whole segments. When all
// entries are let go of and the newest segment is long, a new one is begun so
// that it can go too.
func (l *Log) Truncate(before uint64) error {
	l.truncating.Lock()
	defer l.truncating.Unlock()
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return fmt.Errorf("cannot truncate: %w", journal.ErrClosed)
	}
	wanted := l.wantsRetirement(before)
	l.mu.Unlock()
	if wanted {
		if err := l.inCommitter(func() error { return l.retire(before) }); err != nil {
			// The entries are as durable as before; only room is lost.
			l.opts.Logger.Warn("cannot begin a new segment to free room", "error", err)
		}
	}
	for {
		l.mu.Lock()
		if len(l.segs) < 2 || l.segs[1].first > before {
			l.mu.Unlock()
			return nil
		}
		s := l.segs[0]
		l.mu.Unlock()
		// Oldest first, each durable before the next: what is left after a crash
		// has no hole.
		err := l.fs.Remove(s.path)
		if err == nil || isMissing(err) {
			err = l.fs.SyncDir(l.opts.Dir)
		}
		if err != nil {
			return fmt.Errorf("cannot remove %s: %w", s.path, err)
		}
		l.mu.Lock()
		l.segs = l.segs[1:]
		l.mu.Unlock()
	}
}

// wantsRetirement tells whether beginning a new segment would free much. The
// caller holds mu.
func (l *Log) wantsRetirement(before uint64) bool {
	if before <= l.last || len(l.segs) == 0 {
		return false
	}
	newest := l.segs[len(l.segs)-1]
	return newest.last >= newest.first && newest.file >= l.opts.SegmentBytes/4
}

// retire begins a new segment, in the committer, if that still frees room.
func (l *Log) retire(before uint64) error {
	l.mu.Lock()
	wanted := l.wantsRetirement(before)
	l.mu.Unlock()
	if !wanted || (l.failure != nil && time.Now().Before(l.retryAt)) {
		return nil
	}
	return l.rotate()
}
