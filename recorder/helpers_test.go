package recorder

import (
	"context"
	"encoding/binary"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"inquest/record"
	"inquest/store"
)

func testConfig(dir string) Config {
	cfg := DefaultConfig()
	cfg.Dir = dir
	cfg.MinFreeBytes = 64 << 20
	return cfg
}

func open(t *testing.T, dir string) *Recorder {
	t.Helper()
	r, err := Open(testConfig(dir))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func closeRecorder(t *testing.T, r *Recorder) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := r.Close(ctx); err != nil {
		t.Error(err)
	}
}

// A batch of test data holds records numbered first to first+n-1; base is the
// time of number 0.

func logBatch(base time.Time, first, n int) plog.Logs {
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	rl.Resource().Attributes().PutStr("service.name", "gateway")
	lrs := rl.ScopeLogs().AppendEmpty().LogRecords()
	for i := first; i < first+n; i++ {
		lr := lrs.AppendEmpty()
		lr.SetTimestamp(stamp(base, i))
		lr.Body().SetStr("request done")
		lr.Attributes().PutInt("n", int64(i))
	}
	return ld
}

func spanBatch(base time.Time, first, n int) ptrace.Traces {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", "gateway")
	spans := rs.ScopeSpans().AppendEmpty().Spans()
	for i := first; i < first+n; i++ {
		var id [8]byte
		binary.BigEndian.PutUint64(id[:], uint64(i)+1)
		sp := spans.AppendEmpty()
		sp.SetTraceID(pcommon.TraceID{1, 15: 1})
		sp.SetSpanID(id)
		sp.SetName("chat")
		sp.SetStartTimestamp(stamp(base, i))
		sp.SetEndTimestamp(stamp(base, i+1))
		sp.Attributes().PutInt("n", int64(i))
	}
	return td
}

// pointBatch holds one series for each batch, each point with an exemplar.
func pointBatch(base time.Time, first, n int) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", "gateway")
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("tokens")
	dps := m.SetEmptyGauge().DataPoints()
	for i := first; i < first+n; i++ {
		dp := dps.AppendEmpty()
		dp.SetTimestamp(stamp(base, i))
		dp.SetIntValue(int64(i))
		dp.Attributes().PutStr("batch", strconv.Itoa(first))
		e := dp.Exemplars().AppendEmpty()
		e.SetTimestamp(stamp(base, i))
		e.SetIntValue(int64(i))
		e.FilteredAttributes().PutInt("n", int64(i))
	}
	return md
}

func stamp(base time.Time, i int) pcommon.Timestamp {
	return pcommon.NewTimestampFromTime(base.Add(time.Duration(i) * time.Millisecond))
}

// stored counts how often each number is in the stores, by type of record.
func stored(t *testing.T, r *Recorder, kind record.Type) map[int]int {
	t.Helper()
	return storedField(t, r, kind, "n")
}

func storedField(t *testing.T, r *Recorder, kind record.Type, name string) map[int]int {
	t.Helper()
	counts := map[int]int{}
	err := r.Records().QueryRecords(t.Context(), store.RecordQuery{
		LogsQL: fmt.Sprintf(`{%q=%q} | fields %q`, record.FieldType, string(kind), name),
	}, func(fields []record.Field) error {
		for _, f := range fields {
			if f.Name == name && f.Value != "" {
				n, err := strconv.Atoi(f.Value)
				if err != nil {
					return err
				}
				counts[n]++
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return counts
}

// storedPoints counts the stored points by their value.
func storedPoints(t *testing.T, r *Recorder) map[int]int {
	t.Helper()
	res, err := r.Samples().QueryInstant(t.Context(), `tokens[2h]`, time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	counts := map[int]int{}
	matrix, _ := res.Value.(promql.Matrix)
	for _, s := range matrix {
		for _, p := range s.Floats {
			counts[int(p.F)]++
		}
	}
	return counts
}

// checkExact fails when an acknowledged number is missing or any is there twice.
func checkExact(t *testing.T, what string, acked map[int]bool, counts map[int]int) {
	t.Helper()
	lost, twice := 0, 0
	for n := range acked {
		if counts[n] == 0 {
			lost++
		}
	}
	for _, c := range counts {
		if c > 1 {
			twice++
		}
	}
	if lost > 0 || twice > 0 {
		t.Errorf("%s: %d of %d acknowledged lost, %d stored more than once", what, lost, len(acked), twice)
	}
}

func caughtUp(t *testing.T, r *Recorder) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := r.CatchUp(ctx); err != nil {
		t.Fatal(err)
	}
}
