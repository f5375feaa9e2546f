package record

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

const received = int64(1_700_000_000_000_000_000)

// fieldMap fails the test when a name comes twice or a value is empty.
func fieldMap(t *testing.T, r Row) map[string]string {
	t.Helper()
	m := map[string]string{}
	for _, f := range slices.Concat(r.Stream, r.Fields) {
		if _, dup := m[f.Name]; dup {
			t.Errorf("field %q comes twice", f.Name)
		}
		if f.Value == "" {
			t.Errorf("field %q is empty", f.Name)
		}
		m[f.Name] = f.Value
	}
	return m
}

func putAll(m pcommon.Map, pairs ...any) {
	for i := 0; i < len(pairs); i += 2 {
		switch v := pairs[i+1].(type) {
		case string:
			m.PutStr(pairs[i].(string), v)
		case int:
			m.PutInt(pairs[i].(string), int64(v))
		case float64:
			m.PutDouble(pairs[i].(string), v)
		case bool:
			m.PutBool(pairs[i].(string), v)
		case []byte:
			m.PutEmptyBytes(pairs[i].(string)).FromRaw(v)
		case map[string]any:
			inner := m.PutEmptyMap(pairs[i].(string))
			for _, k := range slices.Sorted(maps.Keys(v)) { // duplicates keep their order
				putAll(inner, k, v[k])
			}
		case []any:
			_ = m.PutEmptySlice(pairs[i].(string)).FromRaw(v)
		default:
			m.PutEmpty(pairs[i].(string))
		}
	}
}

// decoded encodes ld and decodes it. Names dup1, dup2 and dup3 become dup0 on
// the way, since only encoded data can hold a name twice.
func decoded(t testing.TB, ld plog.Logs) plog.Logs {
	t.Helper()
	data, err := (&plog.ProtoMarshaler{}).MarshalLogs(ld)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"dup1", "dup2", "dup3"} {
		data = bytes.ReplaceAll(data, []byte(name), []byte("dup0"))
	}
	ld, err = (&plog.ProtoUnmarshaler{}).UnmarshalLogs(data)
	if err != nil {
		t.Fatal(err)
	}
	return ld
}

