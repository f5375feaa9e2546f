package local

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"inquest/record"
	"inquest/store"
	"inquest/store/storetest"
)

func openRecords(t testing.TB, o RecordsOptions) *Records {
	t.Helper()
	r, err := OpenRecords(o)
	if err != nil {
		t.Fatalf("OpenRecords: %v", err)
	}
	return r
}

func TestRecordsConformance(t *testing.T) {
	storetest.Records(t, func(t testing.TB, dir string) store.Records {
		return openRecords(t, RecordsOptions{Dir: dir, Retention: time.Since(time.Unix(0, 0)) + 48*time.Hour})
	})
}

// TestDeletedDays deletes days for their size. The library takes no more rows
// for them, so they must be outside the bounds.
func TestDeletedDays(t *testing.T) {
	dir := t.TempDir()
	r := openRecords(t, RecordsOptions{Dir: dir})
	now := time.Now()
	var b store.Batch
	for i := range 5 {
		b.Rows = append(b.Rows, logRow("1", now.Add(-time.Duration(i)*24*time.Hour)))
	}
	if err := r.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	r = openRecords(t, RecordsOptions{Dir: dir, MaxDiskBytes: 1})
	limit := time.Now().Add(5 * time.Second)
	for {
		if earliest, _ := r.Bounds(); earliest.After(now.Add(-4 * 24 * time.Hour)) {
			if want := now.Add(-24 * time.Hour).UTC().Truncate(24 * time.Hour); !earliest.Equal(want) {
				t.Errorf("earliest time is %v, want %v", earliest.UTC(), want)
			}
			break
		}
		if time.Now().After(limit) {
			t.Fatal("bounds do not tell of deleted days")
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := r.Append(t.Context(), store.Batch{Rows: b.Rows[3:4]}); err == nil {
		t.Error("a row of a deleted day was taken")
	}
	if got := countRows(t, r); got != 2 {
		t.Errorf("%d rows, want those of the last two days", got)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func TestHeldSeqs(t *testing.T) {
	r := openRecords(t, RecordsOptions{Dir: t.TempDir()})
	for i := range 50 {
		b := store.Batch{Seq: uint64(i)}
		for range i {
			b.Rows = append(b.Rows, logRow(strconv.Itoa(i), time.Now().Add(-time.Duration(i)*time.Hour)))
		}
		if err := r.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	for _, from := range []uint64{0, 1, 9, 10, 49, 50, 1 << 60} {
		got, err := r.HeldSeqs(t.Context(), from)
		if err != nil {
			t.Fatal(err)
		}
		want := map[uint64]int{}
		for i := max(from, 1); i < 50; i++ {
			want[i] = int(i)
		}
		if !maps.Equal(got, want) {
			t.Errorf("from %d: got %v, want %v", from, got, want)
		}
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func TestQueriesWaitAndEnd(t *testing.T) {
	r := openRecords(t, RecordsOptions{Dir: t.TempDir(), MaxQueries: 1})
	var b store.Batch
	for range 5000 {
		b.Rows = append(b.Rows, logRow("1", time.Now()))
	}
	if err := r.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if err := r.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	running, release := make(chan struct{}), make(chan struct{})
	ended := make(chan error)
	go func() {
		once := false
		ended <- r.QueryRecords(t.Context(), store.RecordQuery{LogsQL: "*"}, func([]record.Field) error {
			if !once {
				once = true
				close(running)
				<-release
			}
			return nil
		})
	}()
	<-running
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	err := r.QueryRecords(ctx, store.RecordQuery{LogsQL: "*"}, func([]record.Field) error { return nil })
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("query beyond the limit: %v", err)
	}
	closed := make(chan error)
	go func() { closed <- r.Close() }()
	<-r.gate.closing.Done()
	close(release)
	if err := <-ended; !errors.Is(err, errClosed) {
		t.Errorf("query that Close ended: %v", err)
	}
	if err := <-closed; err != nil {
		t.Errorf("Close: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	for what, err := range map[string]error{
		"Append":       r.Append(t.Context(), b),
		"Flush":        r.Flush(t.Context()),
		"Sync":         r.Sync(t.Context()),
		"QueryRecords": r.QueryRecords(t.Context(), store.RecordQuery{LogsQL: "*"}, nil),
	} {
		if !errors.Is(err, errClosed) {
			t.Errorf("%s after Close: %v", what, err)
		}
	}
}

func TestCheckRow(t *testing.T) {
	now := time.Now().UnixNano()
	f := func(what string, ok bool, stream, fields []record.Field) {
		t.Helper()
		row := record.Row{Time: now, Stream: stream, Fields: fields}
		if err := checkRow(&row, now, now); ok != (err == nil) {
			t.Errorf("%s: %v", what, err)
		}
	}
	field := func(name, value string) []record.Field { return []record.Field{{Name: name, Value: value}} }
	many := func(n int) []record.Field {
		out := make([]record.Field, n)
		for i := range out {
			out[i] = record.Field{Name: strconv.Itoa(i), Value: "v"}
		}
		return out
	}
	f("nothing", true, nil, nil)
	f("plain", true, field("a", "b"), field("c", "d"))
	f("no name", false, nil, field("", "d"))
	f("time as field", false, nil, field("_time", "d"))
	f("stream as field", false, nil, field("_stream", "d"))
	f("stream id as field", false, nil, field("_stream_id", "d"))
	f("name of 128 bytes", true, nil, field(strings.Repeat("n", 128), "d"))
	f("name of 129 bytes", false, nil, field(strings.Repeat("n", 129), "d"))
	f("stream name of 129 bytes", false, field(strings.Repeat("n", 129), "d"), nil)
	f("stream name with =", false, field("a=b", "d"), nil)
	f("stream name with }", false, field("a}b", "d"), nil)
	f("2000 fields", true, nil, many(2000))
	f("2001 fields", false, field("a", "b"), many(2000))
	f("2 MiB", false, nil, field("v", strings.Repeat("v", 2<<20)))
	f("nearly 2 MiB", true, nil, field("v", strings.Repeat("v", 2<<20-2048)))
}

// TestLimitsOfLibrary stores what is at the limits of checkRow: nothing that
// passes may be dropped by the library.
func TestLimitsOfLibrary(t *testing.T) {
	r := openRecords(t, RecordsOptions{Dir: t.TempDir()})
	now := time.Now()
	many := logRow("1", now)
	many.Fields = nil
	for i := range maxRowFields - 1 {
		many.Fields = append(many.Fields, record.Field{Name: "f" + strconv.Itoa(i), Value: "v"})
	}
	large := logRow("1", now)
	large.Fields = append(large.Fields, record.Field{Name: "v"})
	left := maxRowBytes
	for _, f := range append(large.Stream, large.Fields...) {
		left -= len(f.Name) + len(f.Value) + perFieldBytes
	}
	large.Fields[len(large.Fields)-1].Value = strings.Repeat("\"", left)
	long := logRow("1", now)
	long.Fields = append(long.Fields, record.Field{Name: strings.Repeat("n", record.MaxNameSize), Value: "v"})
	for i, row := range []record.Row{many, large, long} {
		if err := r.Append(t.Context(), store.Batch{Seq: 1, Rows: []record.Row{row}}); err != nil {
			t.Errorf("row %d: %v", i, err)
		}
		if got := countRows(t, r); got != i+1 {
			t.Errorf("row %d: %d rows are held", i, got)
		}
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func TestLogWriter(t *testing.T) {
	var out strings.Builder
	old := logTo.Load()
	logTo.Store(slog.New(slog.NewTextHandler(&out, nil)))
	defer logTo.Store(old)
	for _, line := range []string{"warn\tfile.go:1\tcareful\twith tabs\n", "error\tfile.go:2\tbad\n", "no tabs\n"} {
		if n, err := (logWriter{}).Write([]byte(line)); n != len(line) || err != nil {
			t.Errorf("%q: %d, %v", line, n, err)
		}
	}
	for _, want := range []string{"level=WARN msg=\"careful\\twith tabs\" component=logstorage at=file.go:1", "level=ERROR msg=bad", "msg=\"no tabs"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("log lacks %q:\n%s", want, out.String())
		}
	}
}

// TestBoundsWhileDaysAppear asks for bounds while rows open new days: none may
// be taken for deleted.
func TestBoundsWhileDaysAppear(t *testing.T) {
	r := openRecords(t, RecordsOptions{Dir: t.TempDir()})
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					r.Bounds()
				}
			}
		})
	}
	for i := range 28 {
		row := logRow("1", time.Now().Add(-time.Duration(i)*24*time.Hour))
		for range 20 {
			if err := r.Append(t.Context(), store.Batch{Seq: 1, Rows: []record.Row{row}}); err != nil {
				t.Errorf("day %d: %v", i, err)
			}
		}
	}
	close(done)
	wg.Wait()
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}
