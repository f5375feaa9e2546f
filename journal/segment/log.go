// Package segment is the journal in local segment files. See
// docs/journal-format.md for the format and for what is guaranteed.
//
// One goroutine, the committer, writes: it takes all entries that wait, writes
// them in one piece, syncs once and answers all. While it does, the next group
// gathers.
package segment

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sort"
	"sync"
	"time"

	"inquest/journal"
	"inquest/journal/vfs"
)

// lockFile is locked as long as a Log is open.
const lockFile = "LOCK"

// Log is a [journal.Journal] in segment files.
type Log struct {
	opts Options
	fs   vfs.FS
	lock io.Closer

	mu      sync.Mutex
	segs    []*segmentState // by id; the newest is never removed
	last    uint64          // number of the last durable entry
	stats   journal.Stats   // counters only
	closed  bool
	calls   sync.WaitGroup // running calls of Append
	pending *batch         // gathers entries
	writing int64          // bytes of the batch at the committer

	fullReported time.Time     // when it was last logged that MaxBytes is reached
	changed      chan struct{} // closed and replaced when last or closed changes
	aside        map[asideKey]bool

	truncating sync.Mutex // one Truncate at a time

	wake    chan struct{}    // tells the committer that there is work
	control chan controlCall // work other than entries for the committer
	done    chan struct{}    // closed when the committer has ended

	// Used by the committer only.
	nextID  uint64
	active  *activeSegment // nil: the next entries begin a new segment
	spare   []byte
	retryAt time.Time
	failure error // of the last try, repeated until retryAt

	packBufs sync.Pool // *[]byte
}

var _ journal.Journal = (*Log)(nil)

// segmentState is what is known of a segment file. Its fields after path change
// under Log.mu.
type segmentState struct {
	segmentHeader
	path string
	size int64  // readers go this far
	file int64  // bytes of the file, as far as known
	last uint64 // number of the last entry; first-1 when there is none
}

// Open opens or creates the journal in opts.Dir and recovers what the last
// process left: it returns when every entry that readers will see is durable. A
// full disk does not keep it from opening.
func Open(opts Options) (*Log, error) {
	opts.setDefaults()
	l := &Log{
		opts: opts, fs: opts.FS,
		pending: newBatch(nil),
		changed: make(chan struct{}),
		aside:   map[asideKey]bool{},
		wake:    make(chan struct{}, 1),
		control: make(chan controlCall),
		done:    make(chan struct{}),
	}
	if err := l.fs.MkdirAll(opts.Dir); err != nil {
		return nil, fmt.Errorf("cannot create the journal's folder: %w", err)
	}
	lock, err := l.fs.Lock(filepath.Join(opts.Dir, lockFile))
	if errors.Is(err, vfs.ErrLocked) {
		return nil, fmt.Errorf("cannot open the journal: another inquest is using %s: stop it or choose another folder: %w", opts.Dir, err)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot lock the journal's folder: %w", err)
	}
	l.lock = lock
	if err := l.recover(); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot open the journal in %s: %w", opts.Dir, err), lock.Close())
	}
	go l.run()
	return l, nil
}

// Close implements [journal.Journal]. It marks the end of the last segment, so
// that damage there can be told from an unfinished write.
func (l *Log) Close() error {
	l.truncating.Lock() // the folder is another's once the lock is released
	defer l.truncating.Unlock()
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	l.broadcast()
	l.mu.Unlock()
	l.signal()
	l.calls.Wait()
	<-l.done
	err := l.closeActive()
	if err != nil {
		err = fmt.Errorf("cannot close the journal cleanly: %w", err)
	}
	return errors.Join(err, l.lock.Close())
}

// broadcast wakes everyone who waits for a change. The caller holds mu.
func (l *Log) broadcast() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// signal wakes the committer.
func (l *Log) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Stats implements [journal.Journal]. First is Last+1 when no entry is held.
func (l *Log) Stats() journal.Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	st := l.stats
	st.First, st.Last = l.first(), l.last
	st.Segments = len(l.segs)
	st.Bytes = l.bytes()
	return st
}

// first is the number of the first entry held. The caller holds mu.
func (l *Log) first() uint64 {
	if len(l.segs) == 0 {
		return l.last + 1
	}
	return l.segs[0].first
}

// bytes is the size of all segment files. The caller holds mu.
func (l *Log) bytes() int64 {
	var sum int64
	for _, s := range l.segs {
		sum += s.file
	}
	return sum
}

// segmentOf returns the segment that holds the entry seq if any does, and the
// number that the segment after it begins with. The caller holds mu.
func (l *Log) segmentOf(seq uint64) (*segmentState, uint64) {
	i := sort.Search(len(l.segs), func(i int) bool { return l.segs[i].first > seq })
	if i == 0 {
		return nil, 0
	}
	after := l.last + 1
	if i < len(l.segs) {
		after = l.segs[i].first
	}
	return l.segs[i-1], after
}
