package admit

import (
	"encoding/base64"
	"encoding/json"
	"testing"

	"go.opentelemetry.io/collector/pdata/plog"
)

func TestUserFilter(t *testing.T) {
	f := func(user, payload string, want bool) {
		t.Helper()
		l := &Letter{Payload: payload, Encoding: EncodingText}
		if got := NewUserFilter(user).Match(l); got != want {
			t.Errorf("%s in %s: %v", user, payload, got)
		}
	}
	f("u-17", `{"business":{"user_id":"u-17","input":"x"}}`, true)
	f("u-17", `{"business":{"user_id":"u-170","input":"x"}}`, false)
	f("u-17", `{"business":{"user_id":"u-17.b"}}`, false)
	f("u-17", `{"business":{"user_id":"xu-17"}}`, false)
	f("u-17", `{"business":{"user_id":"u-18","input":"x"},"req_id":"u-17"}`, false)
	f("u-17", `{"business":{"user_id":"u-17","input":"cut`, true)
	f("u-17", `{"business": {"user_id"  :  'u-17'`, true)
	f("u-17", `user_id=u-17 asked for help`, true)
	f("u-17", `user.id: u-17.`, true)
	f("17", `{"user_id":17}`, true)
	f("17", `{"user_id":[16,17]}`, true)
	f("17", `{"user_id":"16","n":17}`, false)
	f("张三", `{"business":{"user_id":"\u5f20\u4e09"}}`, true)
	f(`a"b`, `{"business":{"user_id":"a\"b"}}`, true)
	f("ann@example.org", `{"user.id":"ann@example.org"}`, true)
	f("ann@example.org", `{"user.id":"joann@example.org"}`, false)
	f("u-17", `{"user_id":"u-18","user_id":"u-17"}`, true)
	f("u-17", `{"key":"ai.business.user_id","value":{"stringValue":"u-17"}}`, true)
	f("u-17", `{"key":"ai.business","value":{"kvlistValue":{"values":[{"key":"user_id","value":{"stringValue":"u-17"}}]}}}`, true)
	f("17", `{"key":"user_id","value":{"intValue":"17"}}`, true)
	f("u-17", `{"key":"request.id","value":{"stringValue":"u-17"}}`, false)
	f("u-17", `{"body":"{\"business\":{\"user_id\":\"u-17\"}}"}`, true)
	f("u-17", `{"body":"{\"business\":{\"user_id\":\"u-18\"}}"}`, false)
	f(`a"b`, `{"body":"{\"business\":{\"user_id\":\"a\\\"b\"}}"}`, true)
	f("u-17", "", false)
	f("", `{"user_id":""}`, false)
	f("u-17", `{"enduser.id":"u-17"}`, true)
	f("u-17", `{"traceloop.association.properties.user_id":"u-17"}`, true)
}

// Whatever the way in, a letter's payload is seen through.
func TestUserFilterOTLP(t *testing.T) {
	ld := plog.NewLogs()
	lrs := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
	lrs.AppendEmpty().Attributes().PutStr("ai.business.user_id", "ann")
	lrs.AppendEmpty().Body().SetStr(`{"business":{"user_id":"bob"}}`)
	if err := lrs.AppendEmpty().Body().SetEmptyMap().FromRaw(map[string]any{"business": map[string]any{"user_id": "eve"}}); err != nil {
		t.Fatal(err)
	}
	lrs.AppendEmpty().Attributes().PutInt("user.id", 42)
	data, err := (&plog.JSONMarshaler{}).MarshalLogs(ld)
	if err != nil {
		t.Fatal(err)
	}
	proto, err := (&plog.ProtoMarshaler{}).MarshalLogs(ld)
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range []string{"ann", "bob", "eve", "42"} {
		if !NewUserFilter(user).Match(&Letter{Payload: string(data), Encoding: EncodingOTLP}) {
			t.Errorf("%s is not found in %s", user, data)
		}
		l := &Letter{Payload: base64.StdEncoding.EncodeToString(proto), Encoding: EncodingBase64}
		if got := NewUserFilter(user).Match(l); got == (user == "42") { // a number is not text in protobuf
			t.Errorf("%s in protobuf: %v", user, got)
		}
	}
	if NewUserFilter("joe").Match(&Letter{Payload: string(data), Encoding: EncodingOTLP}) {
		t.Error("joe is found")
	}
}

// A user who is named in a member is found, whatever else there is, and no text
// makes it fail.
func FuzzUserFilter(f *testing.F) {
	f.Add("u-17", `{"a":1}`, "x")
	f.Add("张", `[`, `"`)
	f.Fuzz(func(t *testing.T, user, other, input string) {
		filter := NewUserFilter(user)
		filter.Match(&Letter{Payload: other, Encoding: EncodingText})
		filter.Match(&Letter{Payload: other, Encoding: EncodingBase64})
		name, err := json.Marshal(user)
		if err != nil || user == "" {
			return
		}
		var clean string
		if err := json.Unmarshal(name, &clean); err != nil || clean != user { // not UTF-8
			return
		}
		text, err := json.Marshal(input)
		if err != nil {
			return
		}
		l := &Letter{Payload: `{"input":` + string(text) + `,"business":{"user_id":` + string(name) + `}}`, Encoding: EncodingOTLP}
		if !filter.Match(l) {
			t.Errorf("%q is not found in %s", user, l.Payload)
		}
	})
}
