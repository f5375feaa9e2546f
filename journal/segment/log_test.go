package segment

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"inquest/journal"
	"inquest/journal/vfs"
)

func TestAppendRead(t *testing.T) {
	f := func(c Compression, closeBetween bool) {
		t.Helper()
		o := testOptions(vfs.NewMem(1))
		o.Compression = c
		l := mustOpen(t, o)
		for n := uint64(1); n <= 60; n++ {
			if seq := mustAppend(t, l, n); seq != n {
				t.Fatalf("got number %d, want %d", seq, n)
			}
			if closeBetween && n%7 == 0 {
				mustClose(t, l)
				l = mustOpen(t, o)
			}
		}
		big := bytes.Repeat([]byte("a sentence that comes again and again. "), 1000)
		if _, err := l.Append(context.Background(), journal.KindLogs, 61, big); err != nil {
			t.Fatal(err)
		}
		got, skipped := readAll(t, l, 1)
		if skipped != 0 || len(got) != 61 || !bytes.Equal(got[60].Payload, big) {
			t.Fatalf("skipped %d, got %d entries", skipped, len(got))
		}
		checkEntries(t, got[:60], upTo(1, 60)...)
		got, _ = readAll(t, l, 33)
		checkEntries(t, got[:28], upTo(33, 60)...)
		st := l.Stats()
		if st.First != 1 || st.Last != 61 || st.Healed+st.SetAside+st.Failures != 0 {
			t.Fatalf("unexpected %+v", st)
		}
		mustClose(t, l)
	}
	f(CompressNone, false)
	f(CompressNone, true)
	f(CompressS2, false)
	f(CompressS2, true)
}

func TestAppendRefuses(t *testing.T) {
	o := testOptions(vfs.NewMem(1))
	o.MaxEntryBytes = 100
	l := mustOpen(t, o)
	f := func(ctx context.Context, kind journal.Kind, size int, want error) {
		t.Helper()
		_, err := l.Append(ctx, kind, 1, make([]byte, size))
		if want == nil && err != nil || want != nil && !errors.Is(err, want) {
			t.Errorf("kind %d, %d bytes: got %v, want %v", kind, size, err, want)
		}
	}
	ctx := context.Background()
	ended, cancel := context.WithCancel(ctx)
	cancel()
	f(ctx, journal.KindLogs, 0, nil)
	f(ctx, journal.KindTraces, 100, nil)
	f(ctx, 99, 100, nil)
	f(ctx, journal.KindLogs, 101, journal.ErrTooLarge)
	f(ended, journal.KindLogs, 1, context.Canceled)
	if _, err := l.Append(ctx, kindMark, 1, nil); err == nil {
		t.Error("kind 0 was taken")
	}
	mustClose(t, l)
	mustClose(t, l)
	f(ctx, journal.KindLogs, 1, journal.ErrClosed)
	if err := l.Truncate(1); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("Truncate: got %v", err)
	}
	if _, err := l.Read(1); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("Read: got %v", err)
	}
	if n := l.Stats().Failures; n != 4 {
		t.Errorf("got %d failures, want 4", n)
	}
}

func TestLock(t *testing.T) {
	f := func(fsys vfs.FS, dir string) {
		t.Helper()
		o := testOptions(fsys)
		o.Dir = dir
		l := mustOpen(t, o)
		_, err := Open(o)
		if !errors.Is(err, vfs.ErrLocked) || !strings.Contains(err.Error(), "another inquest is using "+dir) {
			t.Fatalf("got %v", err)
		}
		mustClose(t, l)
		mustClose(t, mustOpen(t, o))
	}
	f(vfs.NewMem(1), testDir)
	f(vfs.OS{}, filepath.Join(t.TempDir(), "a", "b"))
}

func TestOnDisk(t *testing.T) {
	o := testOptions(nil)
	o.Dir = filepath.Join(t.TempDir(), "journal")
	o.MinFreeBytes = 1
	l := mustOpen(t, o)
	for n := uint64(1); n <= 30; n++ {
		mustAppend(t, l, n)
	}
	if l.Stats().Segments < 2 {
		t.Fatalf("got %d segments", l.Stats().Segments)
	}
	if err := l.Truncate(20); err != nil {
		t.Fatal(err)
	}
	mustClose(t, l)
	l = mustOpen(t, o)
	defer l.Close()
	first := l.Stats().First
	if first < 2 || first > 20 {
		t.Fatalf("first is %d", first)
	}
	got, _ := readAll(t, l, 0)
	checkEntries(t, got, upTo(first, 30)...)
}

func TestReadersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := mustOpen(t, testOptions(vfs.NewMem(1)))
		const readers, entries = 5, 40
		var wg sync.WaitGroup
		for range readers {
			wg.Go(func() {
				r, err := l.Read(1)
				if err != nil {
					t.Error(err)
					return
				}
				defer r.Close()
				for n := uint64(1); n <= entries; n++ {
					e, err := r.Next(context.Background())
					if err != nil || e.Seq != n || !bytes.Equal(e.Payload, payloadOf(n)) {
						t.Errorf("entry %d: got %d, %v", n, e.Seq, err)
						return
					}
				}
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				if _, err := r.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v", err)
				}
				if _, err := r.Next(context.Background()); !errors.Is(err, io.EOF) {
					t.Errorf("after Close: got %v", err)
				}
			})
		}
		for n := uint64(1); n <= entries; n++ {
			mustAppend(t, l, n)
			synctest.Wait()
		}
		time.Sleep(2 * time.Second)
		mustClose(t, l)
		wg.Wait()
	})
}

