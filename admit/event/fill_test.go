package event

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"inquest/admit/event/eventtest"
)

var update = flag.Bool("update", false, "rewrite the golden files of testdata")

// TestStored compares stored forms with golden files.
func TestStored(t *testing.T) {
	v := newValidator(t)
	f := func(name, service string, lr plog.LogRecord) {
		t.Helper()
		resource := pcommon.NewResource()
		if service != "" {
			resource.Attributes().PutStr("service.name", service)
		}
		slow := clone(lr)
		if why := v.Check(resource, lr, received); why != nil {
			t.Fatalf("%s: %+v", name, *why)
		}
		got, file := dump(lr), filepath.Join("testdata", name+".golden")
		if why := byLibrary(v, resource, slow); why != nil {
			t.Fatalf("%s: by the library %+v", name, *why)
		}
		// The library's path is given no time of receipt.
		slow.SetObservedTimestamp(lr.ObservedTimestamp())
		if dump(slow) != got {
			t.Errorf("%s: stored\n%s\nby the library\n%s", name, got, dump(slow))
		}
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s: stored\n%s\nwant\n%s", name, got, want)
		}
	}
	event := func(i int) eventtest.Event { return eventtest.Good(source(), i) }
	f("body", "", event(4).BodyRecord())
	f("attributes", "chat-api", event(7).AttributeRecord())

	// A line of JSON with members of its own, at a service that its resource names.
	e := event(2)
	e.Members["service"] = "chat-api"
	e.Members["tenant"] = map[string]any{"name": "acme", "plan": nil, "tags": []any{"a", "b"}, "limits": map[string]any{}}
	e.Members["chunks"] = []any{map[string]any{"text": "Hi", "n": int64(1)}, []any{1.5}}
	lr, service, why := FromJSON(e.JSON())
	if why != nil {
		t.Fatal(*why)
	}
	f("line", service, lr)

	// All that can be filled in comes from the log record.
	e = event(5)
	for _, name := range []string{"timestamp", "level", "service", "trace_id", "span_id", "event", "message"} {
		delete(e.Members, name)
	}
	full := func(lr plog.LogRecord) plog.LogRecord {
		lr.SetTimestamp(received - 5e9)
		lr.SetObservedTimestamp(received - 4e9)
		lr.SetSeverityNumber(plog.SeverityNumberWarn2)
		lr.SetSeverityText("W2")
		lr.SetTraceID(pcommon.TraceID{1, 15: 2})
		lr.SetSpanID(pcommon.SpanID{3, 7: 4})
		lr.SetEventName("ai.egress")
		return lr
	}
	lr = full(e.AttributeRecord())
	lr.Body().SetStr("answer sent")
	f("filled_attributes", "gateway", lr)
	f("filled_body", "gateway", full(e.BodyRecord()))
	f("filled_map", "gateway", full(e.MapRecord()))

	// What the record says otherwise than the event is kept beside it.
	e = event(3)
	lr = full(e.AttributeRecord())
	lr.SetEventName("model.started")
	lr.Body().SetStr("another message")
	lr.Attributes().PutStr("thread", "worker-3")
	f("otherwise", "chat-api", lr)

	// One event in two parts: the body, and attributes that a library adds.
	e = event(6)
	lr = e.BodyRecord()
	lr.Attributes().PutStr("ai.tenant", "acme")
	lr.Attributes().PutStr("ai.system.device", "cuda:0")
	f("two_parts", "", lr)

	// Lists, objects and null as text, for libraries whose attributes are plain.
	e = event(2)
	lr = e.AttributeRecord()
	lr.Attributes().PutStr("ai.computation.input_stats.shape", "[1, 512] ")
	lr.Attributes().PutStr("ai.computation.input_stats.min_val", "null")
	lr.Attributes().PutStr("ai.features", `{"deviations":{"user.age":1.5},"unseen":[]}`)
	lr.Attributes().RemoveIf(func(name string, _ pcommon.Value) bool { return strings.HasPrefix(name, "ai.features.") })
	f("as_text", "", lr)
}

func TestFill(t *testing.T) {
	v := newValidator(t)
	bare := func() plog.LogRecord {
		e := eventtest.Good(source(), 1)
		for _, name := range []string{"timestamp", "level", "event"} {
			delete(e.Members, name)
		}
		lr := e.BodyRecord()
		lr.SetTimestamp(received)
		lr.SetSeverityNumber(9)
		return lr
	}
	f := func(edit func(lr plog.LogRecord), wantRule string, wantNumber plog.SeverityNumber, wantTime pcommon.Timestamp) {
		t.Helper()
		lr := bare()
		edit(lr)
		why := v.Check(pcommon.NewResource(), lr, received)
		if why != nil {
			if why.Rule != wantRule {
				t.Errorf("%+v, want %s", *why, wantRule)
			}
			return
		}
		if wantRule != "" || lr.SeverityNumber() != wantNumber || lr.Timestamp() != wantTime {
			t.Errorf("accepted; severity %d, time %d, want %q, %d, %d", lr.SeverityNumber(), lr.Timestamp(), wantRule, wantNumber, wantTime)
		}
	}
	text := func(s string) func(plog.LogRecord) {
		return func(lr plog.LogRecord) { lr.SetSeverityNumber(0); lr.SetSeverityText(s) }
	}
	f(func(plog.LogRecord) {}, "", 9, received)
	f(func(lr plog.LogRecord) { lr.SetSeverityNumber(24) }, "", 24, received)
	f(func(lr plog.LogRecord) { lr.SetSeverityNumber(25) }, "/required", 0, 0)
	f(text("Warning"), "", 13, received)
	f(text("critical"), "", 21, received)
	f(text("debug"), "", 5, received)
	f(text("notice"), "/properties/level/enum", 0, 0)
	f(text(""), "/required", 0, 0)
	f(func(lr plog.LogRecord) { lr.SetTimestamp(0); lr.SetObservedTimestamp(7) }, "", 9, 7)
	f(func(lr plog.LogRecord) { lr.SetTimestamp(0) }, "/required", 0, 0)
	f(func(lr plog.LogRecord) { lr.SetEventName("ai.training") }, "/properties/event/enum", 0, 0)
	f(func(lr plog.LogRecord) { lr.SetEventName("ai.") }, "", 9, received)
	f(func(lr plog.LogRecord) { lr.SetEventName("other") }, "", 9, received)
	f(func(lr plog.LogRecord) { lr.Attributes().PutStr("request.id", "r-00000001") }, "", 9, received)
	f(func(lr plog.LogRecord) { lr.Attributes().PutStr("request.id", "r-2") }, "/properties/req_id", 0, 0)
}

