package bind

import (
	"strings"
	"testing"
	"unicode/utf8"

	"inquest/record"
)

func TestRequestID(t *testing.T) {
	f := func(want string, fields ...string) {
		t.Helper()
		var fs []record.Field
		for i := 0; i+1 < len(fields); i += 2 {
			fs = append(fs, record.Field{Name: fields[i], Value: fields[i+1]})
		}
		if got := RequestID(fs); got != want {
			t.Errorf("%q: got %q, want %q", fields, got, want)
		}
	}
	f("a1", "request.id", "a1")
	f("a1", "gen_ai.request.id", "b2", "request_id", "a1")
	f("a1", "http.request.header.x-request-id", `["a1"]`)
	f("", "http.request.header.x-request-id", `["a1","b2"]`)
	f("a1", "request.id", "null", "req_id", "a1")
	f("a1", "x-request-id", "a1", "", "x")
	f("", "jsonrpc.request.id", "a1")
	f("")
}

func TestCleanRequestID(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		if got := CleanRequestID(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	f("7", "7")
	f("请求-1", "请求-1")
	f(strings.Repeat("a", 256), strings.Repeat("a", 256))
	f(strings.Repeat("a", 257), "")
	for _, s := range []string{"", "-", "0", "00000000-0000-0000-0000-000000000000", "None", "NULL", "n/a", "undefined", "a b", "a\tb", "a\x00", "\xff", "[]"} {
		f(s, "")
	}
}

func TestRequestIDInText(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		if got := RequestIDInText(body); got != want {
			t.Errorf("%q: got %q, want %q", body, got, want)
		}
	}
	f("request_id=abc-123 done", "abc-123")
	f("done request_id=abc-123, 3 ms", "abc-123")
	f("req_id: r-7f3", "r-7f3")
	f("reqId=r-7f3.", "r-7f3")
	f("RequestID: 42", "42")
	f("Request ID: 9f-1", "9f-1")
	f("X-Request-ID: 9f-1", "9f-1")
	f(`{"msg":"done","request_id":"abc-123","n":1}`, "abc-123")
	f(`{"msg": "done", "requestId": "abc-123"}`, "abc-123")
	f(`msg="done" request_id="abc-123"`, "abc-123")
	f(`{"m":"{\"request_id\":\"abc-123\"}"}`, "abc-123")
	f("{'request_id': 'abc-123'}", "abc-123")
	f("request.id=abc-123", "abc-123")
	f("http header x_request_id=abc", "abc")
	f("2025 INFO nova [req-addc1839-2ed5-4778-b57e-5854eb7b8b09 admin] GET /", "req-addc1839-2ed5-4778-b57e-5854eb7b8b09")
	f("[req-abc] start", "req-abc")
	f("Added request chatcmpl-7f3a.", "chatcmpl-7f3a")
	f("Finished request cmpl-7f3a-0", "cmpl-7f3a-0")
	f("请求ID：abc-1，完成", "abc-1")
	f("请求id=abc-1", "abc-1")
	f("请求编号: abc-1", "abc-1")
	f("request_id=a request_id=a", "a")

	// None, or not one.
	f("", "")
	f("request_id=a request_id=b", "")
	f("request_id=", "")
	f("request_id=null", "")
	f("request_id: None, user x", "")
	f("the request id is missing", "")
	f("parent_request_id=abc", "")
	f("upstream-request-id: abc", "")
	f("jsonrpc.request.id=abc", "")
	f("request_idx=3", "")
	f("request_ids=[a, b]", "")
	f("request id == abc", "")
	f("[req- ] x", "")
	f("xcmpl-7", "")
	f("req = abc", "")
	f("请求处理成功", "")
	f("request_id", "")
	f("request_id:", "")
	f(strings.Repeat("x", 4090)+"r_id=abc", "")
	f(strings.Repeat(" ", 4080)+"req_id=abcdefghijklmnop", "") // cut off
}

func TestSampledState(t *testing.T) {
	f := func(state string, want bool) {
		t.Helper()
		if got := SampledState(state); got != want {
			t.Errorf("%q: %v", state, got)
		}
	}
	f("", false)
	f("ot=th:0", false)
	f("ot=th:c", true)
	f("vendor=x, ot=rv:1;th:fd70a4", true)
	f("vendor=th:c", false)
}

func FuzzRequestIDInText(f *testing.F) {
	for _, s := range []string{"request_id=abc", `{"requestId":"x"}`, "[req-1 x", "请求ID：abc", "chatcmpl-1", "x-request-id: \xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		id := RequestIDInText(body)
		if id != CleanRequestID(id) || !strings.Contains(body, id) || utf8.ValidString(body) && !utf8.ValidString(id) {
			t.Errorf("%q in %q", id, body)
		}
	})
}

func BenchmarkRequestIDInText(b *testing.B) {
	b.ReportAllocs()
	for range b.N {
		RequestIDInText(`INFO 10-01 10:00:00 [async_llm.py:270] Added request, prompt tokens 1532, max tokens 512, temperature 0.7, arrived 3 ms ago`)
	}
}
