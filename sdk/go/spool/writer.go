package spool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Errors of [Writer.Append]. Compare with errors.Is.
var (
	ErrClosed   = errors.New("the spool is closed")
	ErrFull     = errors.New("the spool has reached its size limit")
	ErrTooLarge = errors.New("the record is larger than the spool's limit")
	ErrNotALine = errors.New("the record is empty or holds a line break")
)

// Options of a [Writer]. Zero values mean the defaults.
type Options struct {
	// Resource and Scope are what all records have in common, as OTLP/JSON writes
	// them. Default: none.
	Resource, Scope json.RawMessage
	// MaxRecordBytes limits one record. Default 1 MiB.
	MaxRecordBytes int
	// MaxFileBytes ends a file: the next record begins another. Default 64 MiB.
	MaxFileBytes int64
	// MaxFileAge ends a file after this time, so that it can be removed when
	// shipped. It is looked at when a record arrives. Default 1 hour.
	MaxFileAge time.Duration
	// MaxTotalBytes limits the folder, with the files of all its writers. Shipped
	// files make room; what is not shipped is never removed, and a record beyond
	// the limit is refused with ErrFull. Default 4 GiB.
	MaxTotalBytes int64
	// Keep is how long a shipped file is kept, where there is room. Default 7 days.
	Keep time.Duration
	// OnError is told what no caller can be told: a torn tail found. It may be called by several goroutines. Default: nothing
	// but the counters of Stats.
	OnError func(error)

	open func(dir, stem string, header []byte) (file, string, error) // tests break it
	now  func() time.Time
}

func (o Options) withDefaults() Options {
	if o.MaxRecordBytes <= 0 {
		o.MaxRecordBytes = 1 << 20
	}
	if o.MaxFileBytes <= 0 {
		o.MaxFileBytes = 64 << 20
	}
	if o.MaxTotalBytes <= 0 {
		o.MaxTotalBytes = 4 << 30
	}
	if o.MaxFileAge <= 0 {
		o.MaxFileAge = time.Hour
	}
	if o.Keep <= 0 {
		o.Keep = keepShipped
	}
	if o.OnError == nil {
		o.OnError = func(error) {}
	}
	if o.open == nil {
		o.open = create
	}
	if o.now == nil {
		o.now = time.Now
	}
	if o.Resource == nil {
		o.Resource = json.RawMessage("{}")
	}
	return o
}

// keepShipped is how long shipped files are kept by default.
const keepShipped = 7 * 24 * time.Hour

// Stats counts what a writer has done since it was opened.
type Stats struct {
	Records uint64 // durable records
	Bytes   uint64 // their bytes
	Syncs   uint64 // calls of fsync; Records/Syncs is the size of a group
	Failed  uint64 // records refused or not written, for any reason
	Full    uint64 // of these: no space, on the disk or under MaxTotalBytes
	Torn    uint64 // torn tails set aside
}

// Writer appends records to a spool. It is safe for concurrent use: callers that
// arrive while a sync is under way share the next one. It has no goroutine.
type Writer struct {
	dir    string
	opts   Options
	header []byte

	mu      sync.Mutex
	next    *group // collects while another is committed
	leading bool   // a caller is committing
	closed  bool
	idle    *sync.Cond // leading has become false

	// The rest belongs to the caller that leads.
	file   file
	path   string
	number int
	begun  time.Time
	size   int64 // durable bytes of file
	total  int64 // bytes of the folder, as last listed, and our own since
	listed time.Time

	records, bytes, syncs, failed, full, torn atomic.Uint64
}

// Open opens the spool in dir, which is created when absent. Files of writers
// that died are repaired: what follows their last line feed is set aside. The
// first record begins a file.
func Open(dir string, opts Options) (*Writer, error) {
	w := &Writer{dir: dir, opts: opts.withDefaults(), next: newGroup()}
	w.idle = sync.NewCond(&w.mu)
	header, err := json.Marshal(Header{version, w.opts.Resource, w.opts.Scope})
	if err != nil {
		return nil, fmt.Errorf("cannot write the spool's header: Resource and Scope must be JSON: %w", err)
	}
	w.header = appendLine(nil, header)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot create the spool's folder: %w", err)
	}
	if err := w.survey(true); err != nil {
		return nil, err
	}
	return w, nil
}

// Append writes one log record, a JSON object on one line without its line feed,
// and returns nil only when it is durable. After an error the record may still be
// in the spool (written, but the sync could not be confirmed), so a record that
// is appended again may be delivered twice, but never half.
func (w *Writer) Append(record []byte) error {
	switch {
	case len(record) == 0 || bytes.IndexByte(record, '\n') >= 0:
		w.failed.Add(1)
		return ErrNotALine
	case len(record) > w.opts.MaxRecordBytes:
		w.failed.Add(1)
		return fmt.Errorf("%w: %d of %d bytes", ErrTooLarge, len(record), w.opts.MaxRecordBytes)
	}
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		w.failed.Add(1)
		return ErrClosed
	}
	g := w.next
	end := g.add(record)
	if w.leading {
		w.mu.Unlock()
		select {
		case <-g.done:
			return g.result(end)
		case <-g.lead:
			w.mu.Lock()
		}
	}
	w.leading = true
	w.next = newGroup()
	w.mu.Unlock()

	w.commit(g)

	w.mu.Lock()
	if len(w.next.ends) > 0 {
		w.next.lead <- struct{}{} // one of those that wait goes on
	} else {
		w.leading = false
		w.idle.Broadcast()
	}
	w.mu.Unlock()
	return g.result(end)
}

// Close waits for records under way and closes the file. Later ones are refused.
func (w *Writer) Close() error {
	w.mu.Lock()
	w.closed = true
	for w.leading {
		w.idle.Wait()
	}
	f := w.file
	w.file = nil
	w.mu.Unlock()
	if f == nil {
		return nil
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("cannot close the spool's file %s: %w", w.path, err)
	}
	return nil
}

// Dir returns the spool's folder.
func (w *Writer) Dir() string { return w.dir }

// Stats returns the counters so far.
func (w *Writer) Stats() Stats {
	return Stats{
		Records: w.records.Load(), Bytes: w.bytes.Load(), Syncs: w.syncs.Load(),
		Failed: w.failed.Load(), Full: w.full.Load(), Torn: w.torn.Load(),
	}
}
