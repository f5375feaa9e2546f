package admit

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"inquest/record"
)

var (
	arrival  = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	received = arrival.UnixNano()
	bounds   = Bounds{Earliest: arrival.Add(-24 * time.Hour), Latest: arrival.Add(time.Hour)}
)

func at(t time.Time) pcommon.Timestamp { return pcommon.NewTimestampFromTime(t) }

// nest puts a list of that depth into v.
func nest(v pcommon.Value, depth int) {
	for range depth {
		v = v.SetEmptySlice().AppendEmpty()
	}
}

// check says whether the message holds want, or is empty when want is.
func check(t *testing.T, rep *Report, want string) {
	t.Helper()
	if m := rep.Message(); want == "" && m != "" || !strings.Contains(m, want) {
		t.Errorf("message %q, want %q", m, want)
	}
}

func TestLogs(t *testing.T) {
	f := func(change func(plog.ResourceLogs, plog.LogRecord), kept bool, want string) {
		t.Helper()
		ld := plog.NewLogs()
		rl := ld.ResourceLogs().AppendEmpty()
		lr := rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
		lr.SetTimestamp(at(arrival))
		change(rl, lr)
		rep := &Report{}
		n := Logs(ld, bounds, received, rep)
		if n != ld.LogRecordCount() || n == 1 != kept || n+rep.Rejected() != 1 {
			t.Errorf("kept %d, left %d, rejected %d", n, ld.LogRecordCount(), rep.Rejected())
		}
		if n == 0 && ld.ResourceLogs().Len() != 0 {
			t.Error("an empty resource is left")
		}
		check(t, rep, want)
	}
	stamp := func(ns uint64) func(plog.ResourceLogs, plog.LogRecord) {
		return func(_ plog.ResourceLogs, lr plog.LogRecord) { lr.SetTimestamp(pcommon.Timestamp(ns)) }
	}
	f(func(plog.ResourceLogs, plog.LogRecord) {}, true, "")
	// times
	f(stamp(0), true, "")
	f(stamp(12e9), false, "log record of 1970-01-01T00:00:12Z is older than 2026-05-31T12:00:00Z")
	f(stamp(uint64(time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano())), false, "log record of 2100-01-01T00:00:00Z is later than 2026-06-01T13:00:00Z")
	f(stamp(1<<64-1), false, "a time past the year 2262")
	f(stamp(uint64(bounds.Earliest.UnixNano())), true, "")
	f(stamp(uint64(bounds.Latest.UnixNano())), true, "")
	f(func(_ plog.ResourceLogs, lr plog.LogRecord) { lr.SetTimestamp(0); lr.SetObservedTimestamp(1) }, false, "1970-01-01T00:00:00.000000001Z")
	// sizes
	body := func(s string) func(plog.ResourceLogs, plog.LogRecord) {
		return func(_ plog.ResourceLogs, lr plog.LogRecord) { lr.Body().SetStr(s) }
	}
	f(body(strings.Repeat("x", record.MaxRowSize-200)), true, "")
	f(body(strings.Repeat("x", record.MaxRowSize+1)), false, "above the limit of 1048576 bytes")
	f(func(_ plog.ResourceLogs, lr plog.LogRecord) {
		lr.Body().SetEmptyMap().PutStr("k", strings.Repeat("\x01", record.MaxRowSize/5))
	}, false, "above the limit")
	f(func(_ plog.ResourceLogs, lr plog.LogRecord) {
		lr.Attributes().PutEmptyBytes("k").FromRaw(make([]byte, record.MaxRowSize*4/5))
	}, false, "above the limit")
	f(func(rl plog.ResourceLogs, lr plog.LogRecord) {
		rl.Resource().Attributes().PutStr("k", strings.Repeat("x", record.MaxRowSize*2/3))
		lr.Body().SetStr(strings.Repeat("x", record.MaxRowSize/2))
	}, false, "above the limit")
	f(func(rl plog.ResourceLogs, _ plog.LogRecord) {
		rl.Resource().Attributes().PutStr("k", strings.Repeat("x", record.MaxRowSize))
	}, false, "above the limit")
	f(func(rl plog.ResourceLogs, lr plog.LogRecord) {
		rl.Resource().Attributes().PutStr("k", strings.Repeat("x", record.MaxRowSize/2))
		lr.Body().SetStr(strings.Repeat("x", record.MaxRowSize/3))
	}, true, "")
	// numbers of attributes
	many := func(n int) func(plog.ResourceLogs, plog.LogRecord) {
		return func(_ plog.ResourceLogs, lr plog.LogRecord) {
			for i := range n {
				lr.Attributes().PutInt(fmt.Sprint("k", i), 1)
			}
		}
	}
	f(many(record.MaxAttributes), true, "")
	f(many(10_000), true, "10000 attributes")
	f(func(rl plog.ResourceLogs, lr plog.LogRecord) {
		many(10_000)(rl, lr)
		rl.Resource().Attributes().PutStr("\x01", strings.Repeat("\x01", record.MaxRowSize/5))
	}, false, "above the limit")
	// depth
	f(func(_ plog.ResourceLogs, lr plog.LogRecord) { nest(lr.Attributes().PutEmpty("k"), MaxDepth) }, true, "")
	f(func(_ plog.ResourceLogs, lr plog.LogRecord) { nest(lr.Attributes().PutEmpty("k"), MaxDepth+1) }, false, "nested deeper than 32")
	f(func(_ plog.ResourceLogs, lr plog.LogRecord) { nest(lr.Body(), 90) }, false, "nested deeper than 32")
	f(func(rl plog.ResourceLogs, _ plog.LogRecord) { nest(rl.Resource().Attributes().PutEmpty("k"), 90) }, false, "of its resource or scope")
	// not UTF-8
	f(body("\xff"), true, "")
}

