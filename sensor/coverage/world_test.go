package coverage

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"inquest/record"
	"inquest/store"
	"inquest/store/local"
	"inquest/store/storetest"
)

// world is telemetry that a test makes and stores.
type world struct {
	t    *testing.T
	at   time.Time
	td   ptrace.Traces
	ld   plog.Logs
	next uint64
}

func newWorld(t *testing.T) *world {
	return &world{t: t, at: time.Now().UTC().Truncate(time.Minute).Add(-10 * time.Minute), td: ptrace.NewTraces(), ld: plog.NewLogs()}
}

func traceID(n uint64) (id pcommon.TraceID) {
	binary.BigEndian.PutUint64(id[8:], n)
	return id
}

// span adds a span, ms from the start of the world, and returns its id.
func (w *world) span(service, kind, name string, trace uint64, parent pcommon.SpanID, ms, length int, attrs ...string) (id pcommon.SpanID) {
	w.next++
	binary.BigEndian.PutUint64(id[:], w.next)
	rs := w.td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", service)
	rs.Resource().Attributes().PutStr("service.instance.id", service+"-1")
	sp := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	sp.SetTraceID(traceID(trace))
	sp.SetSpanID(id)
	sp.SetParentSpanID(parent)
	sp.SetName(name)
	sp.SetKind(map[string]ptrace.SpanKind{"server": ptrace.SpanKindServer, "client": ptrace.SpanKindClient, "producer": ptrace.SpanKindProducer, "consumer": ptrace.SpanKindConsumer, "internal": ptrace.SpanKindInternal}[kind])
	start := w.at.Add(time.Duration(ms) * time.Millisecond)
	sp.SetStartTimestamp(pcommon.NewTimestampFromTime(start))
	sp.SetEndTimestamp(pcommon.NewTimestampFromTime(start.Add(time.Duration(length) * time.Millisecond)))
	for i := 0; i+1 < len(attrs); i += 2 {
		sp.Attributes().PutStr(attrs[i], attrs[i+1])
	}
	return id
}

// log adds a log record; trace 0 is none.
func (w *world) log(service, body string, trace uint64, ms int, attrs ...string) {
	rl := w.ld.ResourceLogs().AppendEmpty()
	rl.Resource().Attributes().PutStr("service.name", service)
	rl.Resource().Attributes().PutStr("service.instance.id", service+"-1")
	lr := rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	lr.SetTimestamp(pcommon.NewTimestampFromTime(w.at.Add(time.Duration(ms) * time.Millisecond)))
	lr.Body().SetStr(body)
	if trace != 0 {
		lr.SetTraceID(traceID(trace))
		lr.SetSpanID(pcommon.SpanID{1})
	}
	for i := 0; i+1 < len(attrs); i += 2 {
		lr.Attributes().PutStr(attrs[i], attrs[i+1])
	}
}

// measure stores the world and measures it.
func (w *world) measure(o Options) *Report {
	w.t.Helper()
	records, err := local.OpenRecords(local.RecordsOptions{Dir: w.t.TempDir()})
	if err != nil {
		w.t.Fatal(err)
	}
	defer records.Close()
	var conv record.Converter
	ctx := w.t.Context()
	for seq, rows := range [][]record.Row{conv.Spans(w.td, 1, 0), new(record.Converter).Logs(w.ld, 2, 0)} {
		if len(rows) == 0 {
			continue
		}
		if err := records.Append(ctx, store.Batch{Seq: uint64(seq) + 1, Rows: rows}); err != nil {
			w.t.Fatal(err)
		}
	}
	if err := records.Flush(ctx); err != nil {
		w.t.Fatal(err)
	}
	r, err := Measure(ctx, storetest.Volatile(records), w.at, w.at.Add(5*time.Minute), o)
	if err != nil {
		w.t.Fatal(err)
	}
	again, err := Measure(ctx, storetest.Volatile(records), w.at, w.at.Add(5*time.Minute), o)
	if err != nil {
		w.t.Fatal(err)
	}
	if fmt.Sprint(r) != fmt.Sprint(again) {
		w.t.Errorf("two reports of the same data differ:\n%+v\n%+v", r, again)
	}
	return r
}
