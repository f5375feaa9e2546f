package recorder

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"

	"inquest/admit"
	"inquest/journal"
	"inquest/record"
	"inquest/store"
)

func numbers(first, n int) map[int]bool {
	out := map[int]bool{}
	for i := first; i < first+n; i++ {
		out[i] = true
	}
	return out
}

func TestRecordAndRestart(t *testing.T) {
	dir := t.TempDir()
	base := time.Now().Add(-time.Minute)
	r := open(t, dir)
	ctx := t.Context()
	send := func(r *Recorder, first, n int) {
		t.Helper()
		if err := errors.Join(
			r.Logs(ctx, logBatch(base, first, n)),
			r.Traces(ctx, spanBatch(base, first, n)),
			r.Metrics(ctx, pointBatch(base, first, n)),
		); err != nil {
			t.Fatal(err)
		}
	}
	check := func(r *Recorder, n int) {
		t.Helper()
		caughtUp(t, r)
		acked := numbers(0, n)
		for _, kind := range []record.Type{record.TypeLog, record.TypeSpan, record.TypeExemplar} {
			counts := stored(t, r, kind)
			checkExact(t, string(kind), acked, counts)
			if len(counts) != n {
				t.Errorf("%s: %d numbers stored, want %d", kind, len(counts), n)
			}
		}
		checkExact(t, "points", acked, storedPoints(t, r))
	}
	send(r, 0, 100)
	check(r, 100)
	if s := r.Stats(); s.Accepted != (Counts{100, 100, 100}) || s.Rejected != (Counts{}) {
		t.Errorf("accepted %+v, rejected %+v", s.Accepted, s.Rejected)
	}
	closeRecorder(t, r)

	r = open(t, dir)
	defer closeRecorder(t, r)
	check(r, 100)
	send(r, 100, 50)
	check(r, 150)
}

func TestRejectsOnlyTheBad(t *testing.T) {
	r := open(t, t.TempDir())
	defer closeRecorder(t, r)
	ld := logBatch(time.Now(), 0, 3)
	lrs := ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords()
	lrs.At(1).SetTimestamp(4_102_444_800_000_000_000) // the year 2100
	ctx, report := admit.WithReport(t.Context())
	if err := r.Logs(ctx, ld); err != nil {
		t.Fatal(err)
	}
	if report.Rejected() != 1 || report.Message() == "" {
		t.Errorf("rejected %d: %q", report.Rejected(), report.Message())
	}
	caughtUp(t, r)
	if got := stored(t, r, record.TypeLog); len(got) != 2 || got[0] != 1 || got[2] != 1 {
		t.Errorf("stored %v, want 0 and 2", got)
	}
}

func TestRows(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir)
	row := record.Row{
		Time:   time.Now().UnixNano(),
		Stream: []record.Field{{Name: record.FieldType, Value: string(record.TypeVerdict)}},
		Fields: []record.Field{{Name: "n", Value: "7"}},
	}
	if err := r.Rows(t.Context(), []record.Row{row}); err != nil {
		t.Fatal(err)
	}
	row.Time = 0
	if err := r.Rows(t.Context(), []record.Row{row}); err == nil {
		t.Error("a row of 1970 was taken")
	}
	closeRecorder(t, r)
	r = open(t, dir)
	defer closeRecorder(t, r)
	caughtUp(t, r)
	if got := stored(t, r, record.TypeVerdict); got[7] != 1 {
		t.Errorf("stored %v", got)
	}
}

func TestClosed(t *testing.T) {
	r := open(t, t.TempDir())
	closeRecorder(t, r)
	if err := r.Logs(t.Context(), logBatch(time.Now(), 0, 1)); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
}

func TestTwoRecordersOnOneFolder(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir)
	defer closeRecorder(t, r)
	if second, err := Open(testConfig(dir)); err == nil {
		closeRecorder(t, second)
		t.Error("a second recorder opened the same folder")
	}
}

