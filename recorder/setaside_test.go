package recorder

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"inquest/journal/vfs"
	"inquest/record"
	"inquest/store"
)

// pickyRecords is a store that never takes entry 2.
type pickyRecords struct{ store.Records }

func (p pickyRecords) Append(ctx context.Context, b store.Batch) error {
	if b.Seq == 2 {
		return errors.New("not this one")
	}
	return p.Records.Append(ctx, b)
}

// blockedFS cannot create files that are set aside.
type blockedFS struct {
	vfs.OS
	blocked atomic.Bool
}

func (b *blockedFS) Create(name string) (vfs.File, error) {
	if b.blocked.Load() && strings.HasPrefix(filepath.Base(name), "set-aside") {
		return nil, errors.New("no room")
	}
	return b.OS.Create(name)
}

// An entry that can neither be applied nor set aside stays in the journal, and
// the applier waits for it.
func TestSetAside(t *testing.T) {
	dir := t.TempDir()
	base := time.Now()
	fsys := &blockedFS{}
	fsys.blocked.Store(true)
	start := func() *Recorder {
		parts := openParts(t, dir)
		parts.Records = pickyRecords{parts.Records}
		parts.FS = fsys
		r, err := New(parts)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := start()
	for i := range 3 {
		if err := r.Logs(t.Context(), logBatch(base, i*10, 10)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := r.CatchUp(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("went on past an entry that is nowhere: %v", err)
	}
	if s := r.Stats(); !s.Stalled || s.SetAside != 0 {
		t.Errorf("stalled %v, set aside %d", s.Stalled, s.SetAside)
	}
	r.Close(ctx)

	r = start()
	fsys.blocked.Store(false)
	caughtUp(t, r)
	want := numbers(0, 30)
	for n := 10; n < 20; n++ {
		delete(want, n)
	}
	got := stored(t, r, record.TypeLog)
	checkExact(t, "logs", want, got)
	if len(got) != len(want) {
		t.Errorf("%d numbers stored, want %d", len(got), len(want))
	}
	files, err := filepath.Glob(filepath.Join(dir, "set-aside-2-*.pb"))
	if err != nil || len(files) != 1 {
		t.Errorf("set aside: %v, %v", files, err)
	}
	closeRecorder(t, r)
}
