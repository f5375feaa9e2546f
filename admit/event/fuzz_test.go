package event

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"inquest/admit/event/eventtest"
)

// differ checks one record by the fast path and by the library. The fast path may
// accept only what the library accepts, and must store the same. It returns
// whether each accepts.
func differ(t *testing.T, v *Validator, resource pcommon.Resource, lr plog.LogRecord) (fast, library bool) {
	t.Helper()
	before := dump(lr)
	slow, quick := clone(lr), clone(lr)
	fast = isFast(v, resource, lr)
	if dump(lr) != before {
		t.Fatalf("the fast path changed\n%s\nto\n%s", before, dump(lr))
	}
	why := byLibrary(v, resource, slow)
	if why != nil && dump(slow) != before {
		t.Fatalf("a refused record changed from\n%s\nto\n%s", before, dump(slow))
	}
	got := v.Check(resource, quick, received)
	if (got == nil) != (why == nil) || got != nil && *got != *why {
		t.Fatalf("checked: %+v, by the library: %+v\n%s", got, why, before)
	}
	if why != nil {
		if fast && !strings.Contains("hash.mismatch schema.conflict", why.Code) {
			t.Fatalf("the fast path accepts, the library refuses: %+v\n%s", *why, before)
		}
		return fast, false
	}
	if dump(quick) != dump(slow) {
		t.Fatalf("stored\n%s\nby the library\n%s", dump(quick), dump(slow))
	}
	return fast, true
}

// odd are values at the edges of what the rules allow.
func odd(rng *rand.Rand) any {
	all := []any{
		nil, true, false, "", "null", "[1,2]", "[1, 2.0]", "[1,2", "[-1]", `{"a":1}`, "x", "\x00", "a\nb", "\ud7ff", "\xff", "é",
		strings.Repeat("0", 32), strings.Repeat("a", 32), strings.Repeat("0", 16), strings.Repeat("f", 64), strings.Repeat("é", 256), strings.Repeat("é", 257),
		"1.0", "INFO", "Info", "ingress", "cache", "left", "2026-02-29T12:00:00Z", "2028-02-29T23:59:60Z", "2026-11-30t12:00:00z", "2026-11-30T12:00:00.1234567891+23:59",
		"1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000000001Z", "2262-04-11T23:47:16.854775807Z", "2262-04-11T23:47:16.854775808Z",
		int64(0), int64(-1), int64(1), int64(100), int64(101), int64(math.MaxInt64), int64(math.MinInt64), int64(1) << 53, int64(1)<<53 + 1,
		0.0, math.Copysign(0, -1), 100.0, 100.00000000000001, 99.99999999999999, -1e-300, 1e300, 5e-324, 1.5, 3.0, math.MaxFloat64,
		[]any{},
		[]any{int64(1)},
		[]any{1.0},
		[]any{"a"},
		[]any{nil},
		[]any{[]any{}},
		[]any{int64(-1)},
		[]any{map[string]any{"a": int64(1)}},
		map[string]any{},
		map[string]any{"a": int64(1)},
		map[string]any{"a.b": int64(1)},
		map[string]any{"": int64(1)},
		map[string]any{"a": map[string]any{"b": nil}},
	}
	return all[rng.IntN(len(all))]
}

// spoil changes a random member of an event, adds one, or removes one.
func spoil(rng *rand.Rand, e map[string]any) {
	for {
		names := slices.Sorted(maps.Keys(e))
		if len(names) == 0 || rng.IntN(12) == 0 {
			e[[]string{"a", "b", "a.b", "", "req_id", "type", "stages", "deviations"}[rng.IntN(8)]] = odd(rng)
			return
		}
		name := names[rng.IntN(len(names))]
		if below, ok := e[name].(map[string]any); ok && rng.IntN(5) > 0 {
			e = below
			continue
		}
		if rng.IntN(6) == 0 {
			delete(e, name)
		} else {
			e[name] = odd(rng)
		}
		return
	}
}

// TestDifferential spoils good events a little, in all forms.
func TestDifferential(t *testing.T) {
	v, rng, resource := newValidator(t), source(), pcommon.NewResource()
	resource.Attributes().PutStr("service.name", "chat-api")
	fast, accepted, total := 0, 0, 0
	for i := range 6000 {
		e := eventtest.Good(rng, i%64)
		for range 1 + rng.IntN(2) {
			spoil(rng, e.Members)
		}
		for _, lr := range forms(e) {
			if rng.IntN(2) == 0 {
				lr.SetTimestamp(received)
				lr.SetTraceID(pcommon.TraceID{15: 1})
				lr.SetSpanID(pcommon.SpanID{7: 1})
				lr.SetSeverityNumber(plog.SeverityNumber(rng.IntN(26)))
			}
			f, l := differ(t, v, resource, lr)
			total++
			if f {
				fast++
			}
			if l {
				accepted++
			}
		}
	}
	t.Logf("%d records: the library accepts %d, the fast path %d", total, accepted, fast)
	if fast < total/20 || accepted == total || fast < accepted/2 {
		t.Errorf("of %d records the library accepts %d and the fast path %d", total, accepted, fast)
	}
}

