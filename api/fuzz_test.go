package api

import (
	"encoding/json"
	"net/url"
	"testing"
	"unicode/utf8"

	"github.com/VictoriaMetrics/VictoriaLogs/lib/logstorage"

	"inquest/record"
)

// No parameters bring the API down or get an answer of 500.
func FuzzParameters(f *testing.F) {
	f.Add(uint8(0), "up", "1", "2", "15", "{}", "1ms")
	f.Add(uint8(1), "{a=\"b\"}", "now-1h", "2026-01-02T15:04:05Z", "1m", `{"a":1}`, "-1")
	f.Add(uint8(2), "x | y", "1e300", "-9223372036854775808", "NaN", "[", "9e18")
	routes := (&server{}).routes()
	h := newTestHandler(f, Config{Investigator: &fakeInvestigator{inv: testInvestigation()}})
	f.Fuzz(func(t *testing.T, n uint8, q, start, end, step, tags, small string) {
		rt := routes[int(n)%len(routes)]
		params := url.Values{
			"query": {q}, "start": {start}, "end": {end}, "step": {step}, "tags": {tags}, "match[]": {q}, "service": {q}, "limit": {small},
			"time": {start}, "window": {step}, "timeout": {step}, "minDuration": {small}, "endTs": {small}, "lookback": {step}, "order": {small}, "tag": {tags}, "format": {small},
		}
		target := ""
		for rest := rt.path; rest != ""; {
			if rest[0] == '{' {
				target += url.PathEscape("x" + q)
				for rest[0] != '}' {
					rest = rest[1:]
				}
			} else {
				target += rest[:1]
			}
			rest = rest[1:]
		}
		method, header, body := rt.methods[0], map[string]string(nil), ""
		if method == "POST" {
			header, body = jsonHeader, tags
		}
		w := ask(t, h, method, target+"?"+params.Encode(), header, body)
		// Paths with dots are redirected to their clean form.
		if w.Code >= 500 && w.Code != 503 {
			t.Errorf("%s %s answers %d: %s", method, target, w.Code, w.Body)
		}
	})
}

// Filters hold whatever text they are made from.
func FuzzFilters(f *testing.F) {
	f.Add("a", "b")
	f.Add(`a"b`, "\x00\xff`'|")
	f.Fuzz(func(t *testing.T, name, value string) {
		for _, q := range []string{ofType(record.TypeSpan, value), equals(name, value), oneOf(name, []string{value, name}), "*" + sortBy(name, true, 1), tagFilter(name, value)} {
			if _, err := logstorage.ParseQuery(q); err != nil {
				t.Errorf("%s: %v", q, err)
			}
		}
	})
}

// Rows are JSON that holds what the record holds.
func FuzzAppendString(f *testing.F) {
	f.Add("plain")
	f.Add("\x00\x1f\"\\\n\u2028\xff\xed\xa0\x80é")
	f.Fuzz(func(t *testing.T, s string) {
		data := appendString(nil, s)
		var got string
		if err := json.Unmarshal(data, &got); err != nil {
			t.Fatalf("%q becomes %s: %v", s, data, err)
		}
		want, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var wantText string
		if err := json.Unmarshal(want, &wantText); err != nil || got != wantText || utf8.ValidString(s) && got != s {
			t.Errorf("%q becomes %q, want %q", s, got, wantText)
		}
	})
}
