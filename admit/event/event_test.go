package event

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"inquest/admit/event/eventtest"
	"inquest/schema"
)

// TestGood sends good events in all forms. All give one stored form, by the fast
// path and by the library, and again when they come a second time.
func TestGood(t *testing.T) {
	v, rng, resource := newValidator(t), source(), pcommon.NewResource()
	for i := range 400 {
		e := eventtest.Good(rng, i)
		var first string
		for name, lr := range forms(e) {
			if !Recognise(lr) {
				t.Fatalf("%d %s is not recognised", i, name)
			}
			if !isFast(v, resource, lr) {
				t.Errorf("%d %s: the fast path refuses\n%s", i, name, dump(lr))
			}
			slow := clone(lr)
			if why := byLibrary(v, resource, slow); why != nil {
				t.Fatalf("%d %s: the library refuses: %+v", i, name, *why)
			}
			if why := v.Check(resource, lr, received); why != nil {
				t.Fatalf("%d %s: %+v", i, name, *why)
			}
			stored := dump(lr)
			if dump(slow) != stored {
				t.Fatalf("%d %s: stored\n%s\nby the library\n%s", i, name, stored, dump(slow))
			}
			if first == "" {
				first = stored
			}
			if stored != first {
				t.Fatalf("%d %s: stored\n%s\nas another form\n%s", i, name, stored, first)
			}
			if !Recognise(lr) || !isFast(v, resource, lr) {
				t.Errorf("%d %s: the stored form is not recognised, or not accepted", i, name)
			}
			if why := v.Check(resource, lr, received); why != nil || dump(lr) != stored {
				t.Fatalf("%d %s: a second time: %+v\n%s\nwant\n%s", i, name, why, dump(lr), stored)
			}
		}
	}
}

// TestBroken sends events broken in each way in all forms.
func TestBroken(t *testing.T) {
	if n := len(eventtest.Kinds); n < 40 {
		t.Fatalf("%d kinds", n)
	}
	v, rng, resource := newValidator(t), source(), pcommon.NewResource()
	for kind, k := range eventtest.Kinds {
		for i := range 16 {
			e, want := eventtest.Broken(rng, i, kind)
			for name, lr := range forms(e) {
				before := dump(lr)
				if !Recognise(lr) {
					t.Errorf("%s, %s: not recognised", k.Name, name)
				}
				why := v.Check(resource, lr, received)
				if why == nil {
					t.Fatalf("%s, %s is accepted:\n%s", k.Name, name, before)
				}
				if why.Code != want || why.Rule != k.Rule {
					t.Fatalf("%s, %s: %s %s (%s), want %s %s", k.Name, name, why.Code, why.Rule, why.Detail, want, k.Rule)
				}
				if why.Detail == "" || len(why.Detail) > 600 {
					t.Errorf("%s, %s: detail %q", k.Name, name, why.Detail)
				}
				if dump(lr) != before {
					t.Fatalf("%s, %s: changed to\n%s\nfrom\n%s", k.Name, name, dump(lr), before)
				}
			}
		}
	}
}

// TestSameReason breaks several rules at once; the first counts, always.
func TestSameReason(t *testing.T) {
	v, resource := newValidator(t), pcommon.NewResource()
	for range 50 {
		e := eventtest.Good(source(), 1)
		e.Members["level"] = "info"
		e.Members["req_id"] = ""
		e.Members["trace_id"] = "x"
		delete(e.Members["system"].(map[string]any), "device")
		for name, lr := range forms(e) {
			why := v.Check(resource, lr, 0)
			if why == nil || why.Rule != "/properties/level/enum" {
				t.Fatalf("%s: %+v", name, why)
			}
		}
	}
}

func TestDetail(t *testing.T) {
	v := newValidator(t)
	f := func(edit func(e map[string]any), want ...string) {
		t.Helper()
		e := eventtest.Good(source(), 1)
		edit(e.Members)
		why := v.Check(pcommon.NewResource(), e.BodyRecord(), 0)
		if why == nil {
			t.Fatal("accepted")
		}
		for _, w := range want {
			if !strings.Contains(why.Detail, w) {
				t.Errorf("%q does not say %q", why.Detail, w)
			}
		}
	}
	f(func(e map[string]any) { e["level"] = "info" }, `level is "info"`, `"WARN"`, "How severe")
	f(func(e map[string]any) { delete(e, "req_id"); delete(e, "level") }, "level, req_id is missing")
	f(func(e map[string]any) { delete(e["business"].(map[string]any), "user_id") }, "business.user_id is missing", "a pseudonym")
	f(func(e map[string]any) { e["trace_id"] = strings.Repeat("ü", 5000) }, `"üü`, "… (10000 bytes)")
	f(func(e map[string]any) { e["system"].(map[string]any)["gpu_util_percent"] = 101.5 }, "system.gpu_util_percent is 101.5: send 100 or less")
	f(func(e map[string]any) { e["system"] = []any{int64(1)} }, "system is a list of 1 items", "send object")
	f(func(e map[string]any) { e["business"].(map[string]any)["input"] = "other" }, "business.input_hash is", "d9298a10d1b0735837dc4bd85dac641b0f3cef27a47e5d53a54f2f3f5b2fcffa")
}

