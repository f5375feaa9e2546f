package recorder

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"

	"inquest/admit"
	"inquest/admit/event"
	"inquest/admit/event/eventtest"
	"inquest/record"
	"inquest/schema"
)

func validator(t *testing.T, schemaJSON []byte) *admit.Policy {
	t.Helper()
	v, err := event.New(schemaJSON)
	if err != nil {
		t.Fatal(err)
	}
	return &admit.Policy{Events: v}
}

// eventBatch holds events n apiece for each kind, of which the broken ones lack
// what the published schema requires.
func eventBatch(t *testing.T, rng *rand.Rand, good, broken int) plog.Logs {
	t.Helper()
	ld := plog.NewLogs()
	lrs := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
	add := func(e map[string]any, i int) {
		t.Helper()
		e["timestamp"] = time.Now().UTC().Format(time.RFC3339Nano)
		e["n"] = i
		body, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		lrs.AppendEmpty().Body().SetStr(string(body))
	}
	for i := range good {
		add(eventtest.Good(rng, i).Members, i)
	}
	for i := range broken {
		e := eventtest.Good(rng, good+i).Members
		delete(e, "trace_id")
		add(e, good+i)
	}
	return ld
}

func TestRedrive(t *testing.T) {
	dir := t.TempDir()
	start := func(schemaJSON []byte) *Recorder {
		t.Helper()
		parts := openParts(t, dir)
		parts.Policy = validator(t, schemaJSON)
		r, err := New(parts)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	rng := rand.New(rand.NewPCG(1, 2))
	r := start(schema.AIEvent())
	ctx, rep := admit.WithReport(t.Context())
	if err := r.Logs(ctx, eventBatch(t, rng, 20, 10)); err != nil {
		t.Fatal(err)
	}
	if rep.Rejected() != 10 {
		t.Errorf("%d rejected, want 10: %s", rep.Rejected(), rep.Message())
	}
	caughtUp(t, r)
	if got := letters(t, r); len(got) != 10 {
		t.Fatalf("%d letters, want 10", len(got))
	}
	for id, l := range letters(t, r) {
		if l[record.FieldLetterReason] != "schema.required" || l[record.FieldLetterKind] != "event" || l[record.FieldLetterRule] != "/required" {
			t.Errorf("letter %s: %s, %s, %s", id, l[record.FieldLetterReason], l[record.FieldLetterKind], l[record.FieldLetterRule])
		}
	}
	// With the same schema nothing changes.
	out, err := r.Redrive(t.Context(), admit.LetterFilter{})
	if err != nil || out.Letters != 10 || out.Done != 0 || out.Refused["schema.required"] != 10 {
		t.Errorf("got %+v, %v", out, err)
	}
	closeRecorder(t, r)

	relaxed := bytes.Replace(schema.AIEvent(), []byte(`"trace_id", "span_id", "business"`), []byte(`"span_id", "business"`), 1)
	r = start(relaxed)
	f := admit.LetterFilter{Reason: "schema.required", Kind: "event"}
	if out, err = r.Redrive(t.Context(), f); err != nil || out.Done != 10 || out.Records != 10 || len(out.Refused) != 0 {
		t.Errorf("got %+v, %v", out, err)
	}
	if out, err = r.Redrive(t.Context(), admit.LetterFilter{}); err != nil || out.Letters != 0 {
		t.Errorf("letters are left: %+v, %v", out, err)
	}
	closeRecorder(t, r)
	r = start(relaxed)
	defer closeRecorder(t, r)
	caughtUp(t, r)
	counts := map[int]int{}
	for n, c := range storedField(t, r, record.TypeLog, "ai.n") {
		counts[n] = c
	}
	checkExact(t, "events", numbers(0, 30), counts)
	if len(counts) != 30 {
		t.Errorf("%d events stored, want 30", len(counts))
	}
}

func TestDiscard(t *testing.T) {
	r := open(t, t.TempDir())
	defer closeRecorder(t, r)
	ld := logBatch(time.Now(), 0, 3)
	for _, lr := range ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().All() {
		lr.SetTimestamp(farFuture)
	}
	if err := r.Logs(t.Context(), ld); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Discard(t.Context(), admit.LetterFilter{}, " "); err == nil {
		t.Error("discarded without a reason")
	}
	if n, err := r.Discard(t.Context(), admit.LetterFilter{IDs: []string{"1-1"}}, "a test"); err != nil || n != 1 {
		t.Errorf("discarded %d, %v; want 1", n, err)
	}
	if n, err := r.Discard(t.Context(), admit.LetterFilter{Service: "gateway"}, "a test"); err != nil || n != 2 {
		t.Errorf("discarded %d, %v; want 2", n, err)
	}
	if n, err := r.Discard(t.Context(), admit.LetterFilter{}, "a test"); err != nil || n != 0 {
		t.Errorf("discarded %d, %v; want 0", n, err)
	}
}
