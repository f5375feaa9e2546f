package nezha

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"inquest/verdict"
)

// data returns the folder of the public data set, or skips.
func data(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("reads the public data set")
	}
	root := os.Getenv("INQUEST_DATA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared", "data")
	}
	dir := filepath.Join(root, "nezha-trainticket")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("the public data set is not at %s: set INQUEST_DATA to the folder that holds nezha-trainticket", dir)
	}
	return dir
}

func TestLoad(t *testing.T) {
	cases, err := Load(data(t))
	if err != nil {
		t.Fatal(err)
	}
	types := map[string]int{}
	for _, c := range cases {
		types[c.Type]++
		if c.After == "" && c.Metric == "" {
			t.Errorf("%s has no second level of truth", c.ID())
		}
	}
	want := map[string]int{"return": 11, "exception": 13, "cpu_contention": 7, "network_delay": 14}
	if len(cases) != 45 || !reflect.DeepEqual(types, want) {
		t.Errorf("%d cases %v, want 45 %v", len(cases), types, want)
	}
}

// few are cases of all four kinds.
func few(c Case) bool {
	switch c.At.Format("2006-01-02 15:04") {
	case "2023-01-29 08:52", "2023-01-29 10:50", "2023-01-29 15:42", "2023-01-30 12:15":
		return true
	}
	return false
}

func run(t *testing.T, dir string, change Change) []Row {
	t.Helper()
	res, err := Run(context.Background(), dir, Options{Given: true, Cases: few, Change: change})
	if err != nil {
		t.Fatal(err)
	}
	if res.Cases != 4 {
		t.Fatalf("%d cases, want 4", res.Cases)
	}
	return res.Rows
}

// TestNamesTimesAndSpeedDoNotMatter changes what an engine must not depend on:
// other service names, another year, machines of a third of the speed. The
// answers stay right.
func TestNamesTimesAndSpeedDoNotMatter(t *testing.T) {
	dir := data(t)
	plain := run(t, dir, Change{})
	other := run(t, dir, Change{
		Rename: func(s string) string { return "svc-" + strings.Map(rot13, strings.TrimPrefix(s, "ts-")) },
		Shift:  1000*24*time.Hour + 7*time.Hour + 13*time.Minute,
		Scale:  3,
	})
	for i := range plain {
		a, b := plain[i].Given, other[i].Given
		if a.Rank != 1 || !a.KindOK {
			t.Errorf("%s: rank %d, %s", plain[i].Case, a.Rank, a.Summary)
		}
		if b.Rank != a.Rank || b.Fault != a.Fault || b.State != a.State || b.RegionOK != a.RegionOK {
			t.Errorf("%s: changed, it is rank %d %s %s, plain %d %s %s", plain[i].Case, b.Rank, b.Fault, b.State, a.Rank, a.Fault, a.State)
		}
	}
}

func rot13(r rune) rune {
	if r >= 'a' && r <= 'z' {
		return 'a' + (r-'a'+13)%26
	}
	return r
}

func TestRequests(t *testing.T) {
	dir := data(t)
	var spans, logs, points int
	stop := context.Canceled
	err := Requests(context.Background(), dir, func(_ context.Context, r Request) error {
		switch {
		case r.Traces != nil:
			spans += r.Traces.SpanCount()
		case r.Logs != nil:
			logs += r.Logs.LogRecordCount()
		case r.Metrics != nil:
			points += r.Metrics.DataPointCount()
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) {
		t.Fatalf("error %v, want the one that fn returned", err)
	}
	if spans < 100_000 || logs < 50_000 || points == 0 || points > batch {
		t.Errorf("%d spans, %d records, %d points in the first batch", spans, logs, points)
	}
}

func TestParse(t *testing.T) {
	keep := func(s string) string { return s }
	s, err := parseSpan([]string{"t", "s", "root", "ts-order-service-5b67c48447-mv5hb", "SELECT ts.orders", "100", "90", "0"}, keep)
	if err != nil || s.service != "ts-order-service" || s.parent != "" || s.kind != "client" || s.namespace != "ts" || s.end != 100 {
		t.Errorf("span %+v, %v", s, err)
	}
	l, err := parseLog([]string{
		"2023-01-29T09:20:29.295", "-6795364578871345152", "n", "ts-a-service-1-2", "server", "t", "s",
		`{"log":"17:20:29.299 ERROR a.b.[x]#175 TraceID: t SpanID: s it failed\n","stream":"stdout"}`,
	}, keep)
	if err != nil || l.severity != "ERROR" || l.number != 17 || l.function != "a.b.[x]" || l.line != "175" || l.body != "it failed" {
		t.Errorf("record %+v, %v", l, err)
	}
	if want := time.Date(2023, 1, 29, 9, 20, 29, 295e6, time.UTC).UnixNano(); l.time != want {
		t.Errorf("time %d, want %d from the first column", l.time, want)
	}
	for _, bad := range [][]string{{"t", "s", "root", "p", "o", "x", "1", "1"}, {"t", "s", "root", "p", "o", "1", "x", "1"}} {
		if _, err := parseSpan(bad, keep); err == nil {
			t.Errorf("%v is taken", bad)
		}
	}
}

func FuzzParseLog(f *testing.F) {
	f.Add("2023-01-29T09:20:29.295", "-1", `{"log":"17:20:29.299 ERROR a#1 TraceID: t SpanID: s x\n"}`)
	f.Add("", "5", "\xff{")
	f.Fuzz(func(_ *testing.T, at, ns, text string) {
		_, _ = parseLog([]string{at, ns, "n", "p", "c", "t", "s", text}, func(s string) string { return s })
	})
}

// TestScoreIsStrict: ties, other entities of the service and empty answers do
// not count.
func TestScoreIsStrict(t *testing.T) {
	c := &Case{Service: "a", Type: "return", After: "x#1", Before: "x#2", At: time.Unix(0, 0)}
	f := func(js string, rank int, kind, region bool) {
		t.Helper()
		v := &verdict.Verdict{}
		if err := json.Unmarshal([]byte(js), v); err != nil {
			t.Fatal(err)
		}
		if a := score(v, c, Change{}); a.Rank != rank || a.KindOK != kind || a.RegionOK != region {
			t.Errorf("%s: rank %d kind %v region %v, want %d %v %v", js, a.Rank, a.KindOK, a.RegionOK, rank, kind, region)
		}
	}
	f(`{}`, 0, false, false)
	f(`{"cause":{"entity":{"kind":"service","name":"a"},"fault":"early-return","code":{"after":"x#1","before":"x#2"}}}`, 1, true, true)
	f(`{"cause":{"entity":{"kind":"service","name":"a"},"fault":"early-return","code":{"after":"x#1","before":"x#3"}}}`, 1, true, false)
	f(`{"cause":{"entity":{"kind":"service","name":"a"},"fault":"unknown"}}`, 1, false, false)
	f(`{"cause":{"entity":{"kind":"service","name":"b"},"fault":"early-return","code":{"after":"x#1","before":"x#2"}},
	    "alternatives":[{"entity":{"kind":"service","name":"b"}},{"entity":{"kind":"service","name":"a"}}]}`, 2, false, false)
	f(`{"cause":{"entity":{"kind":"dependency","name":"a"}},"alternatives":[{"entity":{"kind":"pod","name":"a-1-2"}}]}`, 2, false, false)
}