// TestParts are attributes and bodies that contradict one another or themselves.
func TestParts(t *testing.T) {
	v := newValidator(t)
	f := func(lr plog.LogRecord, edit func(lr plog.LogRecord), wantCode string) {
		t.Helper()
		edit(lr)
		before := dump(lr)
		why := v.Check(pcommon.NewResource(), lr, 0)
		if wantCode == "" && why != nil || wantCode != "" && (why == nil || why.Code != wantCode) {
			t.Errorf("%+v, want %q", why, wantCode)
		}
		if why != nil && dump(lr) != before {
			t.Errorf("changed from\n%s\nto\n%s", before, dump(lr))
		}
	}
	e := eventtest.Good(source(), 1)
	put := func(name, value string) func(plog.LogRecord) {
		return func(lr plog.LogRecord) { lr.Attributes().PutStr(name, value) }
	}
	// again adds an attribute whose name another has.
	again := func(name, value string) func(plog.LogRecord) {
		return func(lr plog.LogRecord) { twoMaps(lr.Attributes(), name, value).MoveTo(lr.Attributes()) }
	}
	f(e.BodyRecord(), put("ai.level", e.Members["level"].(string)), "")
	f(e.BodyRecord(), put("ai.level", "other"), CodeConflict)
	f(e.BodyRecord(), put("ai.business", "other"), CodeConflict)
	f(e.AttributeRecord(), put("ai.req_id.x", "1"), CodeConflict)
	f(e.AttributeRecord(), put("ai.system", "1"), CodeConflict)
	f(e.AttributeRecord(), put("ai.mine.a", "1"), "")
	f(e.AttributeRecord(), func(lr plog.LogRecord) { put("ai.mine", "1")(lr); put("ai.mine.a", "1")(lr) }, CodeConflict)
	f(e.AttributeRecord(), func(lr plog.LogRecord) { put("ai.mine.a", "1")(lr); put("ai.mine", "1")(lr) }, CodeConflict)
	f(e.AttributeRecord(), func(lr plog.LogRecord) { lr.Attributes().PutEmpty("ai.mine"); put("ai.mine.a", "1")(lr) }, CodeConflict)
	f(e.AttributeRecord(), put("ai."+strings.Repeat("a.", 40)+"a", "1"), CodeDepth)
	f(e.AttributeRecord(), put("ai.", "1"), "")
	f(e.AttributeRecord(), put("ai..x..", "1"), "")
	f(e.AttributeRecord(), again("ai.req_id", "r-00000001"), CodeDuplicate)
	f(e.AttributeRecord(), func(lr plog.LogRecord) { put("ai.mine", "1")(lr); again("ai.mine", "2")(lr) }, CodeDuplicate)
	f(e.AttributeRecord(), func(lr plog.LogRecord) { lr.Attributes().PutEmptyMap("ai.extra").PutInt("n", 1) }, "")
	f(e.AttributeRecord(), func(lr plog.LogRecord) { lr.Attributes().PutEmptyBytes("ai.extra").FromRaw([]byte{1}) }, "")
	f(e.AttributeRecord(), func(lr plog.LogRecord) { lr.Body().SetEmptyMap().PutStr("k", "v") }, "")
	f(e.MapRecord(), func(lr plog.LogRecord) {
		lr.Body().Map().PutStr("a.b", "1")
		lr.Body().Map().PutEmptyMap("a").PutStr("b", "2")
	}, CodeConflict)
	f(e.MapRecord(), func(lr plog.LogRecord) { nest(lr.Body().Map().PutEmpty("deep"), 40) }, CodeDepth)
	f(e.MapRecord(), func(lr plog.LogRecord) { twoMaps(lr.Body().Map(), "req_id", "r").MoveTo(lr.Body().Map()) }, CodeDuplicate)
}

// twoMaps returns m with one more entry, even where m has the name: nothing in
// the wire format forbids it.
func twoMaps(m pcommon.Map, name, value string) pcommon.Map {
	stand := strings.Repeat("?", len(name))
	ld := plog.NewLogs()
	attrs := ld.ResourceLogs().AppendEmpty().Resource().Attributes()
	m.CopyTo(attrs)
	attrs.PutStr(stand, value)
	data, _ := (&plog.ProtoMarshaler{}).MarshalLogs(ld)
	ld, _ = (&plog.ProtoUnmarshaler{}).UnmarshalLogs([]byte(strings.Replace(string(data), stand, name, 1)))
	return ld.ResourceLogs().At(0).Resource().Attributes()
}

func nest(v pcommon.Value, levels int) {
	for range levels {
		v = v.SetEmptySlice().AppendEmpty()
	}
	v.SetInt(1)
}
