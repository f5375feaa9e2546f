package event

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"inquest/admit/event/eventtest"
	"inquest/schema"
)

const received = 1796040000_000000000

func newValidator(t testing.TB) *Validator {
	t.Helper()
	v, err := New(schema.AIEvent())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func source() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

// dump writes all that a log record holds, in an order of its own.
func dump(lr plog.LogRecord) string {
	var b strings.Builder
	line := func(name string, v any) { fmt.Fprintf(&b, "%s: %v\n", name, v) }
	line("time", lr.Timestamp().AsTime().Format("2006-01-02T15:04:05.999999999Z07:00"))
	line("observed", uint64(lr.ObservedTimestamp()))
	line("severity", fmt.Sprintf("%d %q", lr.SeverityNumber(), lr.SeverityText()))
	trace, span := lr.TraceID(), lr.SpanID()
	line("trace", hex.EncodeToString(trace[:]))
	line("span", hex.EncodeToString(span[:]))
	line("event name", lr.EventName())
	line("body", typed(lr.Body()))
	attrs := map[string]string{}
	for name, v := range lr.Attributes().All() {
		if _, again := attrs[name]; again {
			name += " (again)"
		}
		attrs[name] = typed(v)
	}
	for _, name := range slices.Sorted(maps.Keys(attrs)) {
		line(name, attrs[name])
	}
	return b.String()
}

func typed(v pcommon.Value) string {
	text, _ := json.Marshal(v.AsRaw())
	if text == nil {
		text = fmt.Append(nil, v.AsRaw())
	}
	return v.Type().String() + " " + string(text)
}

func clone(lr plog.LogRecord) plog.LogRecord {
	c := plog.NewLogRecord()
	lr.CopyTo(c)
	return c
}

// byLibrary is Check without the fast path.
func byLibrary(v *Validator, resource pcommon.Resource, lr plog.LogRecord) *Reason {
	w := new(worker)
	w.reset(v.plan)
	if why := v.slow(w, resource, lr); why != nil {
		return why
	}
	if _, why := w.verify(lr); why != nil {
		return why
	}
	w.store(resource, lr, received, false, true)
	return nil
}

// isFast tells whether the fast path accepts an event.
func isFast(v *Validator, resource pcommon.Resource, lr plog.LogRecord) bool {
	w := new(worker)
	w.reset(v.plan)
	return w.fast(resource, lr) && w.decode()
}

// forms are an event as it can come.
func forms(e eventtest.Event) map[string]plog.LogRecord {
	f := map[string]plog.LogRecord{"body": e.BodyRecord()}
	if e.HasAttributes() {
		f["map"], f["attributes"] = e.MapRecord(), e.AttributeRecord()
	}
	return f
}
