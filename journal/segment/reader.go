package segment

import (
	"context"
	"errors"
	"fmt"
	"io"

	"inquest/journal"
	"inquest/journal/vfs"
)

// reader implements [journal.Reader].
type reader struct {
	l       *Log
	next    uint64 // number of the next entry to return
	skipped uint64

	seg    *segmentState // that f and sc belong to
	f      vfs.File
	sc     *scanner
	raw    []byte
	closed bool
}

// Read implements [journal.Journal].
func (l *Log) Read(from uint64) (journal.Reader, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, fmt.Errorf("cannot read: %w", journal.ErrClosed)
	}
	return &reader{l: l, next: max(from, l.first())}, nil
}

// Skipped implements [journal.Reader]. It counts entries.
func (r *reader) Skipped() uint64 { return r.skipped }

// Close implements [journal.Reader].
func (r *reader) Close() error {
	r.closed = true
	return r.leave()
}

func (r *reader) leave() error {
	if r.f == nil {
		return nil
	}
	err := r.f.Close()
	r.seg, r.f, r.sc = nil, nil, nil
	return err
}

// place is where a reader may read.
type place struct {
	seg   *segmentState
	size  int64  // durable bytes of seg
	after uint64 // number of the first entry that is not in seg
}

// Next implements [journal.Reader]. After an error of reading the next call
// tries again.
func (r *reader) Next(ctx context.Context) (journal.Entry, error) {
	for {
		p, err := r.wait(ctx)
		if err != nil {
			return journal.Entry{}, err
		}
		if err := r.enter(p); err != nil {
			if isMissing(err) && r.overtaken() {
				continue
			}
			return journal.Entry{}, fmt.Errorf("cannot read the journal: %w", err)
		}
		rec, what, err := r.sc.read(r.next)
		switch {
		case err != nil:
			return journal.Entry{}, fmt.Errorf("cannot read %s at offset %d: %w", p.seg.path, r.sc.off, err)
		case what == foundRecord && (rec.kind == kindMark || rec.seq < r.next):
			continue
		case what == foundRecord:
			e, err := r.entry(rec)
			if err != nil {
				r.l.setAside(p.seg, rec.off, rec.off+rec.size(), err.Error())
				continue
			}
			return e, nil
		case what == foundDamage:
			if err := r.passDamage(p.seg); err != nil {
				return journal.Entry{}, fmt.Errorf("cannot read %s at offset %d: %w", p.seg.path, r.sc.off, err)
			}
		default:
			r.skipTo(p.after)
		}
	}
}

// wait returns where the next entry is or would be, once it is durable.
func (r *reader) wait(ctx context.Context) (place, error) {
	for {
		if r.closed {
			return place{}, errors.New("cannot read: the reader is closed")
		}
		if err := ctx.Err(); err != nil {
			return place{}, err
		}
		l := r.l
		l.mu.Lock()
		if l.closed {
			l.mu.Unlock()
			return place{}, io.EOF
		}
		if first := l.first(); r.next < first {
			r.skipTo(first)
		}
		if r.next <= l.last {
			seg, after := l.segmentOf(r.next)
			p := place{seg: seg, size: seg.size, after: after}
			l.mu.Unlock()
			return p, nil
		}
		changed := l.changed
		l.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return place{}, ctx.Err()
		}
	}
}

// skipTo goes on at seq and counts what is passed over.
func (r *reader) skipTo(seq uint64) {
	if seq > r.next {
		r.skipped += seq - r.next
		r.next = seq
	}
}

// enter opens the segment unless it is open.
func (r *reader) enter(p place) error {
	if r.seg != p.seg {
		if err := r.leave(); err != nil {
			return err
		}
		f, err := r.l.fs.Open(p.seg.path)
		if err != nil {
			return err
		}
		r.seg, r.f = p.seg, f
		r.sc = newScanner(f, p.size, p.seg.segmentHeader, p.after)
	}
	r.sc.win.end, r.sc.limit = p.size, p.after
	return nil
}

// overtaken tells whether the next entry was let go of meanwhile.
func (r *reader) overtaken() bool {
	r.l.mu.Lock()
	defer r.l.mu.Unlock()
	return r.next < r.l.first()
}

// passDamage moves behind bytes that are no record.
func (r *reader) passDamage(s *segmentState) error {
	from := r.sc.off
	// Once more from the disk: memory errs too.
	r.sc.win.forget()
	if rec, ok, err := r.sc.at(from, r.next); err != nil || ok && rec.seq >= r.sc.next {
		return err
	}
	rec, ok, err := r.sc.find()
	if err != nil {
		return err
	}
	to := r.sc.win.end
	if ok {
		to = rec.off
	}
	r.l.setAside(s, from, to, "it holds no intact entry")
	r.sc.off = to
	return nil
}

// entry returns the record's entry and counts what is missing before it.
func (r *reader) entry(rec record) (journal.Entry, error) {
	payload, err := rec.unpack(rec.stored, r.raw)
	if err != nil {
		return journal.Entry{}, err
	}
	if rec.flags&flagS2 != 0 {
		r.raw = payload[:0]
		if cap(r.raw) > maxSpare {
			r.raw = nil
		}
	}
	r.skipTo(rec.seq)
	r.next = rec.seq + 1
	return journal.Entry{Seq: rec.seq, Received: rec.received, Kind: journal.Kind(rec.kind), Payload: payload}, nil
}
