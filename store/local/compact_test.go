package local

import (
	"path/filepath"
	"testing"
	"time"

	"inquest/record"
	"inquest/store"
)

func TestCompact(t *testing.T) {
	dir := t.TempDir()
	r, err := OpenRecords(RecordsOptions{Dir: dir, MinFreeBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	now := time.Now()
	parts := func() uint64 {
		t.Helper()
		name := now.UTC().Format(partitionFormat)
		n, err := countParts(filepath.Join(dir, "logstorage", "partitions", name, "datadb", "parts.json"))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for seq := uint64(1); seq <= 4; seq++ {
		if err := r.Append(t.Context(), store.Batch{Seq: seq, Rows: []record.Row{logRow("x", now)}}); err != nil {
			t.Fatal(err)
		}
		if err := r.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := parts(); n < 2 {
		t.Fatalf("%d parts before: the test shows nothing", n)
	}
	if err := r.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := parts(); n != 1 {
		t.Errorf("%d parts after, want 1", n)
	}
	rows := 0
	err = r.QueryRecords(t.Context(), store.RecordQuery{LogsQL: "*"}, func([]record.Field) error { rows++; return nil })
	if err != nil || rows != 4 {
		t.Errorf("%d rows, %v; want 4", rows, err)
	}
}
