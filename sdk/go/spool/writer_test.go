package spool

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// stored returns the records of all files in dir, in order, and fails on a line
// that is broken.
func stored(t *testing.T, dir string) []string {
	t.Helper()
	files, err := list(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range events(files) {
		b, err := os.ReadFile(e.path)
		if err != nil {
			t.Fatal(err)
		}
		lines, used := splitLines(b, 0, 1<<30)
		if used != len(b) {
			t.Errorf("%s ends within a line", e.path)
		}
		for i, l := range lines {
			payload, err := decodeLine(l.raw)
			if err != nil {
				t.Errorf("%s, byte %d: %v", e.path, l.offset, err)
			}
			if i > 0 {
				out = append(out, string(payload))
			} else if _, err := decodeHeader(l.raw); err != nil {
				t.Errorf("%s: %v", e.path, err)
			}
		}
	}
	return out
}

func open(t *testing.T, dir string, opts Options) *Writer {
	t.Helper()
	w, err := Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

func TestAppend(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir, Options{MaxRecordBytes: 10})
	f := func(record string, want error) {
		t.Helper()
		if err := w.Append([]byte(record)); !errors.Is(err, want) {
			t.Errorf("Append(%q) = %v, want %v", record, err, want)
		}
	}
	f(`{"a":1}`, nil)
	f(`{"b":2}`, nil)
	f("", ErrNotALine)
	f("{\n}", ErrNotALine)
	f(`{"too":"long"}`, ErrTooLarge)
	w.Close()
	f(`{}`, ErrClosed)
	if got := strings.Join(stored(t, dir), " "); got != `{"a":1} {"b":2}` {
		t.Errorf("stored %s", got)
	}
	if got := w.Stats(); got.Records != 2 || got.Failed != 4 || got.Syncs != 2 {
		t.Errorf("counters %+v", got)
	}
}

func TestHeader(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir, Options{Resource: json.RawMessage(`{"attributes":[]}`), Scope: json.RawMessage(`{"name":"x"}`)})
	if err := w.Append([]byte("{}")); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(w.path)
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(b), "\n")
	const want = `{"inquest.spool":1,"resource":{"attributes":[]},"scope":{"name":"x"}}`
	if head[prefixBytes:] != want {
		t.Errorf("header %s, want %s", head, want)
	}
	if _, err := Open(t.TempDir(), Options{Resource: json.RawMessage("{")}); err == nil {
		t.Error("a resource that is no JSON was taken")
	}
}

