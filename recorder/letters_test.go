package recorder

import (
	"maps"
	"strings"
	"testing"
	"time"

	"inquest/admit"
	"inquest/record"
	"inquest/store"
)

// letters returns the fields of the stored dead letters by id.
func letters(t *testing.T, r *Recorder) map[string]map[string]string {
	t.Helper()
	out := map[string]map[string]string{}
	err := r.Records().QueryRecords(t.Context(), store.RecordQuery{LogsQL: `{record.type="deadletter"}`}, func(fields []record.Field) error {
		m := map[string]string{}
		for _, f := range fields {
			m[strings.Clone(f.Name)] = strings.Clone(f.Value)
		}
		if _, ok := out[m[record.FieldLetterID]]; ok {
			t.Errorf("letter %q is stored twice", m[record.FieldLetterID])
		}
		out[m[record.FieldLetterID]] = m
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

const farFuture = 4_102_444_800_000_000_000 // the year 2100, in ns

// What is refused is kept whole, next to what was taken of the same request,
// and is there once after a restart.
func TestLettersAreKept(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir)
	ctx, rep := admit.WithReport(t.Context())
	rep.SetSource("test")
	ld := logBatch(time.Now(), 0, 3)
	lr := ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(1)
	lr.SetTimestamp(farFuture)
	lr.Attributes().PutStr("large", strings.Repeat("é", maxText))
	if err := r.Logs(ctx, ld); err != nil {
		t.Fatal(err)
	}
	// Without a report of its own, and with nothing that can be stored.
	td := spanBatch(time.Now(), 0, 1)
	td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).SetStartTimestamp(farFuture)
	md := pointBatch(time.Now(), 0, 2)
	md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(1).SetTimestamp(0)
	if err := r.Traces(t.Context(), td); err != nil {
		t.Fatal(err)
	}
	if err := r.Metrics(t.Context(), md); err != nil {
		t.Fatal(err)
	}
	check := func() {
		t.Helper()
		caughtUp(t, r)
		got := letters(t, r)
		reasons := map[string]int{}
		for _, l := range got {
			reasons[l[record.FieldLetterKind]+" "+l[record.FieldLetterReason]]++
		}
		if want := map[string]int{"log time.late": 1, "span time.late": 1, "point time.missing": 1}; !maps.Equal(reasons, want) {
			t.Errorf("letters %v, want %v", reasons, want)
		}
		l := got["1-0"]
		if l[record.FieldLetterSource] != "test" || l["service.name"] != "gateway" || l[record.FieldLetterTime] != "2100-01-01T00:00:00Z" || l[record.FieldLetterParts] != "2" {
			t.Errorf("letter of %s, %s parts", l["service.name"], l[record.FieldLetterParts])
		}
		if n := len(stored(t, r, record.TypeLog)); n != 2 {
			t.Errorf("%d log records stored, want 2", n)
		}
	}
	check()
	closeRecorder(t, r)
	r = open(t, dir)
	defer closeRecorder(t, r)
	check()
}

// maxText makes a letter of two parts.
const maxText = 500 << 10