func TestAttributes(t *testing.T) {
	f := func(resource, scope, attributes []any, want map[string]string) {
		t.Helper()
		ld := plog.NewLogs()
		rl := ld.ResourceLogs().AppendEmpty()
		putAll(rl.Resource().Attributes(), resource...)
		sl := rl.ScopeLogs().AppendEmpty()
		putAll(sl.Scope().Attributes(), scope...)
		putAll(sl.LogRecords().AppendEmpty().Attributes(), attributes...)
		got := fieldMap(t, new(Converter).Logs(decoded(t, ld), 7, received)[0])
		want[FieldType], want[FieldSeq] = "log", "7"
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%v %v %v:\n got %q\nwant %q", resource, scope, attributes, got, want)
		}
	}
	type l = []any
	type m = map[string]string

	// each from its place
	f(l{"service.name", "cart", "os", "linux"}, l{"s", "1"}, l{"k", "v"}, m{"service.name": "cart", "os": "linux", "scope.attribute.s": "1", "k": "v"})
	// kinds of values
	f(nil, nil, l{"i", -3, "d", 0.25, "b", true, "y", []byte{1, 2}, "n", nil, "e", ""}, m{"i": "-3", "d": "0.25", "b": "true", "y": "AQI="})
	f(nil, nil, l{"d", 1e6, "big", 1e21, "nan", math.NaN(), "inf", math.Inf(-1)}, m{"d": "1000000", "big": "1e+21", "nan": "NaN", "inf": "-Infinity"})
	f(nil, nil, l{"m", map[string]any{"b": 1, "a": "x\"\n\x01"}, "s", []any{1, nil, []byte{3}, math.Inf(1)}}, m{"m": `{"a":"x\"\n\u0001","b":1}`, "s": `[1,null,"Aw==","Infinity"]`})
	// the record's own goes before the resource's
	f(l{"k", "r"}, nil, l{"k", "v"}, m{"k": "v", "resource.k": "r"})
	f(l{"k", "v"}, nil, l{"k", "v"}, m{"k": "v"})
	f(l{"k", "r", "resource.k", "x"}, nil, l{"k", "v"}, m{"k": "v", "resource.resource.k": "x", "resource.k": "r"})
	f(l{"k", "r"}, nil, l{"k", "v", "resource.k", "x"}, m{"k": "v", "resource.k": "x", "resource.resource.k": "r"})
	// streams hold the resource's
	f(l{"host.name", "a"}, nil, l{"host.name", "b"}, m{"host.name": "a", "attribute.host.name": "b"})
	f(l{"host.name", "a"}, nil, l{"host.name", "a"}, m{"host.name": "a"})
	f(nil, nil, l{"host.name", "b"}, m{"host.name": "b"})
	f(l{"host.name", "a"}, nil, l{"host.name", "b", "attribute.host.name", "c"}, m{"host.name": "a", "attribute.host.name": "b", "attribute.attribute.host.name": "c"})
	// names that inquest uses
	f(l{"status", "r"}, nil, l{"status", "a", "_time", "t", "_msg", "m", "_stream", "s", "_stream_id", "i", "trace_id", "x", "name", "n", "", "e"},
		m{
			"resource.status": "r", "attribute.status": "a", "attribute._time": "t", "attribute._msg": "m", "attribute._stream": "s",
			"attribute._stream_id": "i", "attribute.trace_id": "x", "attribute.name": "n", "attribute.": "e",
		})
	f(nil, nil, l{"status", "a", "attribute.status", "b", "attribute.other", "c"}, m{"attribute.status": "a", "attribute.attribute.status": "b", "attribute.other": "c"})
	f(l{"record.type", "verdict", "journal.seq", "99"}, nil, nil, m{"resource.record.type": "verdict", "resource.journal.seq": "99"})
	f(nil, l{"s", "1"}, l{"scope.attribute.s", "2"}, m{"scope.attribute.s": "2", "scope.attribute.scope.attribute.s": "1"})
	// the last of a name counts
	f(l{"dup1", "a", "dup2", "b"}, l{"dup1", "c", "dup2", "d"}, l{"dup1", "e", "dup2", "f"}, m{"dup0": "f", "resource.dup0": "b", "scope.attribute.dup0": "d"})
	f(nil, nil, l{"dup1", "a", "dup2", "", "k", "v"}, m{"k": "v"})
	f(l{"dup1", "r"}, nil, l{"dup1", "a", "dup2", ""}, m{"dup0": "r"})
	f(l{"dup1", "r", "dup2", ""}, nil, nil, m{})
	f(nil, nil, l{"m", map[string]any{"dup1": 1, "dup2": 2}}, m{"m": `{"dup0":2}`})
	// not UTF-8
	f(l{"service.name", "a\xff"}, nil, l{"k\xff", "v\xfe", "m", map[string]any{"\xff": "\xff"}}, m{"service.name": "a\uFFFD", "k\uFFFD": "v\uFFFD", "m": "{\"\uFFFD\":\"\uFFFD\"}"})
	// names above the limit
	long := strings.Repeat("n", MaxNameSize+1)
	f(l{long, "r"}, nil, l{long, "v\"", long[1:], "w"}, m{long[1:]: "w", FieldOverflow: `{"` + long + `":"v\"","resource.` + long + `":"r"}`})
	// values that are too long for a stream
	huge := strings.Repeat("v", maxStreamValueSize+1)
	f(l{"service.name", huge}, nil, nil, m{"service.name": huge})
}

func TestOverflow(t *testing.T) {
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	rl.Resource().Attributes().PutStr("service.name", "cart")
	lr := rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	const n = 10_000
	for i := range n {
		lr.Attributes().PutInt(fmt.Sprint("k", i), int64(i))
	}
	row := new(Converter).Logs(ld, 1, received)[0]
	if len(row.Fields) > MaxFields {
		t.Errorf("%d fields, want at most %d", len(row.Fields), MaxFields)
	}
	l, err := ParseLog(stored(row))
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Attributes) != n {
		t.Errorf("%d attributes come back, want %d", len(l.Attributes), n)
	}
	for i := range n {
		if got := l.Attributes[fmt.Sprint("k", i)]; got != fmt.Sprint(i) {
			t.Fatalf("k%d is %q", i, got)
		}
	}
}