// TestGroups lets many callers share syncs.
func TestGroups(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir, Options{MaxFileBytes: 2000})
	const callers, each = 16, 25
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for i := range each {
				if err := w.Append(fmt.Appendf(nil, `{"c":%d,"i":%d}`, c, i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	next := map[int]int{}
	got := stored(t, dir)
	for _, s := range got {
		var r struct{ C, I int }
		if err := json.Unmarshal([]byte(s), &r); err != nil {
			t.Fatal(err)
		}
		if r.I != next[r.C] {
			t.Errorf("caller %d: record %d, want %d", r.C, r.I, next[r.C])
		}
		next[r.C]++
	}
	if len(got) != callers*each {
		t.Errorf("%d records, want %d", len(got), callers*each)
	}
	if s := w.Stats(); s.Syncs >= s.Records {
		t.Errorf("no sync was shared: %+v", s)
	}
	if files, _ := list(dir); len(events(files)) < 2 {
		t.Error("the file was not ended at its limit")
	}
}

func TestFileAge(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	w := open(t, dir, Options{MaxFileAge: time.Minute, now: func() time.Time { return now }})
	for range 3 {
		if err := w.Append([]byte("{}")); err != nil {
			t.Fatal(err)
		}
		now = now.Add(40 * time.Second)
	}
	if files, _ := list(dir); len(events(files)) != 2 {
		t.Errorf("%d files, want 2", len(events(files)))
	}
}

// TestFull refuses what passes the folder's limit, and goes on when shipped files
// make room. What is not shipped stays.
func TestFull(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	w := open(t, dir, Options{MaxTotalBytes: 600, MaxFileBytes: 200, now: func() time.Time { return now }})
	record := []byte(`{"x":"` + strings.Repeat("x", 80) + `"}`)
	n := 0
	for ; n < 20; n++ {
		now = now.Add(time.Millisecond) // names sort by time
		if err := w.Append(record); err != nil {
			if !errors.Is(err, ErrFull) {
				t.Fatal(err)
			}
			break
		}
	}
	if n == 0 || n == 20 || w.Stats().Full != 1 || len(stored(t, dir)) != n {
		t.Fatalf("full after %d records, %+v, %d stored", n, w.Stats(), len(stored(t, dir)))
	}
	files, _ := list(dir)
	first := events(files)[0]
	if err := writePosition(first.path, position{Offset: first.size, Done: true}); err != nil {
		t.Fatal(err)
	}
	now = now.Add(2 * time.Second)
	if err := w.Append(record); err != nil {
		t.Errorf("no room after the oldest file was shipped: %v", err)
	}
}

// brokenFile fails as it is told.
type brokenFile struct {
	file
	room     *int // bytes that still fit
	syncErr  *error
	cutError error
}

func (f *brokenFile) Write(b []byte) (int, error) {
	if len(b) <= *f.room {
		*f.room -= len(b)
		return f.file.Write(b)
	}
	n, _ := f.file.Write(b[:*f.room])
	*f.room = 0
	return n, syscall.ENOSPC
}

func (f *brokenFile) Sync() error {
	if *f.syncErr != nil {
		return *f.syncErr
	}
	return f.file.Sync()
}

func (f *brokenFile) Truncate(n int64) error {
	if f.cutError != nil {
		return f.cutError
	}
	return f.file.Truncate(n)
}

func TestFaults(t *testing.T) {
	f := func(name string, cutError error) {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			room, syncErr := 1<<20, error(nil)
			w := open(t, dir, Options{open: func(dir, stem string, header []byte) (file, string, error) {
				f, path, err := create(dir, stem, header)
				return &brokenFile{f, &room, &syncErr, cutError}, path, err
			}})
			try := func(record string, want error) {
				t.Helper()
				if err := w.Append([]byte(record)); !errors.Is(err, want) {
					t.Errorf("Append(%s) = %v, want %v", record, err, want)
				}
			}
			try(`{"n":1}`, nil)
			room = 5
			try(`{"n":2}`, syscall.ENOSPC)
			room = 1 << 20
			try(`{"n":3}`, nil)
			syncErr = syscall.EIO
			try(`{"n":4}`, syscall.EIO) // may be there, was not promised
			syncErr = nil
			try(`{"n":5}`, nil)
			if s := w.Stats(); s.Records != 3 || s.Failed != 2 || s.Full != 1 {
				t.Errorf("counters %+v", s)
			}
			w.Close()
			again := open(t, dir, Options{}) // sets aside what could not be cut
			if got := strings.Join(stored(t, dir), " "); got != `{"n":1} {"n":3} {"n":4} {"n":5}` {
				t.Errorf("stored %s", got)
			}
			if want := cutError != nil; (again.Stats().Torn == 1) != want {
				t.Errorf("%d torn, cut failed: %v", again.Stats().Torn, want)
			}
		})
	}
	f("cut", nil)
	f("cannot cut", syscall.EIO)
}

// TestPartOfGroup keeps of a group that did not fit what did.
func TestPartOfGroup(t *testing.T) {
	g := newGroup()
	a, b := g.add([]byte(`{"n":1}`)), g.add([]byte(`{"n":2}`))
	dir := t.TempDir()
	room, syncErr := a+3, error(nil)
	w := open(t, dir, Options{open: func(dir, stem string, header []byte) (file, string, error) {
		f, path, err := create(dir, stem, header)
		return &brokenFile{f, &room, &syncErr, nil}, path, err
	}})
	w.commit(g)
	if err := g.result(a); err != nil {
		t.Errorf("the first was written whole: %v", err)
	}
	if err := g.result(b); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("the second: %v", err)
	}
	if got := stored(t, dir); len(got) != 1 {
		t.Errorf("stored %v", got)
	}
}

