package segment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"inquest/journal"
)

// fullReportInterval keeps a journal at its limit from flooding the log.
const fullReportInterval = 10 * time.Second

// batch is a group of entries on the way to one sync. Until the committer takes
// it, it changes under Log.mu.
type batch struct {
	buf     []byte // records one after the other; the committer completes headers
	recs    []pendingRecord
	payload uint64        // bytes
	taken   chan struct{} // closed when the committer has taken the batch
	done    chan struct{} // closed when first and err are set
	first   uint64        // number of the first entry
	err     error
}

// pendingRecord is a record in a batch: its place, and its header but for the
// number.
type pendingRecord struct {
	off int
	h   recordHeader
}

func newBatch(buf []byte) *batch {
	return &batch{buf: buf[:0], taken: make(chan struct{}), done: make(chan struct{})}
}

// add copies a record into the batch and returns its index.
func (b *batch) add(h recordHeader, stored []byte) int {
	off := len(b.buf)
	var zero [recordHeaderSize]byte
	b.buf = append(b.buf, zero[:]...)
	b.buf = append(b.buf, stored...)
	b.buf = append(b.buf, zero[:int(h.size())-recordHeaderSize-len(stored)]...)
	b.recs = append(b.recs, pendingRecord{off: off, h: h})
	b.payload += uint64(h.raw)
	return len(b.recs) - 1
}

// seal numbers the records from first on for a segment with the given salt.
func (b *batch) seal(first uint64, salt uint32) {
	b.first = first
	for i, r := range b.recs {
		r.h.seq = first + uint64(i)
		if i == 0 {
			r.h.flags |= flagBatch
		}
		r.h.put(b.buf[r.off:], salt)
	}
}

// Append implements [journal.Journal].
func (l *Log) Append(ctx context.Context, kind journal.Kind, received int64, payload []byte) (uint64, error) {
	seq, err := l.append(ctx, kind, received, payload)
	if err != nil {
		l.mu.Lock()
		l.stats.Failures++
		l.mu.Unlock()
	}
	return seq, err
}

func (l *Log) append(ctx context.Context, kind journal.Kind, received int64, payload []byte) (uint64, error) {
	switch {
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case kind == kindMark:
		return 0, errors.New("cannot append an entry of kind 0: the kind says how the payload is encoded")
	case len(payload) > l.opts.MaxEntryBytes:
		return 0, fmt.Errorf("cannot append %d bytes, the limit is %d: %w", len(payload), l.opts.MaxEntryBytes, journal.ErrTooLarge)
	}
	buf, _ := l.packBufs.Get().(*[]byte)
	if buf == nil {
		buf = new([]byte)
	}
	stored, flags := l.opts.Compression.pack(payload, buf)
	h := recordHeader{
		stored: uint32(len(stored)), raw: uint32(len(payload)),
		kind: uint8(kind), flags: flags, received: received,
		payloadCRC: payloadChecksum(stored),
	}
	b, i, err := l.enqueue(ctx, h, stored)
	if cap(*buf) <= maxSpare {
		l.packBufs.Put(buf)
	}
	if err != nil {
		return 0, err
	}
	defer l.calls.Done()
	select {
	case <-b.done:
		if b.err != nil {
			return 0, b.err
		}
		return b.first + uint64(i), nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// enqueue adds a record to the pending batch. When it returns no error, the
// caller calls l.calls.Done once it has the answer.
func (l *Log) enqueue(ctx context.Context, h recordHeader, stored []byte) (*batch, int, error) {
	for {
		l.mu.Lock()
		if l.closed {
			l.mu.Unlock()
			return nil, 0, fmt.Errorf("cannot append: %w", journal.ErrClosed)
		}
		b := l.pending
		if len(b.buf) == 0 || int64(len(b.buf))+h.size() <= int64(l.opts.MaxGroupBytes) {
			if err := l.roomFor(h.size()); err != nil {
				l.mu.Unlock()
				return nil, 0, err
			}
			i := b.add(h, stored)
			l.calls.Add(1)
			l.mu.Unlock()
			l.signal()
			return b, i, nil
		}
		l.mu.Unlock()
		select {
		case <-b.taken:
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		}
	}
}

// roomFor checks the journal's own bound. The caller holds mu.
func (l *Log) roomFor(size int64) error {
	if l.opts.MaxBytes <= 0 {
		return nil
	}
	held := l.bytes() + l.writing + int64(len(l.pending.buf))
	if held+size+headerSize > l.opts.MaxBytes {
		if now := time.Now(); now.Sub(l.fullReported) > fullReportInterval {
			l.fullReported = now
			l.opts.Logger.Warn("the journal is at its limit; senders are told to try again", "bytes", held, "limit", l.opts.MaxBytes)
		}
		return fmt.Errorf("cannot append: the journal holds %d bytes of %d that the stores have not taken yet: %w", held, l.opts.MaxBytes, journal.ErrFull)
	}
	return nil
}