func TestReaderClosed(t *testing.T) {
	l := mustOpen(t, testOptions(vfs.NewMem(1)))
	defer l.Close()
	mustAppend(t, l, 1)
	r, _ := l.Read(1)
	mustClose(t, r)
	if _, err := r.Next(context.Background()); err == nil {
		t.Fatal("a closed reader read")
	}
}

// A reader whose entries go goes on at the first that is held.
func TestReaderOvertaken(t *testing.T) {
	l := mustOpen(t, testOptions(vfs.NewMem(1)))
	defer l.Close()
	for n := uint64(1); n <= 50; n++ {
		mustAppend(t, l, n)
	}
	r, _ := l.Read(1)
	defer r.Close()
	for n := uint64(1); n <= 3; n++ {
		if e, err := r.Next(context.Background()); err != nil || e.Seq != n {
			t.Fatalf("got %d, %v", e.Seq, err)
		}
	}
	if err := l.Truncate(40); err != nil {
		t.Fatal(err)
	}
	first := l.Stats().First
	e, err := r.Next(context.Background())
	if err != nil || e.Seq != first || first < 10 || r.Skipped() != first-4 {
		t.Fatalf("got %d, %v, skipped %d; the first is %d", e.Seq, err, r.Skipped(), first)
	}
}

// Numbers go on also when nothing is left and the journal was opened again.
func TestTruncateAll(t *testing.T) {
	mem := vfs.NewMem(1)
	l := mustOpen(t, testOptions(mem))
	for n := uint64(1); n <= 50; n++ {
		mustAppend(t, l, n)
	}
	f := func(before, first uint64, segments int) {
		t.Helper()
		if err := l.Truncate(before); err != nil {
			t.Fatal(err)
		}
		st := l.Stats()
		if st.First != first || st.Last != 50 || st.Segments != segments {
			t.Fatalf("Truncate(%d) leaves %+v", before, st)
		}
	}
	all := l.Stats().Segments
	f(0, 1, all)
	f(1, 1, all)
	f(51, 51, 1)
	f(51, 51, 1)
	f(1000, 51, 1)
	for range 3 {
		mustClose(t, l)
		l = mustOpen(t, testOptions(mem))
		f(51, 51, 1)
	}
	if seq := mustAppend(t, l, 51); seq != 51 {
		t.Fatalf("got %d", seq)
	}
	got, skipped := readAll(t, l, 7)
	checkEntries(t, got, 51)
	if skipped != 0 {
		t.Fatalf("skipped %d", skipped)
	}
	mustClose(t, l)
}

func TestGroupCommit(t *testing.T) {
	mem := vfs.NewMem(1)
	l := mustOpen(t, testOptions(mem))
	defer l.Close()
	mustAppend(t, l, 1)
	hold, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	before := l.Stats().Syncs
	mem.SetFault(func(op vfs.Op) error {
		if op.Kind == vfs.OpSync {
			once.Do(func() { close(hold); <-release })
		}
		return nil
	})
	var wg sync.WaitGroup
	wg.Go(func() { mustAppend(t, l, 2) })
	<-hold
	for n := uint64(3); n <= 6; n++ {
		wg.Go(func() { mustAppend(t, l, n) })
	}
	for waiting := 0; waiting < 4; time.Sleep(time.Millisecond) {
		l.mu.Lock()
		waiting = len(l.pending.recs)
		l.mu.Unlock()
	}
	close(release)
	wg.Wait()
	if n := l.Stats().Syncs - before; n != 2 {
		t.Fatalf("got %d syncs for two groups", n)
	}
}

// A sender that waits for room in the group ends with its context or the
// journal.
func TestBackpressure(t *testing.T) {
	mem := vfs.NewMem(1)
	o := testOptions(mem)
	o.MaxGroupBytes = 1
	l := mustOpen(t, o)
	hold, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	mem.SetFault(func(op vfs.Op) error {
		if op.Kind == vfs.OpWrite {
			once.Do(func() { close(hold); <-release })
		}
		return nil
	})
	var wg sync.WaitGroup
	wg.Go(func() { mustAppend(t, l, 1) })
	<-hold
	wg.Go(func() { mustAppend(t, l, 2) })
	for waiting := 0; waiting < 1; time.Sleep(time.Millisecond) {
		l.mu.Lock()
		waiting = len(l.pending.recs)
		l.mu.Unlock()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if _, err := l.Append(ctx, journal.KindLogs, 3, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	close(release)
	wg.Wait()
	mustClose(t, l)
	l = mustOpen(t, o)
	got, _ := readAll(t, l, 1)
	checkEntries(t, got, 1, 2)
	mustClose(t, l)
}

// After Roll, Truncate removes all that was there before, however little.
func TestRoll(t *testing.T) {
	l := mustOpen(t, testOptions(vfs.NewMem(1)))
	defer mustClose(t, l)
	if err := l.Roll(); err != nil {
		t.Fatal(err)
	}
	if st := l.Stats(); st.Segments > 1 {
		t.Errorf("without entries it makes %d segments", st.Segments)
	}
	mustAppend(t, l, 1)
	mustAppend(t, l, 2)
	if err := errors.Join(l.Truncate(3), l.Roll()); err != nil {
		t.Fatal(err)
	}
	if st := l.Stats(); st.First != 1 {
		t.Errorf("entries went before they were let go of: %+v", st)
	}
	mustAppend(t, l, 3)
	if err := errors.Join(l.Truncate(3), l.Roll(), l.Roll()); err != nil {
		t.Fatal(err)
	}
	if st := l.Stats(); st.First != 3 || st.Last != 3 || st.Segments != 2 {
		t.Errorf("got %+v", st)
	}
	got, _ := readAll(t, l, 1)
	checkEntries(t, got, 3)
}