// TestFullDisk writes to a device that the kernel says is full.
func TestFullDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("needs /dev/full")
	}
	w := open(t, t.TempDir(), Options{open: func(string, string, []byte) (file, string, error) {
		f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		return f, "/dev/full", err
	}})
	if err := w.Append([]byte("{}")); !errors.Is(err, syscall.ENOSPC) || w.Stats().Full != 1 {
		t.Errorf("%v, %+v", err, w.Stats())
	}
}

func TestTornTail(t *testing.T) {
	f := func(tail string, torn uint64) {
		t.Helper()
		dir := t.TempDir()
		w := open(t, dir, Options{})
		if err := w.Append([]byte(`{"n":1}`)); err != nil {
			t.Fatal(err)
		}
		path := w.path
		if _, err := w.file.Write([]byte(tail)); err != nil {
			t.Fatal(err)
		}
		if again := open(t, dir, Options{}); again.Stats().Torn != 0 {
			t.Error("a living writer's line was taken for torn")
		}
		w.Close()
		var told error
		again := open(t, dir, Options{OnError: func(err error) { told = err }})
		if again.Stats().Torn != torn || len(stored(t, dir)) != 1 {
			t.Errorf("%q: %d torn, stored %v", tail, again.Stats().Torn, stored(t, dir))
		}
		var e *TornError
		if errors.As(told, &e) != (torn > 0) {
			t.Errorf("told %v", told)
		}
		if torn == 0 {
			return
		}
		b, err := os.ReadFile(e.Aside)
		if err != nil || e.Bytes != len(tail) || e.File != path || !strings.Contains(string(b), "torn") {
			t.Errorf("%+v, aside %s %v", e, b, err)
		}
	}
	f("", 0)
	f("0000", 1)
	f(string(appendLine(nil, []byte(`{"n":2}`))[:15]), 1)
	f("\xff\x00", 1)
	f(strings.Repeat("x", 200_000), 1)
}

func TestSweep(t *testing.T) {
	now := time.Now()
	f := func(name string, age time.Duration, done bool, maxTotal int64, stays bool) {
		t.Helper()
		dir := t.TempDir()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, make([]byte, 100), 0o600); err != nil {
			t.Fatal(err)
		}
		if done {
			if err := writePosition(path, position{100, true}); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chtimes(path, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
		if _, err := sweep(dir, now, time.Hour, maxTotal); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(path); (err == nil) != stays {
			t.Errorf("%s, %s old, done %v, limit %d: stays %v, want %v", name, age, done, maxTotal, err == nil, stays)
		}
		if left, _ := list(dir); !stays && len(left) > 0 {
			t.Errorf("%s: left %v", name, left)
		}
	}
	f("a.spool", time.Minute, true, 1000, true)
	f("a.spool", 2*time.Hour, true, 1000, false)
	f("a.spool", 2*time.Hour, false, 1000, true) // never what is not shipped
	f("a.spool", 0, true, 110, false)
	f("a.spool", 0, false, 110, true)
	f("a.tmp", 0, false, 1000, true)
	f("a.tmp", 2*time.Minute, false, 1000, false)
	f("a.pos", 0, false, 1000, false)
	f("other.txt", 20*time.Hour, false, 1000, true)
}

func BenchmarkAppend(b *testing.B) {
	record := []byte(`{"body":{"stringValue":"` + strings.Repeat("x", 900) + `"}}`)
	for _, callers := range []int{1, 8} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			w, err := Open(b.TempDir(), Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer w.Close()
			var wg sync.WaitGroup
			b.ResetTimer()
			for c := range callers {
				wg.Go(func() {
					for i := c; i < b.N; i += callers {
						if err := w.Append(record); err != nil {
							b.Error(err)
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
			b.ReportMetric(float64(w.Stats().Records)/float64(w.Stats().Syncs), "events/sync")
		})
	}
}
