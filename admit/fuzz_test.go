package admit

import (
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"inquest/record"
)

// FuzzAdmit decodes data as each signal and checks that what is admitted can be
// stored, that the counts agree, and that a second look refuses nothing.
func FuzzAdmit(f *testing.F) {
	logs, _ := (&plog.ProtoMarshaler{}).MarshalLogs(goodLogs(2))
	f.Add(logs)
	td := ptrace.NewTraces()
	sp := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	sp.SetTraceID(pcommon.TraceID{1})
	sp.SetSpanID(pcommon.SpanID{1})
	sp.SetStartTimestamp(at(arrival))
	nest(sp.Attributes().PutEmpty("k"), 3)
	sp.Events().AppendEmpty().SetName("e")
	spans, _ := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	f.Add(spans)
	for _, fill := range []func(pmetric.Metric){
		func(m pmetric.Metric) { gauge(m).Exemplars().AppendEmpty().SetIntValue(1) },
		func(m pmetric.Metric) { sum(m) },
		func(m pmetric.Metric) { histogram(m, []float64{1}, []uint64{1, 2}) },
		func(m pmetric.Metric) { exponential(m, 3, 1, 0, 1, 2) },
		func(m pmetric.Metric) { summary(m, 0.5) },
	} {
		md := pmetric.NewMetrics()
		m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
		m.SetName("m")
		fill(m)
		data, _ := (&pmetric.ProtoMarshaler{}).MarshalMetrics(md)
		f.Add(data)
	}
	var c record.Converter
	f.Fuzz(func(t *testing.T, data []byte) {
		storable := func(rows []record.Row, kept int) {
			t.Helper()
			if len(rows) != kept {
				t.Errorf("%d rows of %d kept", len(rows), kept)
			}
			for _, r := range rows {
				if r.Size() > record.MaxRowSize || r.Time < bounds.Earliest.UnixNano() || r.Time > bounds.Latest.UnixNano() {
					t.Errorf("a row of time %d and %d bytes was kept", r.Time, r.Size())
				}
			}
		}
		counts := func(total, kept, left int, rep *Report) {
			t.Helper()
			if kept != left || kept+rep.Rejected() != total || len(rep.Message()) > maxMessage {
				t.Errorf("kept %d, left %d, rejected %d of %d: %s", kept, left, rep.Rejected(), total, rep.Message())
			}
		}
		if ld, err := (&plog.ProtoUnmarshaler{}).UnmarshalLogs(data); err == nil {
			total, rep := ld.LogRecordCount(), &Report{}
			kept := Logs(ld, bounds, received, rep)
			counts(total, kept, ld.LogRecordCount(), rep)
			storable(c.Logs(ld, 1, received), kept)
			counts(kept, Logs(ld, bounds, received, nil), kept, nil)
		}
		if td, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(data); err == nil {
			total, rep := td.SpanCount(), &Report{}
			kept := Spans(td, bounds, received, rep)
			counts(total, kept, td.SpanCount(), rep)
			storable(c.Spans(td, 1, received), kept)
			counts(kept, Spans(td, bounds, received, nil), kept, nil)
		}
		if md, err := (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics(data); err == nil {
			total, rep := md.DataPointCount(), &Report{}
			kept := Metrics(md, bounds, received, rep)
			counts(total, kept, md.DataPointCount(), rep)
			rows := c.Exemplars(md, 1, received)
			storable(rows, len(rows))
			counts(kept, Metrics(md, bounds, received, nil), kept, nil)
		}
	})
}