func TestBadCheckpoint(t *testing.T) {
	f := func(content, want string) {
		t.Helper()
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, checkpointFile), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := Open(testConfig(dir))
		if err == nil {
			closeRecorder(t, r)
			t.Fatalf("opened with the checkpoint %q", content)
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q lacks %q", err, want)
		}
	}
	f(`{`, "remove it to apply the journal again")
	f(`{"version":9,"applied":1}`, "another version")
	f(`{"version":1,"applied":5}`, "bring back the journal folder")
}

// stuckRecords is a store that takes nothing for a while.
type stuckRecords struct {
	store.Records
	stuck chan struct{} // closed when it works again
}

func (s *stuckRecords) Append(ctx context.Context, b store.Batch) error {
	select {
	case <-s.stuck:
		return s.Records.Append(ctx, b)
	default:
		return store.ErrUnavailable
	}
}

func TestStoreUnavailable(t *testing.T) {
	base := time.Now()
	parts := openParts(t, t.TempDir())
	s := &stuckRecords{Records: parts.Records, stuck: make(chan struct{})}
	parts.Records = s
	r, err := New(parts)
	if err != nil {
		t.Fatal(err)
	}
	defer closeRecorder(t, r)
	for i := range 20 {
		if err := r.Logs(t.Context(), logBatch(base, i*10, 10)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := r.CatchUp(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("caught up with a store that takes nothing: %v", err)
	}
	if !r.Stats().Stalled {
		t.Error("not reported as stalled")
	}
	close(s.stuck)
	caughtUp(t, r)
	checkExact(t, "logs", numbers(0, 200), stored(t, r, record.TypeLog))
}

func TestExemplarBounds(t *testing.T) {
	parts := openParts(t, t.TempDir())
	parts.Records = &shortSighted{parts.Records}
	r, err := New(parts)
	if err != nil {
		t.Fatal(err)
	}
	defer closeRecorder(t, r)
	ctx, report := admit.WithReport(t.Context())
	if err := r.Metrics(ctx, pointBatch(time.Now(), 0, 1)); err != nil {
		t.Fatal(err)
	}
	if report.Rejected() != 1 {
		t.Errorf("%d points rejected, want the one whose exemplar the records do not take", report.Rejected())
	}
}

// shortSighted takes records up to an hour ago only.
type shortSighted struct{ store.Records }

func (s *shortSighted) Bounds() (earliest, latest time.Time) {
	earliest, _ = s.Records.Bounds()
	return earliest, time.Now().Add(-time.Hour)
}

// A request whose bytes are known is kept in them, unless something of it was
// refused.
func TestAsReceived(t *testing.T) {
	f := func(late bool, wantBody bool) {
		t.Helper()
		parts := openParts(t, t.TempDir())
		r, err := New(parts)
		if err != nil {
			t.Fatal(err)
		}
		defer closeRecorder(t, r)
		ld := logBatch(time.Now(), 0, 3)
		if late {
			ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(1).SetTimestamp(4_102_444_800_000_000_000)
		}
		body, err := (&plog.ProtoMarshaler{}).MarshalLogs(ld)
		if err != nil {
			t.Fatal(err)
		}
		body = append(body, 0xf8, 0x01, 7) // field 31, unknown to all: tells these bytes from others
		ctx, report := admit.WithReport(t.Context())
		report.SetBody(body)
		if err := r.Logs(ctx, ld); err != nil {
			t.Fatal(err)
		}
		rd, err := parts.Journal.Read(1)
		if err != nil {
			t.Fatal(err)
		}
		defer rd.Close()
		e, err := rd.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(e.Payload, body) != wantBody {
			t.Errorf("the journal holds the request's own bytes: %v, want %v", !wantBody, wantBody)
		}
		var again batch
		if err := again.decode(e.Kind, e.Payload); err != nil {
			t.Fatal(err)
		}
		caughtUp(t, r)
		if n := again.logs.LogRecordCount(); n != len(stored(t, r, record.TypeLog)) {
			t.Errorf("the journal has %d records, the store %d", n, len(stored(t, r, record.TypeLog)))
		}
	}
	f(false, true)
	f(true, false)
}
