package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"inquest/record"
	"inquest/store"
)

// OpenRecords opens a store in dir.
type OpenRecords func(t testing.TB, dir string) store.Records

// Records checks a [store.Records].
func Records(t *testing.T, open OpenRecords) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T, s *recordSuite)
	}{
		{"RoundTrip", testRoundTrip},
		{"Visible", testVisible},
		{"KeepsNoReference", testKeepsNoReference},
		{"SyncSurvives", testSyncSurvives},
		{"Reopen", testReopenRecords},
		{"Missing", testMissing},
		{"MissingAfterCrash", testMissingAfterCrash},
		{"Bounds", testRecordBounds},
		{"Limits", testRecordLimits},
		{"Old", testOldRecords},
		{"Query", testQueryRecords},
		{"BadQuery", testBadRecordQuery},
		{"QueryEnds", testRecordQueryEnds},
		{"Streams", testStreams},
		{"Stats", testRecordStats},
		{"Concurrent", testRecordsConcurrent},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &recordSuite{t: t, open: open, dir: t.TempDir(), now: time.Now().Truncate(time.Millisecond).Add(-time.Hour)}
			s.Records = open(t, s.dir)
			defer func() {
				if err := s.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
			}()
			c.run(t, s)
		})
	}
}

// recordSuite is a store under test, with short ways of asking it.
type recordSuite struct {
	store.Records
	t    *testing.T
	open OpenRecords
	dir  string
	now  time.Time
	seq  uint64
}

func (s *recordSuite) reopen() {
	s.t.Helper()
	if err := s.Close(); err != nil {
		s.t.Fatalf("Close: %v", err)
	}
	s.Records = s.open(s.t, s.dir)
}

// batch makes n rows of two streams under the next number.
func (s *recordSuite) batch(n int) store.Batch {
	s.seq++
	b := store.Batch{Seq: s.seq}
	for i := range n {
		b.Rows = append(b.Rows, s.row(s.seq, i, record.Field{Name: record.FieldBody, Value: fmt.Sprintf("request %d served", i)}))
	}
	return b
}

func (s *recordSuite) row(seq uint64, i int, fields ...record.Field) record.Row {
	return record.Row{
		Time: s.now.Add(time.Duration(i) * time.Millisecond).UnixNano(),
		Stream: []record.Field{
			{Name: record.FieldType, Value: string(record.TypeLog)},
			{Name: "service.name", Value: "shop-" + strconv.Itoa(i%2)},
		},
		Fields: append([]record.Field{
			{Name: record.FieldSeq, Value: strconv.FormatUint(seq, 10)},
			{Name: "i", Value: strconv.Itoa(i)},
		}, fields...),
	}
}

func (s *recordSuite) append(b store.Batch) {
	s.t.Helper()
	if err := s.Append(s.t.Context(), b); err != nil {
		s.t.Fatalf("Append: %v", err)
	}
}

func (s *recordSuite) flush() {
	s.t.Helper()
	if err := s.Flush(s.t.Context()); err != nil {
		s.t.Fatalf("Flush: %v", err)
	}
}

func (s *recordSuite) sync() {
	s.t.Helper()
	if err := s.Sync(s.t.Context()); err != nil {
		s.t.Fatalf("Sync: %v", err)
	}
}

// query returns the rows of the answer as text: fields sorted, without those
// that the store makes.
func query(t testing.TB, r store.RecordReader, q store.RecordQuery) []string {
	t.Helper()
	var rows []string
	err := r.QueryRecords(t.Context(), q, func(fields []record.Field) error {
		rows = append(rows, text(fields))
		return nil
	})
	if err != nil {
		t.Fatalf("QueryRecords(%q): %v", q.LogsQL, err)
	}
	slices.Sort(rows)
	return rows
}

func (s *recordSuite) query(logsQL string) []string {
	s.t.Helper()
	return query(s.t, s.Records, store.RecordQuery{LogsQL: logsQL})
}

func (s *recordSuite) wantRows(logsQL string, want int) {
	s.t.Helper()
	if got := s.query(logsQL); len(got) != want {
		s.t.Errorf("%s: got %d rows, want %d", logsQL, len(got), want)
	}
}

