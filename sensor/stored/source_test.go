package stored

import (
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"inquest/record"
	"inquest/sensor"
	"inquest/store"
	"inquest/store/local"
	"inquest/store/storetest"
)

// testSource is a source over real stores that hold one span, one log record
// and some metrics, all in the minute that begins at the returned time.
func testSource(t *testing.T) (*Source, time.Time) {
	t.Helper()
	dir := t.TempDir()
	records, err := local.OpenRecords(local.RecordsOptions{Dir: filepath.Join(dir, "records"), MinFreeBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	samples, err := local.OpenSamples(local.SamplesOptions{Dir: filepath.Join(dir, "samples"), MinFreeBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := records.Close(); err != nil {
			t.Error(err)
		}
		if err := samples.Close(); err != nil {
			t.Error(err)
		}
	})
	at := time.Now().UTC().Truncate(time.Minute).Add(-10 * time.Minute)
	stamp := func(seconds int) pcommon.Timestamp {
		return pcommon.NewTimestampFromTime(at.Add(time.Duration(seconds) * time.Second))
	}
	resource := func(r pcommon.Resource) {
		r.Attributes().PutStr("service.name", "chat")
		r.Attributes().PutStr("k8s.pod.name", "chat-1")
		r.Attributes().PutStr("k8s.node.name", "node-a")
		r.Attributes().PutStr("service.version", "v2")
	}

	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	resource(rs.Resource())
	sp := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	sp.SetTraceID(pcommon.TraceID{1})
	sp.SetSpanID(pcommon.SpanID{2})
	sp.SetParentSpanID(pcommon.SpanID{3})
	sp.SetName("POST /chat")
	sp.SetKind(ptrace.SpanKindServer)
	sp.SetStartTimestamp(stamp(10))
	sp.SetEndTimestamp(stamp(12))
	sp.Status().SetCode(ptrace.StatusCodeError)
	sp.Attributes().PutStr("gen_ai.request.model", "m1")
	sp.Attributes().PutStr("unread", "x")
	sp.Attributes().PutDouble("features.deviations.age", 1.5)
	sp.Attributes().PutEmptySlice("features.unseen").AppendEmpty().SetStr("city")
	sp.Attributes().PutBool("ai.tokenization.truncated", true)

	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	resource(rl.Resource())
	lr := rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	lr.SetTimestamp(stamp(11))
	lr.SetSeverityText("Error")
	lr.Body().SetStr("model failed")
	lr.SetTraceID(pcommon.TraceID{1})
	lr.Attributes().PutStr("code.function.name", "chat.run")
	lr.Attributes().PutInt("code.line.number", 7)

	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	resource(rm.Resource())
	ms := rm.ScopeMetrics().AppendEmpty().Metrics()
	gauge := ms.AppendEmpty()
	gauge.SetName("queue.wait")
	gauge.SetUnit("s")
	counter := ms.AppendEmpty()
	counter.SetName("requests")
	sum := counter.SetEmptySum()
	sum.SetIsMonotonic(true)
	sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	hist := ms.AppendEmpty()
	hist.SetName("http.server.request.duration")
	hist.SetUnit("s")
	h := hist.SetEmptyHistogram()
	h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	gauges := gauge.SetEmptyGauge().DataPoints()
	for _, second := range []int{0, 30, 60} { // the last lies outside
		dp := gauges.AppendEmpty()
		dp.SetTimestamp(stamp(second))
		dp.SetDoubleValue(float64(second))
		cp := sum.DataPoints().AppendEmpty()
		cp.SetStartTimestamp(stamp(-60))
		cp.SetTimestamp(stamp(second))
		cp.SetIntValue(int64(second))
		hp := h.DataPoints().AppendEmpty()
		hp.SetStartTimestamp(stamp(-60))
		hp.SetTimestamp(stamp(second))
		hp.ExplicitBounds().FromRaw([]float64{1})
		hp.BucketCounts().FromRaw([]uint64{1, uint64(second)})
		hp.SetCount(uint64(second) + 1)
		hp.SetSum(float64(second))
	}

	var conv record.Converter
	ctx := t.Context()
	received := at.UnixNano()
	if err := records.Append(ctx, store.Batch{Seq: 1, Rows: conv.Spans(td, 1, received)}); err != nil {
		t.Fatal(err)
	}
	if err := records.Append(ctx, store.Batch{Seq: 2, Rows: conv.Logs(ld, 2, received)}); err != nil {
		t.Fatal(err)
	}
	if rejected, err := samples.AppendMetrics(ctx, md); err != nil || len(rejected) > 0 {
		t.Fatal(rejected, err)
	}
	if err := records.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	return New(storetest.Volatile(records), samples), at
}

func TestSource(t *testing.T) {
	src, at := testSource(t)
	ctx := t.Context()
	r := sensor.Range{From: at.UnixNano(), To: at.Add(time.Minute).UnixNano()}

	var spans []sensor.Span
	if err := src.Spans(ctx, r, func(s sensor.Span) error { spans = append(spans, s); return nil }); err != nil {
		t.Fatal(err)
	}
	if len(spans) != 1 {
		t.Fatalf("%d spans", len(spans))
	}
	if s := spans[0]; s.Service != "chat" || s.Pod != "chat-1" || s.Node != "node-a" || s.Name != "POST /chat" || s.Kind != "server" ||
		!s.Error || s.Duration != 2e9 || s.Start != at.Add(10*time.Second).UnixNano() || s.Parent != "0300000000000000" ||
		s.Version != "v2" || !maps.Equal(s.Attributes, map[string]string{
		"gen_ai.request.model": "m1", "features.deviations.age": "1.5", "features.unseen": `["city"]`, "ai.tokenization.truncated": "true",
	}) {
		t.Errorf("span %+v", s)
	}

	var logs []sensor.Log
	if err := src.Logs(ctx, r, func(l sensor.Log) error { logs = append(logs, l); return nil }); err != nil {
		t.Fatal(err)
	}
	if len(logs) != 1 {
		t.Fatalf("%d log records", len(logs))
	}
	if l := logs[0]; l.Body != "model failed" || l.Severity != 17 || l.Code != "chat.run#7" || l.TraceID != spans[0].TraceID || l.Pod != "chat-1" || l.Version != "v2" {
		t.Errorf("log record %+v", l)
	}

	got := map[string]string{}
	if err := src.Samples(ctx, r, func(s sensor.Series) error {
		text := s.Unit + " counter=" + strconv.FormatBool(s.Counter)
		for _, p := range s.Points {
			text += " " + strconv.FormatFloat(p.Value, 'g', -1, 64)
		}
		got[s.Name] = text
		if s.Labels["service.name"] != "chat" || s.Labels["k8s.pod.name"] != "chat-1" {
			t.Errorf("%s has the labels %v", s.Name, s.Labels)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"queue_wait_seconds": "s counter=false 0 30",
		"requests_total":     " counter=true 0 30",
		"http_server_request_duration_seconds_bucket": "s counter=true 1 1",
		"http_server_request_duration_seconds_count":  "1 counter=true 1 31",
		"http_server_request_duration_seconds_sum":    "s counter=true 0 30",
	}
	for name, text := range want {
		if got[name] != text {
			t.Errorf("%s: got %q, want %q", name, got[name], text)
		}
	}
	if len(got) != len(want) {
		t.Errorf("series %v", got)
	}
}

func TestDescribe(t *testing.T) {
	src, at := testSource(t)
	r := sensor.Range{From: at.Add(-5 * time.Minute).UnixNano(), To: at.Add(5 * time.Minute).UnixNano()}
	cov, err := src.Describe(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	minute := sensor.Range{From: at.UnixNano(), To: at.Add(time.Minute).UnixNano()}
	for _, c := range cov {
		want := []sensor.Range{minute}
		if c.Quadrant == record.QuadrantMetrics { // its last point begins the next minute
			want = []sensor.Range{{From: minute.From, To: at.Add(2 * time.Minute).UnixNano()}}
		}
		// PromQL's ranges are open at their start, so a point on the minute counts
		// for the minute before as well.
		if c.Quadrant == record.QuadrantMetrics && len(c.Ranges) == 1 && c.Ranges[0].From <= minute.From && c.Ranges[0].To >= minute.To {
			continue
		}
		if c.Unavailable != "" || !slices.Equal(c.Ranges, want) {
			t.Errorf("%s: %q, ranges %v, want %v", c.Quadrant, c.Unavailable, c.Ranges, want)
		}
	}
	if len(cov) != 3 {
		t.Errorf("%d coverages", len(cov))
	}
}

func TestUnits(t *testing.T) {
	f := func(name, want string) {
		t.Helper()
		if got := unitOf(name); got != want {
			t.Errorf("unitOf(%q) = %q, want %q", name, got, want)
		}
	}
	f("process_cpu_seconds_total", "s")
	f("queue_wait_milliseconds", "ms")
	f("memory_usage_bytes", "By")
	f("io_bytes_per_second", "By/s")
	f("requests_total", "")
	f("tokens_per_request", "")
	f("temperature_celsius", "Cel")
}

func TestNoted(t *testing.T) {
	records, err := local.OpenRecords(local.RecordsOptions{Dir: t.TempDir(), MinFreeBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := records.Close(); err != nil {
			t.Error(err)
		}
	})
	at := time.Now().UTC().Truncate(time.Second).Add(-time.Hour)
	row := func(second int, text string) record.Row {
		return record.Row{
			Time:   at.Add(time.Duration(second) * time.Second).UnixNano(),
			Stream: []record.Field{{Name: record.FieldType, Value: string(record.TypeFinding)}, {Name: "service.name", Value: "ranker"}},
			Fields: []record.Field{{Name: record.FieldFinding, Value: text}, {Name: record.FieldSeq, Value: "1"}},
		}
	}
	rows := []record.Row{row(2, `{"kind":"file_changed","onset":"2026-01-01T00:00:00Z"}`), row(1, `{"kind":"path_symlink"}`), row(60, `{"kind":"later"}`)}
	if err := records.Append(t.Context(), store.Batch{Seq: 1, Rows: rows}); err != nil {
		t.Fatal(err)
	}
	if err := records.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	src := New(storetest.Volatile(records), nil)
	got := ""
	take := func(n sensor.Noted) error {
		got += n.Service + " " + n.Finding.Kind + ";"
		return nil
	}
	r := sensor.Range{From: at.UnixNano(), To: at.Add(time.Minute).UnixNano()}
	if err := src.Noted(t.Context(), r, take); err != nil || got != "ranker path_symlink;ranker file_changed;" {
		t.Errorf("%q, %v", got, err)
	}
	if err := records.Append(t.Context(), store.Batch{Seq: 2, Rows: []record.Row{row(3, `{`)}}); err != nil {
		t.Fatal(err)
	}
	if err := records.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := src.Noted(t.Context(), r, take); err == nil {
		t.Error("a finding that cannot be read passes")
	}
}
