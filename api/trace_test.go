package api

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"inquest/api/apitype"
)

const testTraceID = "4bf92f3577b34da6a3ce929d0e0e4736"

func TestTrace(t *testing.T) {
	records := &fakeRecords{answers: []fakeAnswer{{contains: testTraceID, rows: testTrace()}}}
	h := newTestHandler(t, Config{Records: records})
	w := askChecked(t, h, 200, "GET", "/api/v1/traces/"+strings.ToUpper(testTraceID), nil, "")
	var answer struct{ Data apitype.Trace }
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, sp := range answer.Data.Spans {
		got = append(got, fmt.Sprintf("%d %s %s +%d %d self %d %v %v", sp.Depth, sp.Service, sp.Name, sp.OffsetNS/1e6, sp.DurationNS/1e6, sp.SelfNS/1e6, sp.Children, sp.Orphan))
	}
	want := []string{
		"0 web GET /cart +0 100 self 30 [00000000000000a2] false",
		"1 web cart/GetCart +10 70 self 20 [00000000000000b1] false",
		"2 cart GetCart +20 50 self 50 [] false",
		"0 mail send +50 10 self 10 [] true",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	d := answer.Data
	if fmt.Sprint(d.Services, d.MissingParents, d.DurationNS, d.Cut) != "[cart mail web] [00000000000000ff] 100000000 false" {
		t.Errorf("got %v %v %d %v", d.Services, d.MissingParents, d.DurationNS, d.Cut)
	}
	root := d.Spans[0]
	if fmt.Sprint(root.Resource, root.Attributes) != "map[service.name:web service.version:1.2] map[flags:1 http.route:/cart scope.name:otelhttp]" {
		t.Errorf("root has %v %v", root.Resource, root.Attributes)
	}
	if len(d.Spans[2].Events) != 1 || len(d.Spans[1].Links) != 1 {
		t.Error("events or links are lost")
	}

	askChecked(t, h, 404, "GET", "/api/v1/traces/1", nil, "")
	for _, bad := range []string{"xyz", "0", strings.Repeat("1", 33), "%22%29"} {
		askChecked(t, h, 400, "GET", "/api/v1/traces/"+bad, nil, "")
	}
	askChecked(t, h, 400, "GET", "/api/v1/traces/1?format=xml", nil, "")
}

func TestTraceOTLP(t *testing.T) {
	h := newTestHandler(t, Config{Records: &fakeRecords{answers: []fakeAnswer{{rows: testTrace()}}}})
	w := askChecked(t, h, 200, "GET", "/api/v1/traces/"+testTraceID+"?format=otlp", nil, "")
	td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(w.Body.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if td.SpanCount() != 4 || td.ResourceSpans().Len() != 4 {
		t.Errorf("%d spans of %d resources", td.SpanCount(), td.ResourceSpans().Len())
	}
	ss := td.ResourceSpans().At(0).ScopeSpans().At(0)
	sp := ss.Spans().At(0)
	if ss.Scope().Name() != "otelhttp" || sp.Name() != "GET /cart" || sp.Kind() != ptrace.SpanKindServer || sp.Flags() != 1 ||
		sp.EndTimestamp()-sp.StartTimestamp() != 100e6 || sp.TraceID().String() != testTraceID || sp.Attributes().Len() != 1 {
		t.Errorf("got %s", w.Body)
	}
}

// Broken traces are shown, not refused.
func TestTraceShapes(t *testing.T) {
	f := func(spec, want string) {
		t.Helper()
		var rows []map[string]string
		for i, part := range strings.Fields(spec) {
			id, parent, _ := strings.Cut(part, "<")
			rows = append(rows, map[string]string{
				"span_id": id, "parent_span_id": parent, "trace_id": "1", "duration_ns": "-5",
				"_time": fmt.Sprintf("2026-01-02T15:00:0%dZ", i),
			})
		}
		s := &server{limits: Limits{Spans: 5}}
		tr := s.buildTrace("1", rows)
		var got []string
		for _, sp := range tr.Spans {
			got = append(got, fmt.Sprintf("%d%s", sp.Depth, sp.SpanID))
			if sp.SelfNS < 0 || sp.OffsetNS < 0 {
				t.Errorf("%s: %+v", spec, sp)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %v, want %s", spec, got, want)
		}
	}
	f("a b<a c<b", "0a 1b 2c")
	f("a<a", "0a")                       // its own parent
	f("a<b b<a", "0a 1b")                // each other's parents
	f("a a b<a", "0a 1b 0a")             // one id twice
	f("a<x b<x", "0a 0b")                // the parent is missing
	f("c<b b<a a", "0a 1b 2c")           // children start before their parents
	f("a b c d e f g", "0a 0b 0c 0d 0e") // more than the limit
	f("a b<a c<a d<b", "0a 1b 2d 1c")    // siblings by start
	f("a<c b<a c<b d<c", "0a 1b 2c 3d")  // a ring with a tail
}

func TestJaeger(t *testing.T) {
	records := &fakeRecords{answers: []fakeAnswer{
		{contains: `stats by ("service.name")`, rows: []map[string]string{{"service.name": "web", "rows": "2"}, {"service.name": "cart"}, {"rows": "1"}}},
		{contains: `stats by ("name")`, rows: []map[string]string{{"name": "b"}, {"name": "a"}}},
		{contains: `stats by ("name", "span_kind")`, rows: []map[string]string{{"name": "a", "span_kind": "server"}, {"name": "b"}}},
		{contains: `max(_time) latest`, rows: []map[string]string{{"trace_id": testTraceID, "latest": "x"}}},
		{contains: testTraceID, rows: testTrace()},
		{contains: "| fields span_id", rows: testTrace()},
	}}
	h := newTestHandler(t, Config{Records: records})
	f := func(target string, code int, want ...string) {
		t.Helper()
		w := askChecked(t, h, code, "GET", target, nil, "")
		for _, part := range want {
			if !strings.Contains(w.Body.String(), part) {
				t.Errorf("%s answers %s\nwant %s", target, w.Body, part)
			}
		}
	}
	f("/jaeger/api/services", 200, `{"data":["cart","web"],"total":2,"limit":0,"offset":0,"errors":null}`)
	f("/jaeger/api/services/web/operations", 200, `"data":["a","b"]`)
	f("/jaeger/api/operations?service=web&spanKind=server", 200, `{"name":"a","spanKind":"server"},{"name":"b","spanKind":""}`)
	trace := []string{
		`"traceID":"` + testTraceID + `"`, `"references":[{"refType":"CHILD_OF","traceID":"` + testTraceID + `","spanID":"00000000000000a2"}]`,
		`{"refType":"FOLLOWS_FROM","traceID":"00000000000000000000000000000001","spanID":"0000000000000002"}`,
		`"startTime":1767366000000000,"duration":100000`, `{"key":"error","type":"bool","value":true}`,
		`{"serviceName":"web","tags":[{"key":"service.version","type":"string","value":"1.2"}]}`,
		`"logs":[{"timestamp":1767366000030000,"fields":[{"key":"event","type":"string","value":"exception"},{"key":"exception.type","type":"string","value":"E"}]}]`,
	}
	f("/jaeger/api/traces/"+testTraceID, 200, trace...)
	f("/jaeger/api/traces?service=web&operation=all&limit=20&lookback=1h&start=1767366000000000&end=1767366600000000&tags=%7B%22error%22%3A%22true%22%7D&minDuration=1.5ms&maxDuration=", 200, trace...)
	var search string
	for _, q := range records.asked {
		if strings.Contains(q.LogsQL, "latest") {
			search = q.LogsQL
		}
	}
	const wantSearch = `{"record.type"="span","service.name"="web"} "status":="error" duration_ns:>=1500000` +
		"\n" + `| stats by ("trace_id") max(_time) latest` + "\n| sort by (latest desc) limit 20"
	if search != wantSearch {
		t.Errorf("the search asks\n%s\nwant\n%s", search, wantSearch)
	}
	f("/jaeger/api/traces?traceID="+testTraceID, 200, trace...)
	f("/jaeger/api/dependencies?endTs=1767366600000&lookback=3600000", 200, `"data":[{"parent":"web","child":"cart","callCount":1}]`)
	f("/jaeger/api/traces/1", 404, `{"code":404,"msg":"trace not found"}`)
	f("/jaeger/api/traces", 400, `invalid parameter \"service\"`)
	f("/jaeger/api/operations", 400, `invalid parameter \"service\"`)
	f("/jaeger/api/traces?service=a&tags=x", 400, `invalid parameter \"tags\"`)
	f("/jaeger/api/traces?service=a&tag=x", 400, `key:value`)
	f("/jaeger/api/traces?service=a&minDuration=x", 400, `100ms`)
	f("/jaeger/api/traces?service=a&start=x", 400, `microseconds`)
	f("/jaeger/api/dependencies?endTs=x", 400, `milliseconds`)
}