func text(fields []record.Field) string {
	var out []string
	for _, f := range fields {
		if f.Name != record.FieldStream && f.Name != record.FieldStreamID && f.Value != "" {
			out = append(out, fmt.Sprintf("%q=%q", f.Name, f.Value))
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// rowText is what [text] gives for a stored row.
func rowText(row record.Row) string {
	fields := slices.Concat(row.Stream, row.Fields)
	fields = append(fields, record.Field{Name: record.FieldTime, Value: time.Unix(0, row.Time).UTC().Format(time.RFC3339Nano)})
	return text(fields)
}

func rowTexts(rows []record.Row) []string {
	var out []string
	for _, r := range rows {
		out = append(out, rowText(r))
	}
	slices.Sort(out)
	return out
}

func wantSame(t testing.TB, what string, got, want []string) {
	t.Helper()
	if slices.Equal(got, want) {
		return
	}
	t.Errorf("%s: got %d, want %d", what, len(got), len(want))
	for i := range max(len(got), len(want)) {
		g, w := "(none)", "(none)"
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g != w {
			t.Errorf("first difference:\n got %.2000s\nwant %.2000s", g, w)
			return
		}
	}
}

func testRoundTrip(t *testing.T, s *recordSuite) {
	values := []string{
		"plain", "", " ", " spaces around ", "line\nbreak\ttab", "quote\"back\\slash", "übergröße 東京 🚀",
		"0", "7", "007", "-0", "1.50", "1e3", "18446744073709551615", "-9223372036854775808", "0x1f", "NaN", "true", "null",
		"2024-02-29T12:00:00Z", "2024-02-29T12:00:00.123456789Z", "2024-02-29T12:00:00+01:00", "10.0.0.1", "010.0.0.1", "12KiB", "1h5m",
		`{"a":[1,2,{"b":null}]}`, strings.Repeat("x", 300), strings.Repeat("long value ", 100_000)[:1_000_000],
	}
	b := store.Batch{Seq: 7}
	for i, v := range values {
		b.Rows = append(b.Rows, s.row(7, i, record.Field{Name: "v", Value: v}, record.Field{Name: record.FieldBody, Value: v}))
	}
	many := s.row(7, len(values))
	for i := range record.MaxFields - 2 {
		many.Fields = append(many.Fields, record.Field{Name: fmt.Sprintf("attribute.%d", i), Value: strconv.Itoa(i * i)})
	}
	b.Rows = append(
		b.Rows,
		many,
		s.row(7, 1000, record.Field{Name: strings.Repeat("n", record.MaxNameSize), Value: "longest name"}),
		s.row(7, 1001, record.Field{Name: `odd "name": {a}=b, 東`, Value: "odd name"}),
		record.Row{Time: s.now.UnixNano() + 123, Fields: []record.Field{{Name: record.FieldSeq, Value: "7"}, {Name: "no", Value: "stream"}}},
	)
	s.append(b)
	s.flush()
	wantSame(t, "rows as appended", s.query(`"journal.seq":=7`), rowTexts(b.Rows))
	s.sync()
	s.reopen()
	wantSame(t, "rows after reopening", s.query(`"journal.seq":=7`), rowTexts(b.Rows))
}

func testVisible(t *testing.T, s *recordSuite) {
	s.append(s.batch(10))
	s.flush()
	s.wantRows("*", 10)

	s.append(s.batch(10))
	limit := time.Now().Add(1500 * time.Millisecond)
	for len(s.query("*")) < 20 {
		if time.Now().After(limit) {
			t.Fatal("rows are not visible after a second without Flush")
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func testKeepsNoReference(t *testing.T, s *recordSuite) {
	b := s.batch(100)
	want := rowTexts(b.Rows)
	s.append(b)
	for i := range b.Rows {
		clear(b.Rows[i].Stream)
		clear(b.Rows[i].Fields)
	}
	clear(b.Rows)
	s.flush()
	wantSame(t, "rows after the batch was overwritten", s.query("*"), want)
}

func testSyncSurvives(t *testing.T, s *recordSuite) {
	var want []string
	for round := range 5 {
		for range 20 {
			b := s.batch(50)
			if round == 2 { // other days
				for i := range b.Rows {
					b.Rows[i].Time -= int64(i%3) * int64(24*time.Hour)
				}
			}
			want = append(want, rowTexts(b.Rows)...)
			s.append(b)
		}
		s.sync()
		slices.Sort(want)
		crashed := s.open(t, CopyDir(t, s.dir))
		wantSame(t, fmt.Sprintf("round %d: rows after a crash", round), query(t, crashed, store.RecordQuery{LogsQL: "*"}), want)
		if got := query(t, crashed, store.RecordQuery{LogsQL: `{service.name="shop-1"}`}); len(got) != len(want)/2 {
			t.Errorf("round %d: %d rows of a stream after a crash, want %d", round, len(got), len(want)/2)
		}
		if err := crashed.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	s.sync() // nothing to do
}

func testReopenRecords(t *testing.T, s *recordSuite) {
	for range 3 {
		s.append(s.batch(10))
		s.reopen()
	}
	s.wantRows("*", 30)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Append(ctx, s.batch(1)); !errors.Is(err, context.Canceled) {
		t.Errorf("Append with an ended context: %v", err)
	}
	s.flush()
	s.wantRows("*", 30)
}
