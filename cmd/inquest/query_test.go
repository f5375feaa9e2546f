package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/spf13/cobra"

	"inquest/api"
	"inquest/api/apitype"
	"inquest/record"
	"inquest/store"
)

// queryRecords and querySamples stand for the stores of a server.
type queryRecords struct{ last *store.RecordQuery }

func (r queryRecords) QueryRecords(_ context.Context, q store.RecordQuery, fn func([]record.Field) error) error {
	*r.last = q
	row := func(pairs ...string) error {
		var fields []record.Field
		for i := 0; i < len(pairs); i += 2 {
			fields = append(fields, record.Field{Name: pairs[i], Value: pairs[i+1]})
		}
		return fn(fields)
	}
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	switch {
	case strings.Contains(q.LogsQL, `"exemplar"`), strings.Contains(q.LogsQL, "nothing"):
		return nil
	case strings.Contains(q.LogsQL, `"span"`):
		if err := row("_time", "2026-01-02T15:00:00Z", "trace_id", trace, "span_id", "a", "service.name", "web", "name", "GET /", "duration_ns", "100000000"); err != nil {
			return err
		}
		return row("_time", "2026-01-02T15:00:00.05Z", "trace_id", trace, "span_id", "b", "parent_span_id", "a", "service.name", "db", "name", "SELECT\x1b[2J",
			"duration_ns", "50000000", "status", "error", "status_message", "no\nrows", "db.system", "pg")
	default:
		if err := row("_time", "2026-01-02T15:00:02Z", "service.name", "web", "record.type", "log", "severity", "ERROR", "_msg", "late\n\x1b]0;x", "code", "5 0"); err != nil {
			return err
		}
		return row("_time", "2026-01-02T15:00:01Z", "service.name", "web", "record.type", "log", "_msg", "early", "journal.seq", "1")
	}
}

type querySamples struct{ store.SampleReader }

func (querySamples) QueryInstant(_ context.Context, expr string, _ time.Time) (store.Result, error) {
	if expr == "1" {
		return store.Result{Value: promql.Scalar{T: 1, V: 1}}, nil
	}
	return store.Result{Value: promql.Vector{{Metric: labels.FromStrings("__name__", "up", "job", "web"), T: 1000, F: 2}}}, nil
}

func (querySamples) QueryRange(_ context.Context, _ string, from, _ time.Time, step time.Duration) (store.Result, error) {
	return store.Result{Value: promql.Matrix{{Metric: labels.FromStrings("__name__", "up"), Floats: []promql.FPoint{{T: from.UnixMilli(), F: step.Seconds()}}}}}, nil
}

// runCommand runs a command line and returns what it prints.
func runCommand(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	root := &cobra.Command{Use: "inquest", SilenceUsage: true, SilenceErrors: true}
	root.AddCommand(newQueryCommands()...)
	var out, errOut bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&errOut)
	root.SetArgs(args)
	err = root.ExecuteContext(t.Context())
	return out.String(), errOut.String(), err
}

func queryServer(t *testing.T) (url string, last *store.RecordQuery) {
	t.Helper()
	last = &store.RecordQuery{}
	h, err := api.New(api.Config{
		Records: queryRecords{last}, Samples: querySamples{}, Version: "1.2",
		Status: func() any { return map[string]any{"Journal": map[string]any{"Last": 7}, "Stalled": false} },
	})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL, last
}

