package segment

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"

	"inquest/journal/vfs"
)

// FuzzScan opens a journal whose newest segment holds any bytes. Opening does
// not fail or take long, readers end, and what they return is stable: it is
// there after a clean close and another opening.
func FuzzScan(f *testing.F) {
	h := segmentHeader{version: formatVersion, salt: 77, id: 3, first: 5}
	for n := range uint64(4) {
		b := newBatch(nil)
		for i := range n {
			p := bytes.Repeat([]byte{byte(i)}, int(600*i))
			stored, flags := Compression(i%2).pack(p, new([]byte))
			b.add(recordHeader{stored: uint32(len(stored)), raw: uint32(len(p)), kind: 1, flags: flags, payloadCRC: payloadChecksum(stored)}, stored)
		}
		b.seal(5, h.salt)
		f.Add(append(h.encode(), b.buf...), int64(0))
		f.Add(append(h.encode(), append(bytes.Repeat([]byte(recordMagic), 9), b.buf...)...), int64(3))
	}
	f.Fuzz(func(t *testing.T, data []byte, end int64) {
		fuzzSegment(t, h, data)
		fuzzScanner(t, h, data, end)
	})
}

func fuzzSegment(t *testing.T, h segmentHeader, data []byte) {
	mem := vfs.NewMem(1)
	path := filepath.Join(testDir, h.fileName())
	if err := errors.Join(mem.MkdirAll(testDir), vfs.WriteFileAtomic(mem, path, data)); err != nil {
		t.Fatal(err)
	}
	l, err := Open(testOptions(mem))
	if hdr, ok := decodeSegmentHeader(data); ok && hdr != h {
		if err == nil {
			l.Close()
		}
		return // from another version, or numbers near the end of their range
	}
	if err != nil {
		t.Fatal(err)
	}
	if l.Stats().Last-h.first > 1<<30 { // a record with such a number is intact
		l.Close()
		return
	}
	first, skipped := readAll(t, l, 1)
	mustAppend(t, l, 1)
	mustClose(t, l)
	l = mustOpen(t, testOptions(mem))
	defer l.Close()
	again, skippedAgain := readAll(t, l, 1)
	if len(again) != len(first)+1 || skipped > skippedAgain {
		t.Fatalf("read %d entries, skipped %d, then %d, skipped %d", len(first), skipped, len(again), skippedAgain)
	}
	for i, e := range first {
		if again[i].Seq != e.Seq || !bytes.Equal(again[i].Payload, e.Payload) {
			t.Fatalf("entry %d changed", e.Seq)
		}
	}
}

// fuzzScanner walks through data as a reader does that has not read it before.
func fuzzScanner(t *testing.T, h segmentHeader, data []byte, end int64) {
	if end <= 0 || end > int64(len(data)) {
		end = int64(len(data))
	}
	sc := newScanner(bytes.NewReader(data), end, h, noLimit)
	sc.off = 0
	for last := int64(-1); ; {
		rec, what, err := sc.read(0)
		if err != nil {
			t.Fatal(err)
		}
		switch what {
		case foundRecord:
			if rec.off <= last {
				t.Fatal("the scanner goes back")
			}
			last = rec.off
			if p, err := rec.unpack(rec.stored, nil); err == nil && len(p) != int(rec.raw) {
				t.Fatal("a payload of another length")
			}
			continue
		case foundDamage:
			next, ok, err := sc.find()
			if err != nil {
				t.Fatal(err)
			}
			if ok {
				sc.off = next.off
				continue
			}
		}
		return
	}
}

// FuzzUnpack gives the decompressor any bytes with any promise of their length.
func FuzzUnpack(f *testing.F) {
	stored, _ := CompressS2.pack(bytes.Repeat([]byte("abc"), 1000), new([]byte))
	f.Add(stored, uint32(3000))
	f.Add(stored, uint32(2999))
	f.Fuzz(func(t *testing.T, stored []byte, raw uint32) {
		h := recordHeader{stored: uint32(len(stored)), raw: raw % (1 << 20), flags: flagS2}
		if p, err := h.unpack(stored, nil); err == nil && len(p) != int(h.raw) {
			t.Fatalf("got %d bytes, want %d", len(p), h.raw)
		}
	})
}

func TestFileNames(t *testing.T) {
	f := func(name string, want bool) {
		t.Helper()
		h, ok := parseFileName(name)
		if ok != want || ok && h.fileName() != name {
			t.Errorf("%s: got %v", name, ok)
		}
	}
	f("0000000003-00000000000000000005-0000004d.wal", true)
	f("0000000003-18446744073709551615-ffffffff.wal", true)
	f("12345678901-00000000000000000005-0000004d.wal", true)
	f("0000000000-00000000000000000005-0000004d.wal", false)
	f("0000000003-00000000000000000000-0000004d.wal", false)
	f("3-5-4d.wal", false)
	f("0000000003-00000000000000000005-0000004D.wal", false)
	f("0000000003-00000000000000000005-0000004d.wal.damaged-64", false)
	f("0000000003-00000000000000000005.wal", false)
	f("LOCK", false)
	f("", false)
}
