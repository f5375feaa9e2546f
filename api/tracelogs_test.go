package api

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"inquest/admit/bind"
	"inquest/api/apitype"
	"inquest/record"
	"inquest/sensor/binding"
	"inquest/store"
	"inquest/store/local"
)

// boundStore is the API on a real store with two requests through one worker, one
// after the other, and one through another worker meanwhile, with log records of
// which some carry no trace id.
func boundStore(t *testing.T) (h http.Handler, records *local.Records, at time.Time, traces [3]pcommon.TraceID) {
	t.Helper()
	records, err := local.OpenRecords(local.RecordsOptions{Dir: t.TempDir(), MinFreeBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	samples, err := local.OpenSamples(local.SamplesOptions{Dir: t.TempDir(), MinFreeBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(records.Close(), samples.Close()); err != nil {
			t.Error(err)
		}
	})
	at = time.Now().Add(-10 * time.Minute).Truncate(time.Second)
	var c record.Converter
	var rows []record.Row
	keep := func(more []record.Row) {
		for _, r := range more { // the converter uses its memory again
			rows = append(rows, record.Row{Time: r.Time, Stream: slices.Clone(r.Stream), Fields: slices.Clone(r.Fields)})
		}
	}
	process := func(attrs pcommon.Map, pod string) {
		attrs.PutStr("service.name", "worker")
		attrs.PutStr("k8s.pod.name", pod)
	}
	for n, pod := range []string{"worker-1", "worker-1", "worker-2"} {
		traces[n] = pcommon.TraceID{0xab, 15: byte(n + 1)}
		td := ptrace.NewTraces()
		rs := td.ResourceSpans().AppendEmpty()
		process(rs.Resource().Attributes(), pod)
		sp := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		sp.SetName("job")
		sp.SetTraceID(traces[n])
		sp.SetSpanID(pcommon.SpanID{7: byte(n + 1)})
		sp.Attributes().PutStr("request.id", fmt.Sprintf("req-0000000%d", n))
		begin := at.Add(time.Duration(n%2) * 10 * time.Second)
		sp.SetStartTimestamp(pcommon.NewTimestampFromTime(begin))
		sp.SetEndTimestamp(pcommon.NewTimestampFromTime(begin.Add(5 * time.Second)))
		keep(c.Spans(td, uint64(n+1), 0))
	}
	log := func(pod, text string, after time.Duration, trace *pcommon.TraceID) {
		ld := plog.NewLogs()
		rl := ld.ResourceLogs().AppendEmpty()
		process(rl.Resource().Attributes(), pod)
		lr := rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
		lr.SetTimestamp(pcommon.NewTimestampFromTime(at.Add(after)))
		lr.Body().SetStr(text)
		if trace != nil {
			lr.SetTraceID(*trace)
		}
		keep(c.Logs(ld, uint64(len(rows)+100), 0))
	}
	log("worker-1", "own id", time.Second, &traces[0])
	log("worker-1", "in the first job", 2*time.Second, nil)
	log("worker-1", "between the jobs", 7*time.Second, nil)
	log("worker-1", "in the second job", 12*time.Second, nil)
	log("worker-2", "in the third job", 3*time.Second, nil)
	log("gateway-1", "queued, request_id=req-00000000", 20*time.Second, nil)
	log("gateway-1", "somebody else's, request_id=req-99999999", 20*time.Second, nil)
	if err := records.Append(t.Context(), store.Batch{Seq: 1, Rows: rows}); err != nil {
		t.Fatal(err)
	}
	return newTestHandler(t, Config{Records: records, CatchUp: records.Flush, Samples: samples}), records, at, traces
}

// The answer about a trace has the records that the evidence binds to it, marked,
// and no others; it is what binding of all records gives.
func TestBoundLogs(t *testing.T) {
	h, _, _, traces := boundStore(t)
	f := func(n int, want ...string) {
		t.Helper()
		tr := getData[apitype.Trace](t, h, "/api/v1/traces/"+traces[n].String())
		var got []string
		for _, row := range tr.Logs {
			if row["trace_id"] != traces[n].String() {
				t.Errorf("%v has another trace id", row)
			}
			got = append(got, row["binding"]+": "+row[record.FieldBody])
		}
		if !slices.Equal(got, want) || tr.LogsCut {
			t.Errorf("trace %d has %q, want %q", n, got, want)
		}
	}
	f(0, ": own id", "process: in the first job", "request_id: queued, request_id=req-00000000")
	f(1, "process: in the second job")
	f(2, "process: in the third job")

	tr := getData[apitype.Trace](t, h, "/api/v1/traces/"+traces[0].String())
	if row := tr.Logs[1]; row["span_id"] != "0000000000000001" || row["request.id"] != "req-00000000" {
		t.Errorf("the bound record is %v", row)
	}
	if tr := getData[apitype.Trace](t, h, "/api/v1/traces/"+traces[0].String()+"?logs=2"); len(tr.Logs) != 2 || !tr.LogsCut || tr.Logs[1]["binding"] != "process" {
		t.Errorf("of two logs there are %v, cut %v", tr.Logs, tr.LogsCut)
	}
	if tr := getData[apitype.Trace](t, h, "/api/v1/traces/"+traces[0].String()+"?logs=0"); tr.Logs != nil {
		t.Errorf("asked for none there are %v", tr.Logs)
	}
	// A query for stored records gives what is stored.
	w := askChecked(t, h, 200, "GET", "/api/v1/records/query?query=trace_id:="+traces[1].String()+"+record.type:=log", nil, "")
	if w.Body.Len() != 0 {
		t.Errorf("stored records of the trace: %s", w.Body)
	}
	askChecked(t, h, 400, "GET", "/api/v1/traces/"+traces[0].String()+"?logs=-1", nil, "")
}

// A point of a metric leads to its exemplar's trace and to the records bound to it.
func TestDrilldownBoundLogs(t *testing.T) {
	h, records, at, traces := boundStore(t)
	if err := records.Append(t.Context(), store.Batch{Seq: 2, Rows: []record.Row{{
		Time:   at.Add(4 * time.Second).UnixNano(),
		Stream: []record.Field{{Name: record.FieldType, Value: string(record.TypeExemplar)}, {Name: "service.name", Value: "worker"}},
		Fields: []record.Field{
			{Name: record.FieldName, Value: "job.duration"},
			{Name: record.FieldValue, Value: "5"},
			{Name: record.FieldTraceID, Value: traces[1].String()},
			{Name: record.FieldLabels, Value: `{}`},
			{Name: record.FieldSeq, Value: "2"},
		},
	}}}); err != nil {
		t.Fatal(err)
	}
	d := getData[apitype.Drilldown](t, h, fmt.Sprintf("/api/v1/drilldown?time=%d&window=1m&query=job_duration_seconds_bucket", at.Unix()))
	if d.How != apitype.HowExemplar || d.Trace == nil || len(d.Logs) != 1 || d.Logs[0][record.FieldBody] != "in the second job" || d.Logs[0]["binding"] != "process" {
		t.Errorf("it leads to %s, %+v, %v", d.Explanation, d.Trace, d.Logs)
	}
	if d.Trace != nil && d.Trace.Logs != nil {
		t.Error("the logs are there twice")
	}
}

// Where evidence cannot be read, what is certain is answered, with a warning.
func TestBoundLogsFail(t *testing.T) {
	const id = "4bf92f3577b34da6a3ce929d0e0e4736"
	records := &fakeRecords{answers: []fakeAnswer{
		{contains: "sort by", rows: []map[string]string{{"_time": "2026-01-02T15:00:00Z", "record.type": "log", "trace_id": id, "_msg": "own"}}},
		{contains: `"record.type" in ("log", "span")`, err: errors.New("the disk is gone")},
		{contains: `"record.type"="span"`, rows: testTrace()},
	}}
	h := newTestHandler(t, Config{Records: records})
	w := askChecked(t, h, 200, "GET", "/api/v1/traces/"+id, nil, "")
	if !containsAll(w.Body.String(), `"own"`, "may belong to this trace are missing", "the disk is gone") {
		t.Errorf("answers %s", w.Body)
	}
}

// OfTrace finds just what binding of all records binds to the trace.
func TestOfTraceAgrees(t *testing.T) {
	_, records, at, traces := boundStore(t)
	if err := records.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := map[string]int{}
	if _, err := binding.Bind(t.Context(), records, at.Add(-time.Hour), at.Add(time.Hour), binding.Options{}, countBound(all)); err != nil {
		t.Fatal(err)
	}
	for _, id := range traces {
		n := 0
		if err := binding.OfTrace(t.Context(), records, id.String(), binding.Options{}, func([]record.Field) error { n++; return nil }); err != nil || n != all[id.String()] {
			t.Errorf("trace %s has %d, %v; want %d", id, n, err, all[id.String()])
		}
	}
}

func countBound(counts map[string]int) func([]record.Field, bind.Binding, bind.Outcome) error {
	return func(_ []record.Field, b bind.Binding, out bind.Outcome) error {
		if out == bind.Bound {
			counts[b.TraceID]++
		}
		return nil
	}
}

func containsAll(s string, parts ...string) bool {
	return !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(s, p) })
}
