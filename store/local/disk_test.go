package local

import (
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"inquest/record"
	"inquest/store"
)

// disk is free space that a test sets.
type disk struct {
	free atomic.Uint64
	err  atomic.Pointer[error]
}

func newDisk(free uint64) *disk {
	d := &disk{}
	d.free.Store(free)
	return d
}

func (d *disk) bytes(string) (uint64, error) {
	if err := d.err.Load(); err != nil {
		return 0, *err
	}
	return d.free.Load(), nil
}

func logRow(seq string, at time.Time) record.Row {
	return record.Row{
		Time:   at.UnixNano(),
		Stream: []record.Field{{Name: "service.name", Value: "shop"}},
		Fields: []record.Field{{Name: record.FieldSeq, Value: seq}},
	}
}

func countRows(t *testing.T, r *Records) (n int) {
	t.Helper()
	if err := r.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	err := r.QueryRecords(t.Context(), store.RecordQuery{LogsQL: "*"}, func([]record.Field) error {
		n++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestRecordsOnFullDisk(t *testing.T) {
	d := newDisk(1 << 40)
	r := openRecords(t, RecordsOptions{Dir: t.TempDir(), MinFreeBytes: 1 << 20, FreeBytes: d.bytes})
	b := store.Batch{Seq: 1, Rows: []record.Row{logRow("1", time.Now())}}
	f := func(free uint64, mayAppend, maySync bool) {
		t.Helper()
		d.free.Store(free)
		before := countRows(t, r)
		err := r.Append(t.Context(), b)
		if mayAppend != (err == nil) || err != nil && !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%d bytes free: Append: %v", free, err)
		}
		if got := countRows(t, r) - before; mayAppend != (got == 1) {
			t.Errorf("%d bytes free: %d rows appended", free, got)
		}
		err = r.Sync(t.Context())
		if maySync != (err == nil) || err != nil && !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%d bytes free: Sync: %v", free, err)
		}
	}
	f(1<<30, true, true)
	f(1<<20, true, true)
	f(1<<20-1, false, true)
	f(1<<30, true, true)
	d.free.Store(1 << 30)
	if err := r.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	f(1<<18-1, false, false)
	failed := errors.New("no such disk")
	d.err.Store(&failed)
	if err := r.Append(t.Context(), b); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("unknown free space: %v", err)
	}
	d.err.Store(nil)
	f(1<<30, true, true)
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func TestSamplesOnFullDisk(t *testing.T) {
	d := newDisk(1 << 40)
	s := openSamples(t, SamplesOptions{Dir: t.TempDir(), MinFreeBytes: 1 << 20, FreeBytes: d.bytes})
	f := func(free uint64, ok bool) {
		t.Helper()
		d.free.Store(free)
		_, err := s.AppendMetrics(t.Context(), gauges(1, time.Now(), 1))
		if ok != (err == nil) || err != nil && !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%d bytes free: AppendMetrics: %v", free, err)
		}
		if err := s.Sync(t.Context()); err != nil {
			t.Errorf("%d bytes free: Sync: %v", free, err)
		}
	}
	f(1<<30, true)
	f(1<<20-1, false)
	f(1<<20, true)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestOpenFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	full := newDisk(10)
	inUse := t.TempDir()
	r := openRecords(t, RecordsOptions{Dir: filepath.Join(inUse, "records")})
	s := openSamples(t, SamplesOptions{Dir: filepath.Join(inUse, "samples")})
	broken := t.TempDir()
	if err := os.WriteFile(filepath.Join(broken, "metadata.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	records := func(o RecordsOptions) {
		t.Helper()
		if r, err := OpenRecords(o); err == nil {
			t.Errorf("records in %q were opened", o.Dir)
			r.Close()
		}
	}
	samples := func(o SamplesOptions) {
		t.Helper()
		if s, err := OpenSamples(o); err == nil {
			t.Errorf("samples in %q were opened", o.Dir)
			s.Close()
		}
	}
	records(RecordsOptions{})
	samples(SamplesOptions{})
	records(RecordsOptions{Dir: file})
	samples(SamplesOptions{Dir: file})
	records(RecordsOptions{Dir: filepath.Join(file, "below")})
	samples(SamplesOptions{Dir: filepath.Join(file, "below")})
	records(RecordsOptions{Dir: filepath.Join(inUse, "records")})
	samples(SamplesOptions{Dir: filepath.Join(inUse, "samples")})
	records(RecordsOptions{Dir: t.TempDir(), FreeBytes: full.bytes})
	samples(SamplesOptions{Dir: t.TempDir(), FreeBytes: full.bytes})
	samples(SamplesOptions{Dir: broken})
	if err := errors.Join(r.Close(), s.Close()); err != nil {
		t.Error(err)
	}
}

func TestStatfs(t *testing.T) {
	if free, err := statfsFree(t.TempDir()); err != nil || free == 0 {
		t.Errorf("got %d, %v", free, err)
	}
	if _, err := statfsFree(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("no error for a folder that does not exist")
	}
}
