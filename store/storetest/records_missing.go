package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"inquest/record"
	"inquest/store"
)

func (s *recordSuite) wantMissing(what string, b store.Batch, want []record.Row) {
	s.t.Helper()
	got, err := s.Missing(s.t.Context(), b)
	if err != nil {
		s.t.Fatalf("%s: Missing: %v", what, err)
	}
	wantSame(s.t, what+": missing rows", rowTexts(got), rowTexts(want))
}

// testMissing appends a part of a batch and asks what is missing of the whole.
func testMissing(t *testing.T, s *recordSuite) {
	f := func(what string, whole []record.Row, held ...int) {
		t.Helper()
		s.seq++
		for i := range whole {
			whole[i].Fields = slices.Clone(whole[i].Fields)
			whole[i].Fields[0].Value = fmt.Sprint(s.seq)
		}
		b := store.Batch{Seq: s.seq, Rows: whole}
		var part, rest []record.Row
		for i, row := range whole {
			if slices.Contains(held, i) {
				part = append(part, row)
			} else {
				rest = append(rest, row)
			}
		}
		s.append(store.Batch{Seq: s.seq, Rows: part})
		s.append(store.Batch{Seq: s.seq + 1_000_000, Rows: []record.Row{s.row(s.seq+1_000_000, 0)}}) // of another entry
		s.flush()
		s.reopen()
		s.wantMissing(what, b, rest)
		s.append(store.Batch{Seq: s.seq, Rows: rest})
		s.flush()
		s.wantMissing(what+", appended", b, nil)
	}
	same := func(n int) []record.Row {
		var rows []record.Row
		for range n {
			rows = append(rows, s.row(0, 0, record.Field{Name: "v", Value: "same"}))
		}
		return rows
	}
	v := func(values ...string) []record.Row {
		var rows []record.Row
		for _, value := range values {
			rows = append(rows, s.row(0, 0, record.Field{Name: "v", Value: value}))
		}
		return rows
	}
	f("nothing held", same(3))
	f("all held", same(3), 0, 1, 2)
	f("one of three equal rows held", same(3), 0)
	f("two of three equal rows held", same(3), 0, 2)
	f("values that differ little", v("1", "01", "1.0", "1 ", "+1", "1e0"), 1, 3)
	f("empty and absent values", append(v("", "x"), s.row(0, 0)), 0)
	f("values of a megabyte", v(strings.Repeat("a", 1<<20-1000)+"1", strings.Repeat("a", 1<<20-1000)+"2"), 1)
	f("odd values", v("東京\n\"", "\\", `{"a":1}`, "a b", "a  b", "A b"), 0, 2, 4)

	spread := s.batch(50).Rows
	for i := range spread {
		spread[i].Time += int64(i%5) * int64(time.Hour)
		spread[i].Time -= int64(i%7) * int64(24*time.Hour)
	}
	f("rows of several days and streams", spread, 0, 3, 7, 8, 21, 49)

	moved := v("x", "x")
	moved[1].Stream = []record.Field{moved[1].Stream[0]}
	moved[1].Fields = append(moved[1].Fields, record.Field{Name: "other", Value: "y"})
	f("other streams", moved, 0)

	times := v("x", "x", "x")
	times[1].Time++
	times[2].Time--
	f("times a nanosecond apart", times, 0)

	s.wantMissing("empty batch", store.Batch{Seq: 1 << 50}, nil)
}

// testMissingAfterCrash takes the folder at a moment when part of the rows may
// be on disk, and applies all again.
func testMissingAfterCrash(t *testing.T, s *recordSuite) {
	var batches []store.Batch
	for i := range 20 {
		b := s.batch(30)
		batches = append(batches, b)
		s.append(b)
		if i == 10 {
			s.sync()
		}
	}
	dir := CopyDir(t, s.dir)
	crashed := &recordSuite{t: t, open: s.open, dir: dir, now: s.now, Records: s.open(t, dir)}
	defer func() { crashed.Close() }()
	var want []string
	for i, b := range batches {
		missing, err := crashed.Missing(t.Context(), b)
		if err != nil {
			t.Fatalf("Missing: %v", err)
		}
		if i <= 10 && len(missing) > 0 {
			t.Errorf("batch %d: %d rows are missing that Sync had made durable", i, len(missing))
		}
		crashed.append(store.Batch{Seq: b.Seq, Rows: missing})
		want = append(want, rowTexts(b.Rows)...)
	}
	crashed.flush()
	slices.Sort(want)
	wantSame(t, "rows after applying again", crashed.query("*"), want)
	crashed.sync()
	crashed.reopen()
	wantSame(t, "rows after applying again and reopening", crashed.query("*"), want)
	if got := crashed.query(`{service.name="shop-0"}`); len(got) != len(want)/2 {
		t.Errorf("%d rows of a stream, want %d", len(got), len(want)/2)
	}
}