func TestQueryCommands(t *testing.T) {
	url, last := queryServer(t)
	t.Setenv(serverEnv, url)
	f := func(args, want string) {
		t.Helper()
		out, errOut, err := runCommand(t, strings.Split(args, "|")...)
		if err != nil || out != want {
			t.Errorf("%s prints\n%s%s%v\nwant\n%s", args, out, errOut, err, want)
		}
	}
	f("logs|x|--from||--to|", "2026-01-02T15:00:01Z web early\n2026-01-02T15:00:02Z web ERROR late⏎\ufffd]0;x code=\"5 0\"\n")
	if last.LogsQL != "x\n| sort by (\"_time\" desc) limit 101" || !last.From.IsZero() {
		t.Errorf("asked %+v", last)
	}
	f("logs|x|--order|none|--output|json", `{"_time":"2026-01-02T15:00:02Z","service.name":"web","record.type":"log","severity":"ERROR","_msg":"late\n\u001b]0;x","code":"5 0"}
{"_time":"2026-01-02T15:00:01Z","service.name":"web","record.type":"log","_msg":"early","journal.seq":"1"}
`)
	if last.LogsQL != "x" || time.Since(last.From).Round(time.Minute) != time.Hour {
		t.Errorf("asked %+v", last)
	}
	f("logs|nothing", "")
	f("metrics|up", "up{job=\"web\"} 2\n")
	f("metrics|1", "1\n")
	f("metrics|up|--from|1767366000|--to|1767366060", "up\n  2026-01-02T15:00:00Z 1\n")
	f("metrics|up|--from|1767366000|--to|1767369600", "up\n  2026-01-02T15:00:00Z 60\n")
	f("metrics|up|--from|1767366000.5|--to|now|--step|1d", "up\n  2026-01-02T15:00:00.5Z 86400\n")
	f("metrics|up|--output|json", "{\n  \"resultType\": \"vector\",\n  \"result\": [\n    {\n      \"metric\": {\n        \"__name__\": \"up\",\n        \"job\": \"web\"\n      },\n      \"value\": [\n        1,\n        \"2\"\n      ]\n    }\n  ]\n}\n")
	f("trace|4bf92f3577b34da6a3ce929d0e0e4736", `trace 4bf92f3577b34da6a3ce929d0e0e4736  2026-01-02T15:00:00Z  100ms  2 spans  2 services
web GET /        |████████████████████████████████████████|  100ms  self 50ms
  db SELECT`+"\ufffd"+`[2J  |                    ████████████████████|  50ms  ERROR: no rows
2 log records of the trace: --logs shows them
`)
	if out, _, err := runCommand(t, "trace", "4bf92f3577b34da6a3ce929d0e0e4736", "--logs"); err != nil || !strings.HasSuffix(out, "\n\n2 log records of the trace\n"+"2026-01-02T15:00:02Z web ERROR late⏎\ufffd]0;x code=\"5 0\"\n2026-01-02T15:00:01Z web early\n") {
		t.Errorf("trace --logs prints %s, %v", out, err)
	}
	f("status", fmt.Sprintf("inquest 1.2 at %s\n%-32s 7\n%-32s false\n", url, "Journal.Last", "Stalled"))

	out, _, err := runCommand(t, "drilldown", `up{job="web"}`, "--time", "1767366000")
	for _, want := range []string{"up{job=\"web\"} 2\n", "the slowest span (GET /, 100ms) of the service web", "  db SELECT", "2 log records of the trace\n"} {
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("drilldown prints %s, %v; want %s", out, err, want)
		}
	}
	out, _, err = runCommand(t, "trace", "1", "-o", "json")
	var tr apitype.Trace
	if err != nil || json.Unmarshal([]byte(out), &tr) != nil || len(tr.Spans) != 2 {
		t.Errorf("trace prints %s, %v", out, err)
	}
	out, _, err = runCommand(t, "trace", "1", "--attributes")
	if err != nil || !strings.Contains(out, "      db.system=\"pg\"\n") {
		t.Errorf("trace prints %s, %v", out, err)
	}
	_, errOut, err := runCommand(t, "logs", "x", "-n", "1")
	if err != nil || errOut != "warning: there are more than 1 records: raise --limit, or narrow the query or the range\n" {
		t.Errorf("a cut answer warns %q, %v", errOut, err)
	}
}

func TestQueryCommandErrors(t *testing.T) {
	url, _ := queryServer(t)
	f := func(args, want string) {
		t.Helper()
		out, _, err := runCommand(t, strings.Split(args, "|")...)
		if err == nil || !strings.Contains(err.Error(), want) || out != "" {
			t.Errorf("%s prints %q, %v; want %s", args, out, err, want)
		}
	}
	srv := httptest.NewServer(nil)
	srv.Close()
	f("status|--server|"+srv.URL, "no recorder answers at "+srv.URL+": start one with `inquest serve`")
	f("status|--server|ftp://x", "not the address of a server")
	f("status|--server|"+url+"|--output|xml", "it is text or json")
	f("logs|x|--server|"+url+"|--from|yesterday", `--from: cannot read "yesterday" as a time`)
	f("logs|x|--server|"+url+"|--from|now|--to|1h", "is not before --to")
	f("logs|x|--server|"+url+"|--limit|0", "at least 1")
	f("logs|x|--server|"+url+"|--order|up", "it is auto, newest, oldest or none")
	f("logs|--server|"+url, "accepts 1 arg(s)")
	f("logs||--server|"+url, `the parameter "query" is missing`)
	f("metrics|up|--server|"+url+"|--step|1m", "give --from too")
	f("metrics|up|--server|"+url+"|--from|1h|--step|x", "--step: cannot read")
	f("metrics|up|--server|"+url+"|--from|1h|--step|0", "at least 1ms")
	f("trace|xyz|--server|"+url, "not a trace id")
	f("drilldown|up|--server|"+url+"|--window|x", "--window: cannot read")
	f("drilldown|up|--server|"+url+"|--time|x", "--time: cannot read")
}

func TestHasPipe(t *testing.T) {
	f := func(query string, want bool) {
		t.Helper()
		if got := hasPipe(query); got != want {
			t.Errorf("%s: got %v", query, got)
		}
	}
	f("error", false)
	f("error | sort by (_time)", true)
	f(`"a|b"`, false)
	f(`"a\"|b"`, false)
	f("`a\\`|count()", true)
	f("'a|b' |fields x", true)
	f("user:in(_time:1d | fields user)", false)
	f("user:in(_time:1d | fields user) | limit 1", true)
	f(`"unclosed |`, false)
}
