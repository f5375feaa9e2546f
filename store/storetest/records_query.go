package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"inquest/record"
	"inquest/store"
)

func testQueryRecords(t *testing.T, s *recordSuite) {
	b := s.batch(100)
	s.append(b)
	s.flush()
	f := func(q store.RecordQuery, want int) {
		t.Helper()
		if got := query(t, s.Records, q); len(got) != want {
			t.Errorf("%+v: got %d rows, want %d", q, len(got), want)
		}
	}
	at := func(i int) time.Time { return time.Unix(0, b.Rows[i].Time) }
	f(store.RecordQuery{LogsQL: "*"}, 100)
	f(store.RecordQuery{LogsQL: "*", From: at(10)}, 90)
	f(store.RecordQuery{LogsQL: "*", To: at(10)}, 10)
	f(store.RecordQuery{LogsQL: "*", From: at(10), To: at(20)}, 10)
	f(store.RecordQuery{LogsQL: "*", From: at(10), To: at(10)}, 0)
	f(store.RecordQuery{LogsQL: "*", From: at(20), To: at(10)}, 0)
	f(store.RecordQuery{LogsQL: "*", From: at(10).Add(1)}, 89)
	f(store.RecordQuery{LogsQL: "*", To: at(10).Add(1)}, 11)
	f(store.RecordQuery{LogsQL: "*", From: time.Unix(-1<<40, 0), To: time.Unix(1<<40, 0)}, 100)
	f(store.RecordQuery{LogsQL: "_time:1m", From: at(0)}, 0)
	f(store.RecordQuery{LogsQL: "*", Limit: 7}, 7)
	f(store.RecordQuery{LogsQL: "*", Limit: 1000}, 100)
	f(store.RecordQuery{LogsQL: "*", From: at(98), Limit: 7}, 2)
	f(store.RecordQuery{LogsQL: "* | limit 50", Limit: 60}, 50)
	f(store.RecordQuery{LogsQL: `served`}, 100)
	f(store.RecordQuery{LogsQL: `"request 42 served"`}, 1)
	f(store.RecordQuery{LogsQL: `i:>=90`}, 10)
	f(store.RecordQuery{LogsQL: `{service.name="shop-1"}`}, 50)
	f(store.RecordQuery{LogsQL: `service.name:="shop-1" | stats by (service.name) count() n`}, 1)
	f(store.RecordQuery{LogsQL: `nothing`}, 0)

	// Sorted answers come in order, the limit takes from their front.
	var got []string
	err := s.QueryRecords(t.Context(), store.RecordQuery{LogsQL: "* | sort by (i) desc | fields i", Limit: 3}, func(fields []record.Field) error {
		got = append(got, text(fields))
		return nil
	})
	if err != nil || !slices.Equal(got, []string{`"i"="99"`, `"i"="98"`, `"i"="97"`}) {
		t.Errorf("sorted: %v, %v", got, err)
	}
	wantSame(t, "aggregation", s.query(`* | stats by (service.name) count() n, max(i) top`), []string{
		`"n"="50" "service.name"="shop-0" "top"="98"`, `"n"="50" "service.name"="shop-1" "top"="99"`,
	})
}

func testBadRecordQuery(t *testing.T, s *recordSuite) {
	s.append(s.batch(10))
	s.flush()
	f := func(q store.RecordQuery) {
		t.Helper()
		err := s.QueryRecords(t.Context(), q, func([]record.Field) error { return nil })
		if !errors.Is(err, store.ErrQuery) {
			t.Errorf("%+v: got %v, want ErrQuery", q, err)
		}
	}
	for _, q := range []string{
		``, `a and`, `(a`, `"a`, `a:`, `* | nosuchpipe`, `* | stats by (a) nosuchfunc(b)`, `* | stats`, `* | sort by`, `i:range(1`,
		`{service.name="x"`, `re("[")`, `* | limit -1`, strings.Repeat("(", 5000),
	} {
		f(store.RecordQuery{LogsQL: q})
	}
	f(store.RecordQuery{LogsQL: "*", Limit: -1})
	s.wantRows("*", 10)
}

