package record

import (
	"fmt"
	"testing"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// checkRow holds a row against what Row promises.
func checkRow(t *testing.T, r Row) {
	t.Helper()
	for i := 1; i < len(r.Stream); i++ {
		if r.Stream[i].Name <= r.Stream[i-1].Name {
			t.Errorf("stream is not sorted: %q", r.Stream)
		}
	}
	if len(r.Fields) > MaxFields {
		t.Errorf("%d fields", len(r.Fields))
	}
	for name, value := range fieldMap(t, r) {
		if name == "" || len(name) > MaxNameSize || !utf8.ValidString(name) || !utf8.ValidString(value) {
			t.Errorf("bad field %q: %q", name, value)
		}
	}
}

func FuzzConvert(f *testing.F) {
	logs, _ := (&plog.ProtoMarshaler{}).MarshalLogs(sampleLogs(2))
	spans, _ := (&ptrace.ProtoMarshaler{}).MarshalTraces(sampleSpans())
	metrics, _ := (&pmetric.ProtoMarshaler{}).MarshalMetrics(sampleExemplars())
	f.Add(logs)
	f.Add(spans)
	f.Add(metrics)
	c := new(Converter)
	f.Fuzz(func(t *testing.T, data []byte) {
		if ld, err := (&plog.ProtoUnmarshaler{}).UnmarshalLogs(data); err == nil {
			rows := c.Logs(ld, 1, received)
			if len(rows) != ld.LogRecordCount() {
				t.Errorf("%d rows of %d records", len(rows), ld.LogRecordCount())
			}
			for _, r := range rows {
				checkRow(t, r)
				if _, err := ParseLog(stored(r)); err != nil {
					t.Error(err)
				}
			}
			if again := new(Converter).Logs(ld, 1, received); fmt.Sprint(again) != fmt.Sprint(rows) {
				t.Error("the same data gave other rows")
			}
		}
		if td, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(data); err == nil {
			for _, r := range c.Spans(td, 1, received) {
				checkRow(t, r)
				if _, err := ParseSpan(stored(r)); err != nil {
					t.Error(err)
				}
			}
		}
		if md, err := (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics(data); err == nil {
			for _, r := range c.Exemplars(md, 1, received) {
				checkRow(t, r)
				if _, err := ParseExemplar(stored(r)); err != nil {
					t.Error(err)
				}
			}
		}
	})
}
