package local

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"inquest/record"
	"inquest/store"
)

func TestDelete(t *testing.T) {
	dir := t.TempDir()
	openAgain := func() *Records {
		t.Helper()
		r, err := OpenRecords(RecordsOptions{Dir: dir, MinFreeBytes: -1})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := openAgain()
	now := time.Now()
	// Rows of two days, in several parts, of which some are not synced.
	for seq := uint64(1); seq <= 6; seq++ {
		var rows []record.Row
		for i := range 50 {
			row := logRow(fmt.Sprintf("row %d", i), now.Add(time.Duration(i)*time.Millisecond-time.Duration(seq%2)*24*time.Hour))
			row.Fields = append(row.Fields, record.Field{Name: "n", Value: fmt.Sprint(i)})
			rows = append(rows, row)
		}
		if err := r.Append(t.Context(), store.Batch{Seq: seq, Rows: rows}); err != nil {
			t.Fatal(err)
		}
		if seq < 5 {
			if err := r.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	count := func(q string) int {
		t.Helper()
		n := 0
		err := r.QueryRecords(t.Context(), store.RecordQuery{LogsQL: q}, func(fields []record.Field) error {
			for _, f := range fields {
				if f.Name == "n" {
					n++
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if err := r.Delete(t.Context(), "n:in("); !errors.Is(err, store.ErrQuery) {
		t.Errorf("a bad filter gives %v", err)
	}
	if err := r.Delete(t.Context(), `{"service.name"="shop"} n:in("0","7")`); err != nil {
		t.Fatal(err)
	}
	check := func() {
		t.Helper()
		if n := count("n:*"); n != 6*48 {
			t.Errorf("%d rows are left, want %d", n, 6*48)
		}
		if n := count(`n:in("0","7")`); n != 0 {
			t.Errorf("%d deleted rows are left", n)
		}
	}
	check()
	free := r.guard.free
	r.guard.free = func(string) (uint64, error) { return 100, nil }
	if err := r.Delete(t.Context(), `n:="1"`); !errors.Is(err, store.ErrUnavailable) || count(`n:="1"`) != 6 {
		t.Errorf("without room it answers %v", err)
	}
	r.guard.free = free
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Delete(ended, `n:="1"`); err == nil || !strings.Contains(err.Error(), "goes on") {
		t.Errorf("without waiting it answers %v", err)
	}
	// The task outlives the store.
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	r = openAgain()
	defer func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}()
	for deadline := time.Now().Add(20 * time.Second); count(`n:="1"`) > 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("a deletion that was begun is not completed")
		}
	}
	if n := count("n:*"); n != 6*47 {
		t.Errorf("%d rows are left, want %d", n, 6*47)
	}
}