func TestSpans(t *testing.T) {
	f := func(change func(ptrace.Span), kept bool, want string) {
		t.Helper()
		td := ptrace.NewTraces()
		sp := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		sp.SetTraceID(pcommon.TraceID{1})
		sp.SetSpanID(pcommon.SpanID{1})
		sp.SetStartTimestamp(at(arrival))
		sp.SetEndTimestamp(at(arrival) + 5)
		sp.SetName("op")
		change(sp)
		rep := &Report{}
		n := Spans(td, bounds, received, rep)
		if n != td.SpanCount() || n == 1 != kept || n+rep.Rejected() != 1 {
			t.Errorf("kept %d, left %d, rejected %d", n, td.SpanCount(), rep.Rejected())
		}
		check(t, rep, want)
	}
	f(func(ptrace.Span) {}, true, "")
	f(func(sp ptrace.Span) { sp.SetTraceID(pcommon.TraceID{}) }, false, "span: traceId is missing or all zero")
	f(func(sp ptrace.Span) { sp.SetSpanID(pcommon.SpanID{}) }, false, "span: spanId is missing or all zero")
	f(func(sp ptrace.Span) { sp.SetStartTimestamp(1) }, false, "older than")
	f(func(sp ptrace.Span) { sp.SetStartTimestamp(0) }, true, "")
	f(func(sp ptrace.Span) { sp.SetEndTimestamp(0) }, true, "")
	f(func(sp ptrace.Span) { sp.SetStartTimestamp(0); sp.SetEndTimestamp(0) }, true, "")
	f(func(sp ptrace.Span) { sp.SetEndTimestamp(sp.StartTimestamp() - 7) }, true, `1 noted: span "op" ends 7 ns before it starts`)
	f(func(sp ptrace.Span) {
		for range 10_000 {
			sp.Events().AppendEmpty().Attributes().PutStr("k", strings.Repeat("x", 100))
		}
	}, false, "above the limit")
	f(func(sp ptrace.Span) {
		for range 2_000 {
			sp.Events().AppendEmpty().Attributes().PutStr("k", "v")
		}
	}, true, "")
	f(func(sp ptrace.Span) { nest(sp.Links().AppendEmpty().Attributes().PutEmpty("k"), MaxDepth+1) }, false, "nested deeper")
}

func TestUnbounded(t *testing.T) {
	f := func(b Bounds, ns uint64, want int) {
		t.Helper()
		ld := plog.NewLogs()
		ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().SetTimestamp(pcommon.Timestamp(ns))
		if got := Logs(ld, b, received, nil); got != want {
			t.Errorf("%v: kept %d, want %d", b, got, want)
		}
	}
	f(Bounds{}, 1, 1)
	f(Bounds{}, 1<<64-1, 1)
	f(Bounds{Earliest: time.Date(1000, 1, 1, 0, 0, 0, 0, time.UTC), Latest: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}, 1, 1)
	f(Bounds{Earliest: arrival}, 1, 0)
}

