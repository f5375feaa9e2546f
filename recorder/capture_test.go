package recorder

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"

	"inquest/admit"
	"inquest/admit/event/eventtest"
	"inquest/admit/redact"
	"inquest/record"
	"inquest/schema"
	"inquest/store"
	"inquest/store/payload"
)

// moodyStore is a payload store that works, fails or hangs.
type moodyStore struct {
	payload.Store // nil: only these methods are called
	mood          atomic.Int32
	puts          atomic.Int32
	mu            sync.Mutex
	kept          []string
}

const (
	works = iota
	fails
	hangs
)

func (m *moodyStore) Put(ctx context.Context, _ payload.Sum, _ payload.Meta, content []byte) (payload.Sum, error) {
	m.puts.Add(1)
	switch m.mood.Load() {
	case fails:
		return payload.Sum{}, errors.New("the test refuses")
	case hangs:
		<-ctx.Done()
		return payload.Sum{}, ctx.Err()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept = append(m.kept, string(content))
	return payload.SumOf(content), nil
}

func (m *moodyStore) Close() error { return nil }

func inputEvents(t *testing.T, texts ...string) plog.Logs {
	t.Helper()
	ld := plog.NewLogs()
	lrs := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
	for i, text := range texts {
		e := eventtest.Good(rand.New(rand.NewPCG(7, uint64(i))), i).Members
		e["timestamp"] = time.Now().UTC().Format(time.RFC3339Nano)
		e["service"], e["message"] = "chat", text
		sum := sha256.Sum256([]byte(text))
		business := e["business"].(map[string]any)
		business["input"], business["input_hash"] = text, hex.EncodeToString(sum[:])
		body, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		lrs.AppendEmpty().Body().SetStr(string(body))
	}
	return ld
}

func captureRecorder(t *testing.T, m *moodyStore, required bool) *Recorder {
	t.Helper()
	capture, err := redact.NewCapture(redact.CaptureConfig{Policies: []redact.Policy{{Services: []string{"chat"}}}})
	if err != nil {
		t.Fatal(err)
	}
	parts := openParts(t, t.TempDir())
	parts.Policy = validator(t, schema.AIEvent())
	parts.Payloads = &Payloads{Store: m, Capture: capture, Required: required, Wait: 50 * time.Millisecond}
	r, err := New(parts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeRecorder(t, r) })
	return r
}

// countRows returns how many records a filter finds.
func countRows(t *testing.T, r *Recorder, filter string) int {
	t.Helper()
	caughtUp(t, r)
	n := 0
	err := r.Records().QueryRecords(t.Context(), store.RecordQuery{LogsQL: filter}, func([]record.Field) error { n++; return nil })
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// An event whose payload the store does not take is acknowledged and recorded
// without it, soon, and says so.
func TestPayloadStoreFails(t *testing.T) {
	for name, mood := range map[string]int32{"Fails": fails, "Hangs": hangs} {
		t.Run(name, func(t *testing.T) {
			m := &moodyStore{}
			r := captureRecorder(t, m, false)
			var told atomic.Int32
			r.opts.Payloads.OnMissing = func(service string, err error) {
				if service != "chat" || err == nil {
					t.Errorf("told of %q, %v", service, err)
				}
				told.Add(1)
			}
			send := func(texts ...string) {
				t.Helper()
				began := time.Now()
				if err := r.Logs(t.Context(), inputEvents(t, texts...)); err != nil {
					t.Error(err)
				}
				if took := time.Since(began); took > 5*time.Second {
					t.Errorf("it took %s", took)
				}
			}
			const missing = `{record.type="log"} "payload.missing":=unavailable "payload.sha256":"" "input.size":>0`
			send("one")
			m.mood.Store(mood)
			send("two", "three")
			tried := m.puts.Load()
			send("four") // the store is left alone
			if n := m.puts.Load(); n != tried {
				t.Errorf("it was tried %d times more", n-tried)
			}
			if n := countRows(t, r, missing); n != 3 {
				t.Errorf("%d events say that their payload is missing, want 3", n)
			}
			if n := r.Stats().MissingPayloads; n != 3 || told.Load() != 3 {
				t.Errorf("%d counted, %d told, want 3", n, told.Load())
			}
			m.mood.Store(works)
			r.opts.Payloads.resume.Store(1) // the pause is over
			send("five")
			send("six")
			if n := countRows(t, r, `{record.type="log"} "payload.sha256":*`); n != 3 {
				t.Errorf("%d events name a payload, want 3", n)
			}
			if got := strings.Join(m.kept, " "); got != "one five six" {
				t.Errorf("kept: %s", got)
			}
			if n := countRows(t, r, `{record.type="log"} "ai.business.input":*`); n != 0 {
				t.Errorf("%d events hold their input", n)
			}
		})
	}
}

// Where payloads are required, the sender keeps the event until one is kept.
func TestPayloadRequired(t *testing.T) {
	m := &moodyStore{}
	m.mood.Store(fails)
	r := captureRecorder(t, m, true)
	if err := r.Logs(t.Context(), inputEvents(t, "one")); err == nil {
		t.Error("acknowledged without its payload")
	}
	if n := countRows(t, r, `{record.type="log"}`); n != 0 {
		t.Errorf("%d events stored", n)
	}
	m.mood.Store(works)
	r.opts.Payloads.resume.Store(0)
	if err := r.Logs(t.Context(), inputEvents(t, "one")); err != nil {
		t.Error(err)
	}
	if n := countRows(t, r, `{record.type="log"} "payload.sha256":*`); n != 1 {
		t.Errorf("%d events stored", n)
	}
}

// A dead letter stays while its payload cannot be kept: it has the input.
func TestRedriveWaitsForPayloads(t *testing.T) {
	m := &moodyStore{}
	r := captureRecorder(t, m, false)
	ld := inputEvents(t, "one")
	lr := ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0)
	lr.Body().SetStr(strings.Replace(lr.Body().Str(), `"trace_id"`, `"x_trace_id"`, 1))
	if err := r.Logs(t.Context(), ld); err != nil {
		t.Fatal(err)
	}
	relaxed := strings.Replace(string(schema.AIEvent()), `"trace_id", "span_id", "business"`, `"span_id", "business"`, 1)
	r.opts.Policy = validator(t, []byte(relaxed))
	m.mood.Store(fails)
	if out, err := r.Redrive(t.Context(), admit.LetterFilter{}); err == nil || out.Done != 0 {
		t.Errorf("re-driven without its payload: %+v, %v", out, err)
	}
	m.mood.Store(works)
	r.opts.Payloads.resume.Store(0)
	if out, err := r.Redrive(t.Context(), admit.LetterFilter{}); err != nil || out.Done != 1 {
		t.Errorf("got %+v, %v", out, err)
	}
	if n := countRows(t, r, `{record.type="log"} "payload.sha256":*`); n != 1 {
		t.Errorf("%d events stored", n)
	}
}