// FuzzBody gives the fast path and the library one body.
func FuzzBody(f *testing.F) {
	rng := source()
	for i := range 8 {
		f.Add(string(eventtest.Good(rng, i).JSON()))
	}
	for kind := range eventtest.Kinds {
		e, _ := eventtest.Broken(rng, kind, kind)
		f.Add(string(e.JSON()))
	}
	good := string(eventtest.Good(source(), 1).JSON())
	for _, more := range []string{
		`,"x":"\ud83d\ude00\u00e9\/\b"`, `,"x":"\ud800"`, `,"x":-0`, `,"x":1.0e3`, `,"x":01`, `,"x":1e-1000`, `,"x":1e-99999`, `,"x":0.0000000000000000000000000000000000000000000000001`,
		`,"x":18446744073709551616`, `,"x":9223372036854775807`, `,"x":[1,[2]]`, `,"x":{}`, `,"x":{"y":{"z":[]}}`, `,"x":1,"x":1`, `,"a.b":1,"a":{"b":2}`, ` , "x" : [ ] `, `,"x\u0061":1`,
		`,"x":"tab	"`, "\n,\"x\":\r\n1\t", `,"":1`, `,"x":nul`, `,"x":+1`, `,"x":.5`, `,"x":1.`, `,"x":"` + "\x7f" + `"`,
	} {
		f.Add(good[:len(good)-1] + more + "}")
	}
	v := newValidator(f)
	resource := pcommon.NewResource()
	resource.Attributes().PutStr("service.name", "chat-api")
	f.Fuzz(func(t *testing.T, body string) {
		lr := plog.NewLogRecord()
		lr.Body().SetStr(body)
		Recognise(lr)
		differ(t, v, resource, lr)
		// The same with all that can be filled in.
		lr.SetTimestamp(received)
		lr.SetTraceID(pcommon.TraceID{15: 1})
		lr.SetSpanID(pcommon.SpanID{7: 1})
		lr.SetSeverityNumber(9)
		differ(t, v, resource, lr)
	})
}

// FuzzRecord decodes OTLP and gives each record to the fast path and the library.
func FuzzRecord(f *testing.F) {
	rng := source()
	seed := func(lr plog.LogRecord) {
		ld := plog.NewLogs()
		lr.CopyTo(ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty())
		data, err := (&plog.ProtoMarshaler{}).MarshalLogs(ld)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for i := range 8 {
		e := eventtest.Good(rng, i)
		seed(e.AttributeRecord())
		seed(e.MapRecord())
		lr := e.AttributeRecord()
		lr.Attributes().PutStr("ai.computation.input_stats.shape", "[1,2]")
		lr.Attributes().PutStr("ai.mine.a", "1")
		lr.Attributes().PutDouble("ai.mine.b", math.NaN())
		seed(lr)
	}
	v := newValidator(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		ld, err := (&plog.ProtoUnmarshaler{}).UnmarshalLogs(data)
		if err != nil {
			return
		}
		for _, rl := range ld.ResourceLogs().All() {
			for _, sl := range rl.ScopeLogs().All() {
				for _, lr := range sl.LogRecords().All() {
					Recognise(lr)
					differ(t, v, rl.Resource(), lr)
				}
			}
		}
	})
}

// FuzzTime compares the fast reading of times with that of package time.
func FuzzTime(f *testing.F) {
	for _, s := range []string{
		"2026-11-30T12:00:00Z", "2026-11-30T12:00:00.123456789+08:00", "2000-02-29T00:00:00-00:00", "2100-02-29T00:00:00Z",
		"1970-01-01T00:00:00.000000001Z", "2261-12-31T23:59:59.999999999-23:59", "2026-06-31T00:00:00Z", "2026-11-30T24:00:00Z", "2026-11-30T12:00:00,5Z",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		ns, ok := parseTime(s)
		if !ok {
			return
		}
		want, err := time.Parse(time.RFC3339Nano, s)
		if err != nil || want.UnixNano() != ns {
			t.Errorf("%q is %d, want %d, %v", s, ns, want.UnixNano(), err)
		}
		if slow, err := slowTime(s); err != nil || slow.UnixNano() != ns {
			t.Errorf("%q is %d, slowly %v, %v", s, ns, slow, err)
		}
	})
}

// FuzzFromJSON checks that what is taken is JSON and keeps its text.
func FuzzFromJSON(f *testing.F) {
	f.Add([]byte(`{"service":"chat-api","x":[1,{"service":"no"}]}`))
	f.Add([]byte(` {"service":"a","service":"b"} `))
	f.Add([]byte(`{"service":"\ud83d\ude00"}`))
	f.Add([]byte(`[1]`))
	f.Fuzz(func(t *testing.T, line []byte) {
		lr, service, why := FromJSON(line)
		if why != nil {
			return
		}
		var m map[string]any
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatalf("%q is taken: %v", line, err)
		}
		if want, _ := m["service"].(string); want != service {
			t.Errorf("service %q, want %q", service, want)
		}
		if !bytes.Contains(line, []byte(lr.Body().Str())) {
			t.Errorf("body %q of %q", lr.Body().Str(), line)
		}
	})
}

// FuzzLines compares the lines of any stream with those of bytes.Split.
func FuzzLines(f *testing.F) {
	f.Add([]byte("a\nb\r\n\n  \nc"), 3)
	f.Add([]byte("\xef\xbb\xbfabcdef\nb\n"), 3)
	f.Add([]byte("\r\n\r\r\n"), 1)
	f.Fuzz(func(t *testing.T, data []byte, limit int) {
		limit = 1 + int(uint(limit)%64)
		var got, want []string
		if err := ReadLines(bytes.NewReader(data), limit, func(l Line, why *Reason) error {
			if (why != nil) != (l.Size > int64(limit)) || len(l.Text) > limit {
				t.Errorf("line %d of %d bytes: %q, %+v", l.Number, l.Size, l.Text, why)
			}
			got = append(got, string(l.Text))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		for _, line := range bytes.Split(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), []byte("\n")) {
			line = bytes.TrimSuffix(line, []byte("\r"))
			if len(bytes.TrimSpace(line[:min(len(line), limit)])) > 0 || len(line) > limit {
				want = append(want, string(line[:min(len(line), limit)]))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", data, got, want)
		}
	})
}
