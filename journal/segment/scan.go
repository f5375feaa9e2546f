package segment

import (
	"bytes"
	"errors"
	"io"
	"math"
)

// record is one record found in a segment.
type record struct {
	recordHeader
	off    int64
	stored []byte // valid until the scanner moves
}

// found says what a scanner met.
type found uint8

const (
	foundRecord found = iota
	foundEnd          // nothing follows
	foundVoid         // an intact record that a later segment makes void
	foundDamage       // bytes that are no record
)

// noLimit is the limit of the newest segment.
const noLimit = math.MaxUint64

// scanner walks through the records of one segment.
type scanner struct {
	win   window
	salt  uint32
	limit uint64 // entries from this number on are void
	off   int64  // of the next record
	next  uint64 // least number of the next entry
}

func newScanner(r io.ReaderAt, end int64, h segmentHeader, limit uint64) *scanner {
	return &scanner{win: window{r: r, end: end}, salt: h.salt, limit: limit, off: headerSize, next: h.first}
}

// read returns the record at the scanner's position and moves behind it. Where
// there is none it stays. Payloads of entries before want are not read, and so
// not checked.
func (s *scanner) read(want uint64) (record, found, error) {
	if s.off >= s.win.end {
		return record{}, foundEnd, nil
	}
	rec, ok, err := s.at(s.off, want)
	switch {
	case err != nil:
		return record{}, foundDamage, err
	case !ok || rec.seq < s.next:
		return record{}, foundDamage, nil
	case s.isVoid(rec):
		return record{}, foundVoid, nil
	}
	s.pass(rec)
	return rec, foundRecord, nil
}

// pass moves behind rec.
func (s *scanner) pass(rec record) {
	s.off = rec.off + rec.size()
	s.next = rec.seq
	if rec.kind != kindMark {
		s.next++
	}
}

func (s *scanner) isVoid(rec record) bool {
	if rec.kind == kindMark {
		return rec.seq > s.limit
	}
	return rec.seq >= s.limit
}

// at returns the intact record at off. The error is one of reading.
func (s *scanner) at(off int64, want uint64) (record, bool, error) {
	b, err := s.win.bytes(off, recordHeaderSize)
	if err != nil {
		return record{}, false, notShort(err)
	}
	h, ok := decodeRecordHeader(b, s.salt)
	if !ok || off+h.size() > s.win.end {
		return record{}, false, nil
	}
	if h.seq < want {
		return record{recordHeader: h, off: off}, true, nil
	}
	b, err = s.win.bytes(off, int(h.size()))
	if err != nil {
		return record{}, false, notShort(err)
	}
	body := b[recordHeaderSize:]
	stored, padding := body[:h.stored:h.stored], body[h.stored:]
	if payloadChecksum(stored) != h.payloadCRC || !allZero(padding) {
		return record{}, false, nil
	}
	return record{recordHeader: h, off: off, stored: stored}, true, nil
}

// notShort takes a file that ends early for one without a record there.
func notShort(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// find returns the first intact record behind the scanner's position that may
// follow, without moving.
func (s *scanner) find() (record, bool, error) {
	off := s.off + alignment
	for {
		b, err := s.win.from(off, recordHeaderSize)
		if err != nil {
			return record{}, false, notShort(err)
		}
		i := bytes.Index(b, []byte(recordMagic))
		if i < 0 {
			// The magic may begin in the last three bytes.
			off += max(alignment, int64(len(b)-len(recordMagic)+1)/alignment*alignment)
			continue
		}
		if i%alignment != 0 {
			off += int64(i/alignment+1) * alignment
			continue
		}
		off += int64(i)
		rec, ok, err := s.at(off, 0)
		if err != nil {
			return record{}, false, err
		}
		if ok && rec.seq >= s.next && !s.isVoid(rec) {
			return rec, true, nil
		}
		off += alignment
	}
}