// TestNothingElseIsLost mixes good and bad records in random batches: exactly
// the good ones are left, unchanged and in order.
func TestNothingElseIsLost(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		ld, td := plog.NewLogs(), ptrace.NewTraces()
		var want []string
		id, bad := 0, 0
		for range 1 + r.IntN(4) {
			rl, rs := ld.ResourceLogs().AppendEmpty(), td.ResourceSpans().AppendEmpty()
			for range r.IntN(4) {
				sl, ss := rl.ScopeLogs().AppendEmpty(), rs.ScopeSpans().AppendEmpty()
				for range r.IntN(10) {
					id++
					lr, sp := sl.LogRecords().AppendEmpty(), ss.Spans().AppendEmpty()
					lr.SetTimestamp(at(arrival))
					sp.SetTraceID(pcommon.TraceID{1})
					sp.SetSpanID(pcommon.SpanID{1})
					sp.SetStartTimestamp(at(arrival))
					lr.Body().SetStr(fmt.Sprint(id))
					sp.SetName(fmt.Sprint(id))
					switch r.IntN(8) {
					case 0:
						lr.SetTimestamp(1)
						sp.SetStartTimestamp(1)
					case 1:
						nest(lr.Attributes().PutEmpty("k"), 40)
						nest(sp.Attributes().PutEmpty("k"), 40)
					case 2:
						lr.Attributes().PutEmptyBytes("k").FromRaw(make([]byte, record.MaxRowSize))
						sp.Attributes().PutEmptyBytes("k").FromRaw(make([]byte, record.MaxRowSize))
					default:
						want = append(want, fmt.Sprint(id))
						continue
					}
					bad++
				}
			}
		}
		repLogs, repSpans := &Report{}, &Report{}
		keptLogs, keptSpans := Logs(ld, bounds, received, repLogs), Spans(td, bounds, received, repSpans)
		var gotLogs, gotSpans []string
		for _, rl := range ld.ResourceLogs().All() {
			for _, sl := range rl.ScopeLogs().All() {
				for _, lr := range sl.LogRecords().All() {
					gotLogs = append(gotLogs, lr.Body().Str())
				}
			}
		}
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, sp := range ss.Spans().All() {
					gotSpans = append(gotSpans, sp.Name())
				}
			}
		}
		if !slices.Equal(gotLogs, want) || keptLogs != len(want) || repLogs.Rejected() != bad {
			t.Fatalf("seed %d: logs %v, want %v; kept %d, rejected %d of %d bad", seed, gotLogs, want, keptLogs, repLogs.Rejected(), bad)
		}
		if !slices.Equal(gotSpans, want) || keptSpans != len(want) || repSpans.Rejected() != bad {
			t.Fatalf("seed %d: spans %v, want %v; kept %d, rejected %d of %d bad", seed, gotSpans, want, keptSpans, repSpans.Rejected(), bad)
		}
	}
}

func goodLogs(n int) plog.Logs {
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	rl.Resource().Attributes().PutStr("service.name", "cart")
	sl := rl.ScopeLogs().AppendEmpty()
	for range n {
		lr := sl.LogRecords().AppendEmpty()
		lr.SetTimestamp(at(arrival))
		lr.Body().SetStr("order placed for a customer, payment accepted, shipment is scheduled")
		for i := range 15 {
			lr.Attributes().PutStr(fmt.Sprint("attribute.name.", i), "some value")
		}
	}
	return ld
}

func TestGoodLogsCostNothing(t *testing.T) {
	ld := goodLogs(100)
	rep := &Report{}
	if n := testing.AllocsPerRun(10, func() { Logs(ld, bounds, received, rep) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkLogs(b *testing.B) {
	ld := goodLogs(500)
	b.ReportAllocs()
	for b.Loop() {
		Logs(ld, bounds, received, nil)
	}
	b.ReportMetric(float64(b.N)*500/b.Elapsed().Seconds(), "records/s")
}
