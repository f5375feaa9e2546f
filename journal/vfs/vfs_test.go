package vfs

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

// Both file systems do the same where nothing fails.
func TestConformance(t *testing.T) {
	t.Run("OS", func(t *testing.T) { conformance(t, OS{}, t.TempDir()) })
	t.Run("Mem", func(t *testing.T) { conformance(t, NewMem(1), "/") })
}

func conformance(t *testing.T, fsys FS, root string) {
	dir := filepath.Join(root, "a", "b")
	name := filepath.Join(dir, "file")
	check := func(err, want error) {
		t.Helper()
		if want == nil && err != nil || want != nil && !errors.Is(err, want) {
			t.Fatalf("got %v, want %v", err, want)
		}
	}
	_, err := fsys.Create(name)
	check(err, fs.ErrNotExist)
	check(fsys.SyncDir(dir), fs.ErrNotExist)
	check(fsys.MkdirAll(dir), nil)
	check(fsys.MkdirAll(dir), nil)
	_, err = fsys.Open(name)
	check(err, fs.ErrNotExist)
	_, err = fsys.Stat(name)
	check(err, fs.ErrNotExist)
	check(fsys.Remove(name), fs.ErrNotExist)
	check(fsys.Rename(name, name+"2"), fs.ErrNotExist)

	f, err := fsys.Create(name)
	check(err, nil)
	_, err = fsys.Create(name)
	check(err, fs.ErrExist)
	_, err = f.WriteAt([]byte("hello world"), 2)
	check(err, nil)
	check(f.Truncate(7), nil)
	check(f.Truncate(9), nil)
	check(f.Sync(), nil)
	check(fsys.SyncDir(dir), nil)
	size, err := f.Size()
	check(err, nil)
	buf := make([]byte, 20)
	n, err := f.ReadAt(buf, 0)
	check(err, io.EOF)
	if want := "\x00\x00hello\x00\x00"; size != 9 || string(buf[:n]) != want {
		t.Fatalf("got %q of %d bytes", buf[:n], size)
	}
	check(f.Close(), nil)
	check(f.Close(), fs.ErrClosed)

	r, err := fsys.Open(name)
	check(err, nil)
	if _, err := r.WriteAt([]byte("x"), 0); err == nil {
		t.Fatal("wrote to a file that is open for reading")
	}
	w, err := fsys.OpenWrite(name)
	check(err, nil)
	_, err = w.WriteAt([]byte("H"), 2)
	check(err, nil)
	check(w.Close(), nil)
	check(fsys.Rename(name, name+"2"), nil)
	check(fsys.Remove(name+"2"), nil)
	n, err = r.ReadAt(buf[:3], 2) // a file without a name
	check(err, nil)
	if string(buf[:n]) != "Hel" {
		t.Fatalf("got %q", buf[:n])
	}
	check(r.Close(), nil)

	for _, content := range []string{"first", "the second"} {
		check(WriteFileAtomic(fsys, name, []byte(content)), nil)
		got, err := ReadFile(fsys, name)
		check(err, nil)
		if string(got) != content {
			t.Fatalf("got %q", got)
		}
	}
	check(WriteFileAtomic(fsys, name+"0", nil), nil)
	names, err := fsys.List(dir)
	check(err, nil)
	if !slices.Equal(names, []string{"file", "file0"}) {
		t.Fatalf("got %q", names)
	}
	free, err := fsys.Free(dir)
	check(err, nil)
	if free <= 0 {
		t.Fatalf("%d bytes free", free)
	}
	lock := filepath.Join(dir, "LOCK")
	c, err := fsys.Lock(lock)
	check(err, nil)
	_, err = fsys.Lock(lock)
	check(err, ErrLocked)
	check(c.Close(), nil)
	c, err = fsys.Lock(lock)
	check(err, nil)
	check(c.Close(), nil)
}

func mustWrite(t *testing.T, f File, data string, off int64) {
	t.Helper()
	if _, err := f.WriteAt([]byte(data), off); err != nil {
		t.Fatal(err)
	}
}

// outcomes opens many clones and counts what a file holds in them.
func outcomes(m *Mem, name string) map[string]int {
	rng := rand.New(rand.NewPCG(1, 1))
	seen := map[string]int{}
	for range 400 {
		data, err := ReadFile(m.CrashClone(rng), name)
		if err != nil {
			data = []byte("missing")
		}
		seen[string(data)]++
	}
	return seen
}

