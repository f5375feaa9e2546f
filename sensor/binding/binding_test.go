package binding

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"inquest/admit/bind"
	"inquest/record"
	"inquest/store"
	"inquest/store/local"
	"inquest/store/storetest"
)

// world is telemetry that a test makes.
type world struct {
	at   time.Time
	td   ptrace.Traces
	ld   plog.Logs
	next uint64
}

func newWorld() *world {
	return &world{at: time.Now().UTC().Truncate(time.Hour).Add(-3 * time.Hour), td: ptrace.NewTraces(), ld: plog.NewLogs()}
}

func traceID(n int) (id pcommon.TraceID) {
	binary.BigEndian.PutUint64(id[8:], uint64(n))
	return id
}

func put(m pcommon.Map, attrs []string) {
	for i := 0; i+1 < len(attrs); i += 2 {
		m.PutStr(attrs[i], attrs[i+1])
	}
}

// span adds a span from one second to another; "instance" names its process.
func (w *world) span(trace int, instance string, from, to float64, attrs ...string) {
	rs := w.td.ResourceSpans().AppendEmpty()
	put(rs.Resource().Attributes(), []string{"service.name", "chat", "service.instance.id", instance})
	sp := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	sp.SetTraceID(traceID(trace))
	w.next++
	sp.SetSpanID(pcommon.SpanID(binary.BigEndian.AppendUint64(nil, w.next)))
	sp.SetStartTimestamp(w.stamp(from))
	sp.SetEndTimestamp(w.stamp(to))
	put(sp.Attributes(), attrs)
}

func (w *world) stamp(s float64) pcommon.Timestamp {
	return pcommon.NewTimestampFromTime(w.at.Add(time.Duration(s * 1e9)))
}

// log adds a log record; trace 0 is none.
func (w *world) log(trace int, instance, body string, at float64, attrs ...string) {
	rl := w.ld.ResourceLogs().AppendEmpty()
	put(rl.Resource().Attributes(), []string{"service.name", "chat", "service.instance.id", instance})
	lr := rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	lr.SetTimestamp(w.stamp(at))
	lr.Body().SetStr(body)
	if trace != 0 {
		lr.SetTraceID(traceID(trace))
	}
	put(lr.Attributes(), attrs)
}

func (w *world) store(t testing.TB) *local.Records {
	t.Helper()
	records, err := local.OpenRecords(local.RecordsOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { records.Close() })
	batches := [][]record.Row{new(record.Converter).Spans(w.td, 1, 0), new(record.Converter).Logs(w.ld, 2, 0)}
	for seq, rows := range batches {
		if len(rows) == 0 {
			continue
		}
		if err := records.Append(t.Context(), store.Batch{Seq: uint64(seq) + 1, Rows: rows}); err != nil {
			t.Fatal(err)
		}
	}
	if err := records.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	return records
}