func TestLogTimeAndSeverity(t *testing.T) {
	f := func(time, observed uint64, number plog.SeverityNumber, text string, wantTime int64, want map[string]string) {
		t.Helper()
		ld := plog.NewLogs()
		lr := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
		lr.SetTimestamp(pcommon.Timestamp(time))
		lr.SetObservedTimestamp(pcommon.Timestamp(observed))
		lr.SetSeverityNumber(number)
		lr.SetSeverityText(text)
		row := new(Converter).Logs(ld, 1, received)[0]
		if row.Time != wantTime {
			t.Errorf("time %d, want %d", row.Time, wantTime)
		}
		got := fieldMap(t, row)
		delete(got, FieldType)
		delete(got, FieldSeq)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	type m = map[string]string
	f(5, 6, 0, "", 5, m{})
	f(0, 6, 9, "", 6, m{"severity": "INFO", "severity_number": "9"})
	f(0, 0, 18, "", received, m{"severity": "ERROR2", "severity_number": "18"})
	f(0, 0, 17, "err", received, m{"severity": "err", "severity_number": "17"})
	f(0, 0, 0, "warn", received, m{"severity": "warn"})
	f(0, 0, 99, "", received, m{"severity_number": "99"})
	f(5, 5+2e9, 0, "", 5, m{"observed_time": "2000000005"})
	f(3e9, 1, 0, "", 3e9, m{"observed_time": "1"})
	f(math.MaxUint64, 0, 0, "", math.MaxInt64, m{})
}

// TestSameRows converts twice, also after encoding and with a used Converter.
func TestSameRows(t *testing.T) {
	ld := sampleLogs(50)
	used := new(Converter)
	used.Logs(sampleLogs(3), 1, 2)
	used.Spans(sampleSpans(), 1, 2)
	want := fmt.Sprint(new(Converter).Logs(ld, 7, received))
	for i, got := range []string{
		fmt.Sprint(used.Logs(ld, 7, received)),
		fmt.Sprint(used.Logs(decoded(t, ld), 7, received)),
		fmt.Sprint(used.Logs(ld, 7, received)),
	} {
		if got != want {
			t.Errorf("conversion %d differs:\n got %s\nwant %s", i, got, want)
		}
	}
}

func sampleLogs(n int) plog.Logs {
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	putAll(rl.Resource().Attributes(), "service.name", "cart", "k8s.pod.name", "cart-1", "k8s.node.name", "n1",
		"service.version", "1.2.3", "telemetry.sdk.language", "go")
	sl := rl.ScopeLogs().AppendEmpty()
	sl.Scope().SetName("lib")
	for i := range n {
		lr := sl.LogRecords().AppendEmpty()
		lr.SetTimestamp(pcommon.Timestamp(received + int64(i)))
		lr.SetSeverityNumber(plog.SeverityNumberInfo)
		lr.Body().SetStr("order placed for a customer, payment accepted, shipment is scheduled")
		lr.SetTraceID(pcommon.TraceID{1, 2, 3, byte(i)})
		lr.SetSpanID(pcommon.SpanID{4, 5, byte(i)})
		putAll(lr.Attributes(), "http.request.method", "GET", "http.response.status_code", 200+i%7, "url.path", "/api/v1/orders",
			"user.id", fmt.Sprint("user-", i), "duration_ms", 1.5*float64(i), "retry", i%2 == 0, "code.function", "PlaceOrder",
			"code.lineno", 120+i, "thread.id", i, "server.address", "10.0.0.1", "server.port", 8080, "cache.hit", true,
			"db.system", "mysql", "order.id", 1_000_000+i, "region", "eu-west-1")
	}
	return ld
}

func sampleSpans() ptrace.Traces {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	putAll(rs.Resource().Attributes(), "service.name", "cart", "host.name", "h1", "service.version", "1")
	ss := rs.ScopeSpans().AppendEmpty()
	ss.Scope().SetName("lib")
	ss.Scope().SetVersion("2")
	sp := ss.Spans().AppendEmpty()
	sp.SetTraceID(pcommon.TraceID{1})
	sp.SetSpanID(pcommon.SpanID{2})
	sp.SetParentSpanID(pcommon.SpanID{3})
	sp.TraceState().FromRaw("a=b")
	sp.SetFlags(257)
	sp.SetName("GET /")
	sp.SetKind(ptrace.SpanKindServer)
	sp.SetStartTimestamp(pcommon.Timestamp(received + 5))
	sp.SetEndTimestamp(pcommon.Timestamp(received + 105))
	sp.Status().SetCode(ptrace.StatusCodeError)
	sp.Status().SetMessage("boom")
	putAll(sp.Attributes(), "name", "mine", "host.name", "other", "n", 5)
	sp.SetDroppedEventsCount(3)
	ev := sp.Events().AppendEmpty()
	ev.SetName("exception \"x\"")
	ev.SetTimestamp(pcommon.Timestamp(received + 7))
	putAll(ev.Attributes(), "big", 1<<62, "s", "t")
	sp.Events().AppendEmpty()
	link := sp.Links().AppendEmpty()
	link.SetTraceID(pcommon.TraceID{9})
	link.SetSpanID(pcommon.SpanID{8})
	link.TraceState().FromRaw("c=d")
	putAll(link.Attributes(), "l", true)
	return td
}

func BenchmarkLogs(b *testing.B) {
	ld := decoded(b, sampleLogs(500))
	c := new(Converter)
	b.ReportAllocs()
	for b.Loop() {
		c.Logs(ld, 1, received)
	}
	b.ReportMetric(float64(b.N)*500/b.Elapsed().Seconds(), "records/s")
}
