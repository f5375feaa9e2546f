package segment

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"inquest/journal"
	"inquest/journal/vfs"
)

// written returns a file system with a closed journal of n entries in one
// segment, the segment's path and where its records begin.
func written(t testing.TB, n uint64) (*vfs.Mem, string, []int64) {
	t.Helper()
	mem := vfs.NewMem(1)
	o := testOptions(mem)
	o.SegmentBytes = 1 << 20
	l := mustOpen(t, o)
	for i := uint64(1); i <= n; i++ {
		mustAppend(t, l, i)
	}
	s := l.segs[0]
	mustClose(t, l)
	data, err := vfs.ReadFile(mem, s.path)
	if err != nil {
		t.Fatal(err)
	}
	var offs []int64
	for off := int64(headerSize); off < int64(len(data)); {
		h, ok := decodeRecordHeader(data[off:], s.salt)
		if !ok {
			t.Fatalf("no record at %d", off)
		}
		offs = append(offs, off)
		off += h.size()
	}
	return mem, s.path, offs
}

// cut makes a file shorter, durably.
func cut(t testing.TB, fsys vfs.FS, path string, size int64) {
	t.Helper()
	f, err := fsys.OpenWrite(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(size), f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// A flipped bit anywhere costs the entry that it hits, and no other.
func TestFlipAnyBit(t *testing.T) {
	const n = 6
	_, path, offs := written(t, n)
	end := offs[n] + recordHeaderSize
	base := filepath.Base(path)
	for off := int64(0); off < end; off++ {
		mem, path, offs := written(t, n) // the salt differs, the offsets do not
		if err := mem.FlipBit(path, off, uint(off)); err != nil {
			t.Fatal(err)
		}
		want, skipped, healed, aside := upTo(1, n), uint64(0), uint64(0), uint64(1)
		switch hit, _ := slices.BinarySearch(offs, off+1); {
		case hit == n+1: // the mark at the end
			healed, aside = 1, 0
		case hit > 0:
			want, skipped = slices.Delete(want, hit-1, hit), 1
		}
		o := testOptions(mem)
		l := mustOpen(t, o)
		st := l.Stats()
		if st.Healed != healed || st.SetAside != aside || st.Last != n {
			t.Fatalf("bit at %d of %s: %+v", off, base, st)
		}
		got, skip := readAll(t, l, 1)
		checkEntries(t, got, want...)
		if skip != skipped {
			t.Fatalf("bit at %d: skipped %d, want %d", off, skip, skipped)
		}
		if seq := mustAppend(t, l, 99); seq != n+1 {
			t.Fatalf("bit at %d: got number %d", off, seq)
		}
		mustClose(t, l)
	}
}

func TestDamagedRangeIsKept(t *testing.T) {
	mem, path, offs := written(t, 9)
	for _, off := range []int64{offs[2] + 20, offs[3] + 60, offs[7]} {
		if err := mem.FlipBit(path, off, 3); err != nil {
			t.Fatal(err)
		}
	}
	data, _ := vfs.ReadFile(mem, path)
	o := testOptions(mem)
	o.Logger = testLogger(t)
	for opened := range 3 {
		l := mustOpen(t, o)
		if n := l.Stats().SetAside; n != 2 && opened == 0 || n != 0 && opened > 0 {
			t.Fatalf("open %d: set %d ranges aside", opened, n)
		}
		got, skipped := readAll(t, l, 1)
		checkEntries(t, got, 1, 2, 5, 6, 7, 9)
		if skipped != 3 {
			t.Fatalf("skipped %d", skipped)
		}
		got, skipped = readAll(t, l, 4)
		checkEntries(t, got, 5, 6, 7, 9)
		if skipped != 2 {
			t.Fatalf("from 4: skipped %d", skipped)
		}
		mustClose(t, l)
	}
	f := func(from, to int64) {
		t.Helper()
		kept, err := vfs.ReadFile(mem, path+".damaged-"+itoa(from))
		if err != nil || !bytes.Equal(kept, data[from:to]) {
			t.Errorf("the copy is not the damaged range: %v", err)
		}
	}
	f(offs[2], offs[4])
	f(offs[7], offs[8])
}

// Without the mark of a clean close the file may end anywhere.
func TestTornTail(t *testing.T) {
	const n = 5
	mem, path, offs := written(t, n)
	for size := offs[n] + 5; size >= 0; size-- {
		cut(t, mem, path, size)
		l := mustOpen(t, testOptions(mem))
		whole, _ := slices.BinarySearch(offs, size)
		if whole < len(offs) && offs[whole] == size {
			whole++
		}
		whole = max(0, whole-1)
		st := l.Stats()
		if st.SetAside != 0 || st.Last != uint64(whole) {
			t.Fatalf("at %d bytes: %+v, want %d entries", size, st, whole)
		}
		onBoundary := slices.Contains(offs, size) || size < headerSize
		if st.Healed != 0 == onBoundary {
			t.Fatalf("at %d bytes: healed %d", size, st.Healed)
		}
		got, skipped := readAll(t, l, 1)
		checkEntries(t, got, upTo(1, uint64(whole))...)
		if skipped != 0 {
			t.Fatalf("skipped %d", skipped)
		}
		mustClose(t, l)
	}
}

// A group whose beginning is broken and whose end is there was not acknowledged,
// unless something follows that says so.
func TestHoleInLastGroup(t *testing.T) {
	f := func(followed bool, want []uint64, healed, aside uint64, saved bool) {
		t.Helper()
		mem := vfs.NewMem(1)
		h := segmentHeader{version: formatVersion, salt: 77, id: 3, first: 1}
		b := newBatch(h.encode())
		b.buf = h.encode()
		group := func(seq uint64, ns ...uint64) {
			g := newBatch(nil)
			for _, n := range ns {
				p := payloadOf(n)
				g.add(recordHeader{stored: uint32(len(p)), raw: uint32(len(p)), kind: 1, received: int64(n), payloadCRC: payloadChecksum(p)}, p)
			}
			g.seal(seq, h.salt)
			b.buf = append(b.buf, g.buf...)
		}
		group(1, 1, 2)
		hole := int64(len(b.buf)) + recordSize(len(payloadOf(3))) + 50
		group(3, 3, 4, 5, 6)
		if followed {
			group(7, 7)
		}
		path := filepath.Join(testDir, h.fileName())
		if err := errors.Join(mem.MkdirAll(testDir), vfs.WriteFileAtomic(mem, path, b.buf), mem.FlipBit(path, hole, 1)); err != nil {
			t.Fatal(err)
		}
		l := mustOpen(t, testOptions(mem))
		defer l.Close()
		got, _ := readAll(t, l, 1)
		checkEntries(t, got, want...)
		if st := l.Stats(); st.Healed != healed || st.SetAside != aside {
			t.Fatalf("%+v", st)
		}
		if _, err := mem.Stat(path + ".cut-" + itoa(hole-50)); (err == nil) != saved {
			t.Fatalf("what was cut: %v", err)
		}
	}
	f(true, []uint64{1, 2, 3, 5, 6, 7}, 0, 1, false)
	f(false, []uint64{1, 2, 3}, 1, 0, true)
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func TestMissingSegment(t *testing.T) {
	mem := vfs.NewMem(1)
	l := mustOpen(t, testOptions(mem))
	for n := uint64(1); n <= 40; n++ {
		mustAppend(t, l, n)
	}
	second, third := l.segs[1].first, l.segs[2].first
	path := l.segs[1].path
	mustClose(t, l)
	if err := mem.Remove(path); err != nil {
		t.Fatal(err)
	}
	l = mustOpen(t, testOptions(mem))
	defer l.Close()
	got, skipped := readAll(t, l, 1)
	checkEntries(t, got, append(upTo(1, second-1), upTo(third, 40)...)...)
	if skipped != third-second {
		t.Fatalf("skipped %d, want %d", skipped, third-second)
	}
}

// Damage that comes while the journal is open is met by the reader.
func TestDamageWhileOpen(t *testing.T) {
	mem := vfs.NewMem(1)
	l := mustOpen(t, testOptions(mem))
	defer l.Close()
	for n := uint64(1); n <= 5; n++ {
		mustAppend(t, l, n)
	}
	off := headerSize + recordSize(len(payloadOf(1))) + 45
	if err := mem.FlipBit(l.segs[0].path, off, 0); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		got, skipped := readAll(t, l, 1)
		checkEntries(t, got, 1, 3, 4, 5)
		if skipped != 1 || l.Stats().SetAside != 1 {
			t.Fatalf("skipped %d, %+v", skipped, l.Stats())
		}
	}
}

// A read that fails is reported, and tried again by the next call.
func TestReadFails(t *testing.T) {
	mem, _, _ := written(t, 3)
	l := mustOpen(t, testOptions(mem))
	defer l.Close()
	r, _ := l.Read(1)
	defer r.Close()
	mem.SetFault(vfs.FailNth(1, 2, syscall.EIO, vfs.OpRead))
	for range 2 {
		if _, err := r.Next(context.Background()); !errors.Is(err, syscall.EIO) {
			t.Fatalf("got %v", err)
		}
	}
	for n := uint64(1); n <= 3; n++ {
		if e, err := r.Next(context.Background()); err != nil || e.Seq != n {
			t.Fatalf("got %d, %v", e.Seq, err)
		}
	}
}

// Blocks that cannot be read are damage, and their numbers are not given again.
func TestUnreadableTail(t *testing.T) {
	mem, _, _ := written(t, 30)
	var reads int
	mem.SetFault(func(op vfs.Op) error {
		// All but the header and the first block.
		if op.Kind == vfs.OpRead && op.Size != headerSize {
			if reads++; reads != 2 {
				return syscall.EIO
			}
		}
		return nil
	})
	l := mustOpen(t, testOptions(mem))
	mem.SetFault(nil)
	st := l.Stats()
	if st.SetAside != 1 || st.Healed != 0 || st.Last < 30 {
		t.Fatalf("%+v", st)
	}
	if seq := mustAppend(t, l, 31); seq != st.Last+1 {
		t.Fatalf("got %d", seq)
	}
	got, skipped := readAll(t, l, 1)
	if len(got) < 3 || got[0].Seq != 1 || got[len(got)-1].Seq != st.Last+1 || skipped == 0 {
		t.Fatalf("got %s, skipped %d", seqs(got), skipped)
	}
	mustClose(t, l)
}

// What looks like a record in a payload is not taken for one.
func TestForgedRecord(t *testing.T) {
	mem := vfs.NewMem(1)
	o := testOptions(mem)
	o.SegmentBytes = 1 << 20
	l := mustOpen(t, o)
	var forged []byte
	for salt := range uint32(4) {
		p := make([]byte, recordHeaderSize)
		recordHeader{stored: 0, raw: 0, kind: 1, flags: flagBatch, seq: 2, payloadCRC: payloadChecksum(nil)}.put(p, salt)
		forged = append(forged, p...)
	}
	for range 3 {
		if _, err := l.Append(context.Background(), journal.KindLogs, 5, forged); err != nil {
			t.Fatal(err)
		}
	}
	path := l.segs[0].path
	mustClose(t, l)
	if err := mem.FlipBit(path, headerSize+4, 0); err != nil { // the first record's length
		t.Fatal(err)
	}
	l = mustOpen(t, o)
	defer l.Close()
	got, skipped := readAll(t, l, 1)
	if len(got) != 2 || got[0].Seq != 2 || got[0].Received != 5 || skipped != 1 {
		t.Fatalf("got %s, skipped %d", seqs(got), skipped)
	}
}

func TestNewerVersion(t *testing.T) {
	mem := vfs.NewMem(1)
	h := segmentHeader{version: 2, salt: 1, id: 1, first: 1}
	if err := errors.Join(mem.MkdirAll(testDir), vfs.WriteFileAtomic(mem, filepath.Join(testDir, h.fileName()), h.encode())); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(testOptions(mem)); err == nil || !strings.Contains(err.Error(), "use a newer inquest") {
		t.Fatalf("got %v", err)
	}
	// The folder is not locked by the failure.
	if c, err := mem.Lock(filepath.Join(testDir, lockFile)); err != nil {
		t.Fatal(err)
	} else {
		mustClose(t, c)
	}
}

// When a sync fails, and another one in the new segment too, the error is
// certain if a third segment can be begun and says so if it cannot.
func TestUnknownOnlyWhenUnknown(t *testing.T) {
	f := func(fail func(sync int) bool, unknown bool) {
		t.Helper()
		mem, h := vfs.NewMem(3), newHistory()
		l := mustOpen(t, testOptions(mem))
		h.append(context.Background(), l)
		syncs := 0
		mem.SetFault(func(op vfs.Op) error {
			if op.Kind == vfs.OpSync {
				if syncs++; fail(syncs) {
					return syscall.EIO
				}
			}
			return nil
		})
		err := h.append(context.Background(), l)
		if !errors.Is(err, journal.ErrClosed) || errors.Is(err, ErrUnknown) != unknown {
			t.Fatalf("got %v", err)
		}
		mem.SetFault(nil)
		if err := errors.Join(h.append(context.Background(), l), h.check(l), l.Close()); err != nil {
			t.Fatal(err)
		}
	}
	f(func(n int) bool { return n == 1 || n == 3 }, false)
	f(func(int) bool { return true }, true)
}