func testRecordQueryEnds(t *testing.T, s *recordSuite) {
	for range 10 {
		s.append(s.batch(1000))
	}
	s.flush()
	failed := errors.New("enough")
	calls := 0
	err := s.QueryRecords(t.Context(), store.RecordQuery{LogsQL: "*"}, func([]record.Field) error {
		if calls++; calls == 5 {
			return failed
		}
		return nil
	})
	if err != failed || calls != 5 { //nolint:errorlint // must be returned as it is
		t.Errorf("error of fn: got %v after %d calls, want the same error after 5", err, calls)
	}

	ctx, cancel := context.WithCancel(t.Context())
	calls = 0
	err = s.QueryRecords(ctx, store.RecordQuery{LogsQL: "*"}, func([]record.Field) error {
		if calls++; calls == 5 {
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) || errors.Is(err, store.ErrQuery) {
		t.Errorf("ended context: got %v, want context.Canceled", err)
	}
	if calls > 9999 {
		t.Errorf("ended context: fn was called %d times", calls)
	}
	if err := s.QueryRecords(ctx, store.RecordQuery{LogsQL: "*"}, func([]record.Field) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("context that ended before: got %v", err)
	}
}

// testStreams has more streams than rows of each.
func testStreams(t *testing.T, s *recordSuite) {
	b := s.batch(0)
	for i := range 500 {
		row := s.row(b.Seq, i)
		row.Stream = append(row.Stream, record.Field{Name: "service.zone", Value: fmt.Sprintf("zone %d=\"東\"}, {", i%100)})
		b.Rows = append(b.Rows, row)
	}
	long := s.row(b.Seq, 0)
	long.Stream = append(long.Stream, record.Field{Name: "service.zone", Value: strings.Repeat("z", 200_000)})
	empty := s.row(b.Seq, 1)
	empty.Stream = append(empty.Stream, record.Field{Name: "service.zone", Value: ""})
	b.Rows = append(b.Rows, long, empty)
	s.append(b)
	s.flush()
	wantSame(t, "rows", s.query("*"), rowTexts(b.Rows))
	s.wantRows(`{service.zone="zone 7=\"東\"}, {"}`, 5)
	s.sync()
	s.reopen()
	wantSame(t, "rows after reopening", s.query("*"), rowTexts(b.Rows))
	s.wantRows(`{service.zone="zone 7=\"東\"}, {"}`, 5)
	s.wantRows(`{service.name="shop-1"}`, 251)
	s.wantMissing("streams", b, nil)
}

func testRecordStats(t *testing.T, s *recordSuite) {
	if got := s.Stats(); got.Rows != 0 {
		t.Errorf("empty store: %+v", got)
	}
	b := s.batch(1000)
	s.append(b)
	s.flush()
	s.sync()
	got := s.Stats()
	if got.Rows != 1000 || got.DiskBytes == 0 ||
		got.Earliest.UnixNano() != b.Rows[0].Time || got.Latest.UnixNano() != b.Rows[999].Time {
		t.Errorf("got %+v, want 1000 rows from %d to %d", got, b.Rows[0].Time, b.Rows[999].Time)
	}
}

// testRecordsConcurrent reads while the applier writes.
func testRecordsConcurrent(t *testing.T, s *recordSuite) {
	const batches, rows = 40, 50
	var flushed atomic.Int64
	done := make(chan struct{})
	var wg sync.WaitGroup
	stop := sync.OnceFunc(func() {
		close(done)
		wg.Wait()
	})
	defer stop() // also when a check ends the test
	for range 4 {
		wg.Go(func() {
			for {
				atLeast := flushed.Load()
				calling := false
				n := int64(0)
				err := s.QueryRecords(t.Context(), store.RecordQuery{LogsQL: "*"}, func([]record.Field) error {
					if calling {
						t.Error("fn is called concurrently")
					}
					calling = true
					n++
					calling = false
					return nil
				})
				if err != nil {
					t.Errorf("QueryRecords: %v", err)
				}
				if n < atLeast || n > batches*rows {
					t.Errorf("%d rows seen, want %d at least and %d at most", n, atLeast, batches*rows)
				}
				s.Stats()
				s.Bounds()
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for i := range batches {
		s.append(s.batch(rows))
		switch i % 4 {
		case 1:
			s.flush()
			flushed.Store(int64(i+1) * rows)
		case 3:
			s.sync()
		}
	}
	stop()
	s.flush()
	s.wantRows("*", batches*rows)
}