// answers binds a range and returns, by body, what was found.
func (w *world) answers(t testing.TB, r *local.Records, from, to time.Duration, o Options) (map[string]string, Counts) {
	t.Helper()
	got := map[string]string{}
	res, err := Bind(t.Context(), storetest.Volatile(r), w.at.Add(from), w.at.Add(to), o, func(fields []record.Field, b bind.Binding, out bind.Outcome) error {
		body := ""
		for _, f := range Annotate(slices.Clone(fields), b) {
			switch f.Name {
			case record.FieldBody:
				body = strings.Clone(f.Value)
			case record.FieldTraceID:
				if f.Value != b.TraceID {
					t.Errorf("annotated with %s, not %s", f.Value, b.TraceID)
				}
			}
		}
		n, _ := strconv.ParseUint(b.TraceID, 16, 64)
		got[body] = fmt.Sprintf("%s %d %s", b.By, n, b.RequestID)
		if b.By == "" {
			got[body] = []string{"none", "", "ambiguous request", "ambiguous process"}[out]
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got, res.Total()
}

func TestBind(t *testing.T) {
	w := newWorld()
	w.span(1, "a", 100, 101, "request.id", "req-0001")
	w.span(2, "a", 200, 210)
	w.span(3, "a", 205, 215)
	w.log(4, "b", "request_id=req-0004 begins", 100)
	w.log(5, "b", "x", 300, "request_id", "req-0005")
	w.log(6, "b", "x", 310, "req_id", "req-0005")
	w.span(7, "c", 0, 1800) // long before the window of what it binds
	w.span(8, "d", 400, 401, "request.id", "req-0008")
	w.span(9, "e", 0, 1000, "request.id", "req-0009")

	w.log(0, "b", "by field", 150, "req_id", "req-0001")
	w.log(0, "b", "by text req_id: req-0001", 150)
	w.log(0, "b", `{"request_id":"req-0004"}`, 150)
	w.log(0, "b", "too late", 222, "req_id", "req-0001")
	w.log(0, "b", "two traces", 305, "request.id", "req-0005")
	w.log(0, "a", "in span", 100.5)
	w.log(0, "a", "in two", 207)
	w.log(0, "a", "in one of two", 212)
	w.log(0, "c", "in a long span", 1700)
	w.log(0, "b", "of a long span", 1110, "request.id", "req-0009")
	w.log(0, "b", "after a long span", 1130, "request.id", "req-0009")
	w.log(0, "b", "nothing", 600)
	r := w.store(t)
	want := map[string]string{
		"by field":                  "request_id 1 req-0001",
		"by text req_id: req-0001":  "request_id 1 req-0001",
		`{"request_id":"req-0004"}`: "request_id 4 req-0004",
		"too late":                  "none",
		"two traces":                "ambiguous request",
		"in span":                   "process 1 req-0001",
		"in two":                    "ambiguous process",
		"in one of two":             "process 3 ",
		"in a long span":            "process 7 ",
		"of a long span":            "request_id 9 req-0009",
		"after a long span":         "none",
		"nothing":                   "none",
	}
	got, counts := w.answers(t, r, 0, time.Hour, Options{})
	if !maps.Equal(got, want) {
		for body := range want {
			if got[body] != want[body] {
				t.Errorf("%s: got %q, want %q", body, got[body], want[body])
			}
		}
	}
	if w := (Counts{
		Records: 12, ByRequestID: 4, ByProcess: 3, WithSpan: 3, AmbiguousRequestID: 1, AmbiguousProcess: 1, NoEvidence: 3,
		RequestID: 7, RequestIDWithBound: 8, RequestIDInTextOnly: 2,
	}); counts != w {
		t.Errorf("counts %+v, want %+v", counts, w)
	}

	// An error of fn ends it.
	stop := errors.New("stop")
	_, err := Bind(t.Context(), storetest.Volatile(r), w.at, w.at.Add(time.Hour), Options{}, func([]record.Field, bind.Binding, bind.Outcome) error { return stop })
	if !errors.Is(err, stop) {
		t.Errorf("error %v", err)
	}
	// Too much in one second is counted, not guessed.
	if _, counts := w.answers(t, r, 0, time.Hour, Options{MaxSpans: 1}); counts.Unexamined == 0 || counts.Records != 12 {
		t.Errorf("counts %+v", counts)
	}
	if _, counts := w.answers(t, r, 2*time.Hour, 3*time.Hour, Options{}); counts != (Counts{}) {
		t.Errorf("counts %+v of nothing", counts)
	}
}

// TestSameAnswer binds random telemetry in ranges and parts of many sizes: the
// answer for a record never changes.
func TestSameAnswer(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	w := newWorld()
	for i := range 300 {
		at := rnd.Float64() * 2000
		length := rnd.Float64() * 5
		if i%20 == 0 {
			length = rnd.Float64() * 600
		}
		w.span(i+1, fmt.Sprint(rnd.IntN(6)), at, at+length, "request.id", fmt.Sprintf("request-%d", rnd.IntN(200)), "thread.id", fmt.Sprint(rnd.IntN(3)))
	}
	for i := range 600 {
		at := rnd.Float64() * 2000
		attrs := []string{}
		if i%3 == 0 {
			attrs = append(attrs, "request.id", fmt.Sprintf("request-%d", rnd.IntN(200)))
		}
		if i%2 == 0 {
			attrs = append(attrs, "thread.id", fmt.Sprint(rnd.IntN(3)))
		}
		trace := 0
		if i%10 == 9 {
			trace = rnd.IntN(400) + 1
		}
		w.log(trace, fmt.Sprint(rnd.IntN(6)), fmt.Sprint("record ", i), at, attrs...)
	}
	r := w.store(t)
	all, counts := w.answers(t, r, 0, 40*time.Minute, Options{})
	if counts.ByProcess < 20 || counts.ByRequestID < 20 || counts.AmbiguousProcess < 20 || counts.AmbiguousRequestID < 2 {
		t.Errorf("too little happens: %+v", counts)
	}
	f := func(step time.Duration, o Options) {
		t.Helper()
		parts := map[string]string{}
		for from := time.Duration(0); from < 40*time.Minute; from += step {
			got, c := w.answers(t, r, from, from+step, o)
			maps.Copy(parts, got)
			if c.Unexamined > 0 {
				t.Errorf("%d not examined", c.Unexamined)
			}
		}
		if !maps.Equal(all, parts) {
			for body := range all {
				if all[body] != parts[body] {
					t.Errorf("in steps of %s, %s is %q, else %q", step, body, parts[body], all[body])
				}
			}
		}
	}
	f(40*time.Minute, Options{MaxSpans: 150, MaxOthers: 200})
	f(40*time.Minute, Options{MaxRequestIDs: 10})
	f(7*time.Minute+1234*time.Millisecond, Options{})
	f(time.Minute, Options{})
}

func TestBadStore(t *testing.T) {
	r := newWorld().store(t)
	if _, err := Bind(t.Context(), storetest.Volatile(r), time.Time{}, time.Time{}, Options{}, nil); err != nil {
		t.Error(err)
	}
	r.Close()
	if _, err := Bind(t.Context(), storetest.Volatile(r), time.Time{}, time.Time{}, Options{}, nil); err == nil {
		t.Error("a closed store is no error")
	}
}