func testRecordBounds(t *testing.T, s *recordSuite) {
	earliest, latest := s.Bounds()
	if now := time.Now(); !earliest.Before(now) || !latest.After(now) {
		t.Fatalf("bounds from %v to %v are not around now", earliest, latest)
	}
	at := func(when time.Time) store.Batch {
		b := s.batch(3)
		b.Rows[1].Time = when.UnixNano()
		return b
	}
	s.append(at(earliest.Add(time.Second)))
	s.append(at(latest.Add(-time.Second)))
	s.flush()
	s.wantRows("*", 6)
	for _, when := range []time.Time{earliest.Add(-24 * time.Hour), latest.Add(24 * time.Hour), time.Unix(0, -1), time.Unix(0, 1<<63-1)} {
		if err := s.Append(t.Context(), at(when)); err == nil {
			t.Errorf("a row of %v was taken, beyond bounds", when)
		}
	}
	s.flush()
	s.wantRows("*", 6)
}

func testRecordLimits(t *testing.T, s *recordSuite) {
	// What package record allows fits; what does not fit is an error.
	large := s.row(1, 0, record.Field{Name: "v", Value: strings.Repeat("v", record.MaxRowSize)})
	s.append(store.Batch{Seq: 1, Rows: []record.Row{large}})
	s.flush()
	wantSame(t, "largest row", s.query(`"journal.seq":=1`), rowTexts([]record.Row{large}))

	huge := s.row(2, 1, record.Field{Name: "v", Value: strings.Repeat("v", 64<<20)})
	err := s.Append(t.Context(), store.Batch{Seq: 2, Rows: []record.Row{s.row(2, 0), huge}})
	s.flush()
	held := len(s.query(`"journal.seq":=2 | fields "journal.seq"`))
	if err == nil && held != 2 || err != nil && held != 0 {
		t.Errorf("row of 64 MiB: error %v, %d of 2 rows held: either all of a batch or an error", err, held)
	}
	s.append(store.Batch{Seq: 3})
	var big store.Batch
	big.Seq = 4
	for i := range 20_000 {
		big.Rows = append(big.Rows, s.row(4, i, record.Field{Name: record.FieldBody, Value: strings.Repeat("text ", 100)}))
	}
	s.append(big)
	s.flush()
	if got := s.query(`"journal.seq":=4 | stats count() n`); !slices.Equal(got, []string{`"n"="20000"`}) {
		t.Errorf("batch of 20,000 rows: %v", got)
	}
}

func testOldRecords(t *testing.T, s *recordSuite) {
	b := s.batch(10)
	for i := range b.Rows {
		b.Rows[i].Time = int64(i) // 1970
	}
	earliest, _ := s.Bounds()
	err := s.Append(t.Context(), b)
	s.flush()
	if earliest.UnixNano() > 0 {
		if err == nil {
			t.Error("rows of 1970 were taken although beyond bounds")
		}
		s.wantRows("*", 0)
		t.Skip("the store's retention does not reach back to 1970")
	}
	if err != nil {
		t.Fatalf("Append: %v", err)
	}
	wantSame(t, "rows of 1970", s.query("*"), rowTexts(b.Rows))
	got := query(t, s.Records, store.RecordQuery{LogsQL: "*", From: time.Unix(0, 3), To: time.Unix(0, 5)})
	wantSame(t, "rows of 3 and 4 ns", got, rowTexts(b.Rows[3:5]))
	s.sync()
	s.reopen()
	s.wantMissing("rows of 1970", b, nil)
}