func TestCrashClone(t *testing.T) {
	m := NewMem(1)
	if err := m.MkdirAll("/d"); err != nil {
		t.Fatal(err)
	}
	f, err := m.Create("/d/f")
	if err != nil {
		t.Fatal(err)
	}
	always := func(what string, want ...string) {
		t.Helper()
		seen := outcomes(m, "/d/f")
		for _, w := range want {
			if seen[w] == 0 {
				t.Errorf("%s: never %q in %v", what, w, seen)
			}
			delete(seen, w)
		}
		if want != nil && len(seen) > 0 {
			t.Errorf("%s: also %v", what, seen)
		}
	}
	mustWrite(t, f, "one", 0)
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	always("no name", "missing", "one")
	if err := m.SyncDir("/d"); err != nil {
		t.Fatal(err)
	}
	always("all synced", "one")
	mustWrite(t, f, "two", 0)
	always("an overwrite in one sector", "one", "two", "tne", "twe")
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := m.Rename("/d/f", "/d/g"); err != nil {
		t.Fatal(err)
	}
	always("renamed", "missing", "two")
	if err := m.Remove("/d/g"); err != nil {
		t.Fatal(err)
	}
	always("renamed and removed", "missing", "two")
	if err := m.SyncDir("/d"); err != nil {
		t.Fatal(err)
	}
	always("gone", "missing")
}

// WriteFileAtomic leaves one content or the other, at every fault and crash.
func TestWriteFileAtomicCrash(t *testing.T) {
	for n := 1; n < 12; n++ {
		m := NewMem(uint64(n))
		if err := errors.Join(m.MkdirAll("/d"), WriteFileAtomic(m, "/d/f", []byte("old"))); err != nil {
			t.Fatal(err)
		}
		m.SetFault(FailNth(n, 1<<30, syscall.EIO))
		err := WriteFileAtomic(m, "/d/f", []byte("new"))
		m.SetFault(nil)
		seen := outcomes(m, "/d/f")
		if err == nil && seen["new"] != 400 || seen["new"]+seen["old"] != 400 {
			t.Errorf("fault at %d (%v): %v", n, err, seen)
		}
	}
}

// After a failed sync the next one says nothing.
func TestFailedSync(t *testing.T) {
	lost := 0
	for seed := range uint64(50) {
		m := NewMem(seed)
		f, err := createIn(m)
		if err != nil {
			t.Fatal(err)
		}
		mustWrite(t, f, "data", 0)
		m.SetFault(FailNth(1, 1, syscall.EIO, OpSync))
		if err := f.Sync(); !errors.Is(err, syscall.EIO) {
			t.Fatalf("got %v", err)
		}
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
		if got, _ := ReadFile(m, "/d/f"); string(got) != "data" {
			t.Fatalf("the running system sees %q", got)
		}
		if outcomes(m, "/d/f")["data"] == 0 {
			lost++
			// Writing the bytes again makes them durable.
			mustWrite(t, f, "data", 0)
			if err := f.Sync(); err != nil || outcomes(m, "/d/f")["data"] != 400 {
				t.Fatalf("after writing again: %v, %v", err, outcomes(m, "/d/f"))
			}
		}
	}
	if lost == 0 || lost == 50 {
		t.Fatalf("lost in %d of 50", lost)
	}
}

func createIn(m *Mem) (File, error) {
	if err := m.MkdirAll("/d"); err != nil {
		return nil, err
	}
	f, err := m.Create("/d/f")
	return f, errors.Join(err, m.SyncDir("/d"))
}

func TestRoom(t *testing.T) {
	m := NewMem(1)
	f, err := createIn(m)
	if err != nil {
		t.Fatal(err)
	}
	m.SetRoom(10)
	mustWrite(t, f, "12345678", 0)
	n, err := f.WriteAt([]byte("9abcdef"), 8)
	if n != 2 || !IsNoSpace(err) {
		t.Fatalf("got %d, %v", n, err)
	}
	mustWrite(t, f, "overwritten"[:10], 0)
	if free, _ := m.Free("/d"); free != 0 || m.Used() != 10 {
		t.Fatalf("free %d, used %d", free, m.Used())
	}
	m.SetRoom(-1)
	mustWrite(t, f, "more", 10)
}

func TestFlipBit(t *testing.T) {
	m := NewMem(1)
	f, err := createIn(m)
	if err != nil {
		t.Fatal(err)
	}
	mustWrite(t, f, "abc", 0)
	if err := errors.Join(f.Sync(), m.FlipBit("/d/f", 1, 0), m.FlipBit("/d/f", 99, 0)); err != nil {
		t.Fatal(err)
	}
	got, _ := ReadFile(m, "/d/f")
	left, _ := ReadFile(m.CrashClone(rand.New(rand.NewPCG(1, 1))), "/d/f")
	if string(got) != "acc" || !bytes.Equal(got, left) {
		t.Fatalf("got %q, after a crash %q", got, left)
	}
	if err := m.FlipBit("/d/none", 0, 0); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("got %v", err)
	}
}