func TestRecognise(t *testing.T) {
	f := func(want bool, edit func(lr plog.LogRecord)) {
		t.Helper()
		lr := plog.NewLogRecord()
		lr.Body().SetStr("GET /health 200")
		lr.Attributes().PutStr("http.route", "/health")
		edit(lr)
		if got := Recognise(lr); got != want {
			t.Errorf("%v, want %v: %s", got, want, dump(lr))
		}
	}
	body := func(s string) func(plog.LogRecord) { return func(lr plog.LogRecord) { lr.Body().SetStr(s) } }
	f(false, func(plog.LogRecord) {})
	f(true, func(lr plog.LogRecord) { lr.SetEventName("ai.inference") })
	f(false, func(lr plog.LogRecord) { lr.SetEventName("aim.taken") })
	f(true, func(lr plog.LogRecord) { lr.Attributes().PutStr("ai.req_id", "r") })
	f(false, func(lr plog.LogRecord) { lr.Attributes().PutStr("ai", "r") })
	f(true, body(`{"schema_version":"1.0"}`))
	f(true, body(`{"a":[{"b":"\"}"}], "business":{}}`))
	f(true, body(`{"computation":`))
	f(true, body(`{"input_hash":1}`))
	f(true, body(`{"req_id":"r","system":{}}`))
	f(false, body(`{"req_id":"r"}`))
	f(false, body(`{"system":{},"msg":"req_id"}`))
	f(false, body(`{"msg":"business","nested":{"business":{}}}`))
	f(false, body(`{"msg":"the \"business\" is"}`))
	f(false, body(`{"list":["business"]}`))
	f(false, body(`{} {"business":1}`))
	f(false, body(`[{"business":1}]`))
	f(false, body(`{"business`))
	f(false, body(`{"business\`))
	f(true, func(lr plog.LogRecord) { lr.Body().SetEmptyMap().PutEmptyMap("computation") })
	f(false, func(lr plog.LogRecord) { lr.Body().SetEmptyMap().PutEmptyMap("system") })
	f(true, func(lr plog.LogRecord) {
		m := lr.Body().SetEmptyMap()
		m.PutEmptyMap("system")
		m.PutStr("req_id", "r")
	})
	f(false, func(lr plog.LogRecord) { lr.Body().SetEmptySlice().AppendEmpty().SetStr("business") })
}

func TestRecogniseAllocatesNothing(t *testing.T) {
	for _, lr := range ordinary() {
		if n := testing.AllocsPerRun(100, func() { Recognise(lr) }); n != 0 {
			t.Errorf("%v allocations: %s", n, dump(lr))
		}
	}
}

// ordinary are log records that are no events.
func ordinary() []plog.LogRecord {
	var all []plog.LogRecord
	for _, body := range []string{
		"GET /v1/chat/completions 200 in 132 ms",
		`{"ts":"2026-11-30T12:00:00Z","level":"info","caller":"server/http.go:120","msg":"request done","status":200,"req_id":"r-1","took_ms":132,"nested":{"a":[1,2,3]}}`,
	} {
		lr := plog.NewLogRecord()
		lr.Body().SetStr(body)
		for _, name := range []string{"http.method", "http.route", "http.status_code", "net.peer.ip", "thread.name", "code.function"} {
			lr.Attributes().PutStr(name, "value")
		}
		all = append(all, lr)
	}
	return all
}

func TestConcurrent(t *testing.T) {
	v := newValidator(t)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			rng := source()
			for i := range 200 {
				kind := (i + g) % len(eventtest.Kinds)
				bad, code := eventtest.Broken(rng, i, kind)
				if why := v.Check(pcommon.NewResource(), bad.BodyRecord(), 0); why == nil || why.Code != code {
					t.Errorf("%s: %+v", eventtest.Kinds[kind].Name, why)
				}
				if why := v.Check(pcommon.NewResource(), eventtest.Good(rng, i).AttributeRecord(), 0); why != nil {
					t.Errorf("%+v", *why)
				}
			}
		})
	}
	wg.Wait()
}

func TestInput(t *testing.T) {
	v := newValidator(t)
	for name, lr := range forms(eventtest.Good(source(), 0)) {
		kept := clone(lr)
		in, why := v.Admit(pcommon.NewResource(), lr, 0, true)
		if why != nil || !in.Given || !strings.HasSuffix(in.Text, "#0") || len(in.Hash) != 64 || in.UserID == "" {
			t.Errorf("%s: %+v, %+v", name, in, why)
		}
		if _, ok := lr.Attributes().Get("ai.business.input"); ok {
			t.Errorf("%s: the input is still there", name)
		}
		if _, ok := lr.Attributes().Get("ai.business.input_hash"); !ok {
			t.Errorf("%s: the hash is gone", name)
		}
		again, why := v.Admit(pcommon.NewResource(), kept, 0, false)
		if x, ok := kept.Attributes().Get("ai.business.input"); why != nil || again != in || !ok || x.Str() != in.Text {
			t.Errorf("%s: %+v, %+v, stored %v", name, again, why, ok)
		}
	}
	in, why := v.Admit(pcommon.NewResource(), eventtest.Good(source(), 1).BodyRecord(), 0, true)
	if why != nil || in.Given {
		t.Errorf("without input: %+v, %+v", in, why)
	}
}

func TestUsersSchema(t *testing.T) {
	f := func(text string, fast bool, edit func(e map[string]any), wantCode, wantRule string) {
		t.Helper()
		v, err := New([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		e := eventtest.Good(source(), 1)
		edit(e.Members)
		for name, lr := range forms(e) {
			if got := isFast(v, pcommon.NewResource(), lr); got != (fast && wantCode == "") {
				t.Errorf("%s: by the fast path %v", name, got)
			}
			why := v.Check(pcommon.NewResource(), lr, 0)
			if wantCode == "" {
				if why != nil {
					t.Errorf("%s: %+v", name, *why)
				}
				continue
			}
			if why == nil || why.Code != wantCode || why.Rule != wantRule {
				t.Errorf("%s: %+v, want %s %s", name, why, wantCode, wantRule)
			}
		}
	}
	const extended = `{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"https://example.com/event","allOf":[{"$ref":"https://inquest.dev/schema/ai-event/1.0"}],
		"required":["tenant"],"properties":{"tenant":{"type":"string","pattern":"^[a-z]{3}$"},"business":{"required":["region"],"properties":{"region":{"enum":["eu","us"]}}}}}`
	set := func(tenant, region any) func(map[string]any) {
		return func(e map[string]any) { e["tenant"], e["business"].(map[string]any)["region"] = tenant, region }
	}
	f(extended, true, set("abc", "eu"), "", "")
	f(extended, true, set("abcd", "eu"), CodePattern, "/properties/tenant/pattern")
	f(extended, true, set("abc", "mars"), CodeEnum, "/properties/business/properties/region/enum")
	f(extended, true, func(map[string]any) {}, CodeRequired, "/required")
	f(extended, true, func(e map[string]any) { set("abc", "eu")(e); e["level"] = "info" }, CodeEnum, "/properties/level/enum")
	const chosen = `{"$ref":"https://inquest.dev/schema/ai-event/1.0","anyOf":[{"required":["a"]},{"required":["b"]}]}`
	f(chosen, false, func(e map[string]any) { e["b"] = true }, "", "")
	f(chosen, false, func(map[string]any) {}, CodeChoice, "/anyOf")
	const closed = `{"$ref":"https://inquest.dev/schema/ai-event/1.0","propertyNames":{"maxLength":14}}`
	f(closed, false, func(map[string]any) {}, "", "")
	f(closed, false, func(e map[string]any) { e["a_name_that_is_long"] = int64(1) }, CodeProperties, "/propertyNames")

	bad := func(text, want string) {
		t.Helper()
		if _, err := New([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	bad(`{`, "must be JSON")
	bad(`{"type":"text"}`, "cannot compile")
	bad(`{"$ref":"https://example.com/other"}`, "refer to "+schema.AIEventID)
	bad(`{"$ref":"file:///etc/passwd"}`, "refer to "+schema.AIEventID)
}

func TestPublishedSchemaIsAllFast(t *testing.T) {
	v := newValidator(t)
	var visit func(at string, n *node)
	visit = func(at string, n *node) {
		if n.opaque {
			t.Errorf("%s is opaque", at)
		}
		for _, m := range slices.Concat(n.members...) {
			visit(at+"/"+m.name, m)
		}
	}
	visit("", v.plan.root)
	if n := len(v.plan.objects); n != 14 {
		t.Errorf("%d objects", n)
	}
}
