package recorder

import (
	"testing"
	"time"

	"inquest/admit/decision"
	"inquest/record"
	"inquest/store"
)

// Decisions are told in the stores, also when the journal is applied again.
func TestDecisions(t *testing.T) {
	table, err := decision.LoadTable()
	if err != nil {
		t.Fatal(err)
	}
	recogniser, err := decision.New(table)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cfg := testConfig(dir)
	cfg.Decisions = recogniser
	r, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ld := logBatch(time.Now(), 0, 3)
	records := ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords()
	records.At(0).Body().SetStr("falling back to llama-3-8b: primary timed out")
	records.At(1).Body().SetStr("served 12 requests")
	if err := r.Logs(t.Context(), ld); err != nil {
		t.Fatal(err)
	}
	td := spanBatch(time.Now(), 0, 2)
	td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).SetName("retry completion")
	if err := r.Traces(t.Context(), td); err != nil {
		t.Fatal(err)
	}
	check := func() {
		t.Helper()
		caughtUp(t, r)
		for _, query := range []string{
			`{record.type="log"} "` + decision.AttributeType + `":=fallback`,
			`{record.type="span"} "` + decision.AttributeSpanType + `":=retry`,
		} {
			found := 0
			if err := r.Records().QueryRecords(t.Context(), store.RecordQuery{LogsQL: query}, func([]record.Field) error {
				found++
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if found != 1 {
				t.Errorf("%s finds %d records, want 1", query, found)
			}
		}
	}
	check()
	closeRecorder(t, r)
	if r, err = Open(cfg); err != nil {
		t.Fatal(err)
	}
	defer closeRecorder(t, r)
	check()
}
