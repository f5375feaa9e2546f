package api

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/otlptranslator"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"

	"inquest/api/apitype"
	"inquest/store"
)

// Whatever name the translator gives to a metric is found to be its own.
func TestSameMetric(t *testing.T) {
	namer := otlptranslator.NewMetricNamer("", otlptranslator.UnderscoreEscapingWithSuffixes)
	f := func(name, unit string, kind otlptranslator.MetricType, parts ...string) {
		t.Helper()
		prom, err := namer.Build(otlptranslator.Metric{Name: name, Unit: unit, Type: kind})
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range append(parts, "") {
			if !sameMetric(prom+part, name) {
				t.Errorf("%s is not found to be %s", prom+part, name)
			}
		}
	}
	buckets := []string{"_bucket", "_count", "_sum"}
	f("http.server.duration", "s", otlptranslator.MetricTypeHistogram, buckets...)
	f("http.server.request.duration", "ms", otlptranslator.MetricTypeHistogram, buckets...)
	f("http.server.request.body.size", "By", otlptranslator.MetricTypeExponentialHistogram, buckets...)
	f("gen_ai.server.time_to_first_token", "s", otlptranslator.MetricTypeHistogram, buckets...)
	f("requests", "1", otlptranslator.MetricTypeMonotonicCounter)
	f("requests.total", "{request}", otlptranslator.MetricTypeMonotonicCounter)
	f("system.cpu.utilization", "1", otlptranslator.MetricTypeGauge)
	f("io.total.bytes", "By", otlptranslator.MetricTypeMonotonicCounter)
	f("throughput", "By/s", otlptranslator.MetricTypeGauge)
	f("request.count", "", otlptranslator.MetricTypeMonotonicCounter)
	f("vllm:time_to_first_token_seconds", "", otlptranslator.MetricTypeHistogram, buckets...)
	f("2xx", "", otlptranslator.MetricTypeGauge)
	f("count", "", otlptranslator.MetricTypeMonotonicCounter)

	not := func(prom, otlp string) {
		t.Helper()
		if sameMetric(prom, otlp) {
			t.Errorf("%s is taken for %s", prom, otlp)
		}
	}
	not("http_server_request_duration_seconds_bucket", "http.server.duration")
	not("http_server_duration_seconds", "http.server.request.duration")
	not("http_client_duration_seconds", "http.server.duration")
	not("io_seconds_total", "io.bytes")
	not("up", "uptime")
}

func exemplarRows() []map[string]string {
	row := func(second int, value, trace, route string) map[string]string {
		return map[string]string{
			"_time": fmt.Sprintf("2026-01-02T15:00:%02dZ", second), "record.type": "exemplar", "service.name": "web", "service.namespace": "shop",
			"service.instance.id": "i1", "resource.zone": "z1", "name": "http.server.duration", "value": value, "labels": `{"http.route":"` + route + `","code":200}`,
			"trace_id": trace, "span_id": "00000000000000a1", "journal.seq": "1",
		}
	}
	broken := row(9, "x", "1", "/cart")
	return []map[string]string{
		row(30, "0.9", testTraceID, "/cart"),
		row(10, "0.2", "00000000000000000000000000000011", "/cart"),
		row(20, "0.5", "00000000000000000000000000000012", "/pay"),
		broken,
	}
}

func exemplarStore() *fakeRecords {
	return &fakeRecords{answers: []fakeAnswer{
		{contains: `stats by ("name")`, rows: []map[string]string{{"name": "http.server.duration"}, {"name": "http.server.request.size"}}},
		{contains: `"record.type"="exemplar"`, rows: exemplarRows()},
		{contains: `"record.type"="log"`, rows: []map[string]string{{"_time": "2026-01-02T15:00:00Z", "_msg": "one"}, {"_time": "2026-01-02T15:00:01Z", "_msg": "two"}}},
		{contains: testTraceID, rows: testTrace()},
	}}
}

func TestQueryExemplars(t *testing.T) {
	f := func(query string, wantValues ...string) {
		t.Helper()
		records := exemplarStore()
		h := newTestHandler(t, Config{Records: records})
		w := askChecked(t, h, 200, "POST", "/api/v1/query_exemplars", formHeader, "start=1767366000&end=1767366100&query="+query)
		var answer struct{ Data []promExemplarSeries }
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
			t.Fatal(err)
		}
		var values []string
		for _, s := range answer.Data {
			for _, e := range s.Exemplars {
				values = append(values, s.SeriesLabels["http_route"]+"="+e.Value)
			}
		}
		if strings.Join(values, " ") != strings.Join(wantValues, " ") {
			t.Errorf("%s: got %v, want %v", query, values, wantValues)
		}
	}
	const m = "http_server_duration_seconds_bucket"
	f(m, "/cart=0.2", "/cart=0.9", "/pay=0.5")
	f("histogram_quantile(0.9, sum by (le) (rate("+m+"[5m])))", "/cart=0.2", "/cart=0.9", "/pay=0.5")
	f("rate(http_server_duration_seconds_count[5m])", "/cart=0.2", "/cart=0.9", "/pay=0.5")
	f(m+`{http_route="/pay"}`, "/pay=0.5")
	f(m+`{http_route!~"/p.*",code="200",job="shop/web",instance="i1",service_name="web"}`, "/cart=0.2", "/cart=0.9")
	f(m + `{job="web"}`)
	f(m+`{le="0.5"}`, "/cart=0.2", "/pay=0.5")
	f(m+`{le="%2BInf"}`, "/cart=0.2", "/cart=0.9", "/pay=0.5")
	f(m+`{http_route="/pay"} / `+m+`{http_route="/cart"}`, "/cart=0.2", "/cart=0.9", "/pay=0.5")
	f(`{__name__=~"http_server_dur.*"}`, "/cart=0.2", "/cart=0.9", "/pay=0.5")
	f("http_server_other_seconds")
	f("1")
}

func TestQueryExemplarsAnswer(t *testing.T) {
	h := newTestHandler(t, Config{Records: exemplarStore(), Limits: Limits{Exemplars: 1}})
	w := askChecked(t, h, 200, "GET", "/api/v1/query_exemplars?query=http_server_duration_seconds_bucket", nil, "")
	const want = `{"status":"success","data":[{"seriesLabels":{"__name__":"http_server_duration_seconds_bucket","code":"200","http_route":"/cart","instance":"i1","job":"shop/web",` +
		`"service_instance_id":"i1","service_name":"web","service_namespace":"shop","zone":"z1"},` +
		`"exemplars":[{"labels":{"span_id":"00000000000000a1","trace_id":"4bf92f3577b34da6a3ce929d0e0e4736"},"value":"0.9","timestamp":1767366030}]}],` +
		`"warnings":["only 1 exemplars are shown: narrow the selector or the time range"]}`
	if got := strings.TrimSpace(w.Body.String()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestDrilldown(t *testing.T) {
	f := func(records *fakeRecords, query, how, explanation, trace string, logs int) apitype.Drilldown {
		t.Helper()
		h := newTestHandler(t, Config{
			Records: records,
			Samples: &fakeSamples{result: store.Result{Value: promql.Vector{
				{Metric: labels.FromStrings("job", "shop/web", "http_route", "/cart"), T: 1767366030000, F: 0.9},
				{Metric: labels.FromStrings("job", "shop/mail"), T: 1767366030000, F: 0.1},
			}}},
		})
		w := askChecked(t, h, 200, "GET", "/api/v1/drilldown?time=1767366030&limit=1&query="+query, nil, "")
		var answer struct{ Data apitype.Drilldown }
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
			t.Fatal(err)
		}
		d := answer.Data
		id := ""
		if d.Trace != nil {
			id = d.Trace.TraceID
		}
		if d.How != how || !strings.Contains(d.Explanation, explanation) || id != trace || len(d.Logs) != logs {
			t.Errorf("%s: %s, %q, trace %q, %d logs; want %s, %q, %q, %d", query, d.How, d.Explanation, id, len(d.Logs), how, explanation, trace, logs)
		}
		return d
	}
	d := f(exemplarStore(), "http_server_duration_seconds_bucket", "exemplar", "with the value 0.9, 0s from the time", testTraceID, 1)
	if len(d.Exemplars) != 3 || d.Exemplars[0].Value != 0.9 || d.Exemplars[1].Value != 0.5 || !d.LogsCut {
		t.Errorf("exemplars %+v, logs cut %v", d.Exemplars, d.LogsCut)
	}

	slowest := fakeAnswer{contains: `"http.route":="/cart" "trace_id":*`, rows: []map[string]string{{"trace_id": testTraceID, "name": "GET /cart", "duration_ns": "100000000"}}}
	spans := fakeAnswer{contains: `"trace_id":="` + testTraceID, rows: testTrace()}
	records := &fakeRecords{answers: []fakeAnswer{slowest, spans}}
	f(records, "http_server_duration_seconds_bucket", "slowest_span", `has no exemplar in the window; this is the trace of the slowest span (GET /cart, 100ms) of the service web in the window, with http.route="/cart"`, testTraceID, 1)
	q := records.asked[1]
	if q.From.Unix() != 1767366030-300 || q.To.Unix() != 1767366030+300 || !strings.HasPrefix(q.LogsQL, `{"record.type"="span","service.name"="web"}`) {
		t.Errorf("spans are looked for by %+v", q)
	}
	slowest.contains = `"service.name"="web"} "trace_id":*`
	f(&fakeRecords{answers: []fakeAnswer{slowest, spans}}, "x", "slowest_span", `any operation, since none of its spans has http.route="/cart"`, testTraceID, 1)
	f(&fakeRecords{}, "x", "none", "no span of the service web is stored", "", 0)
	f(&fakeRecords{}, "x{job='other/a/pay'}", "none", "no span of the service pay is stored", "", 0)

	// The exemplars name traces that nobody sent.
	gone := exemplarStore()
	gone.answers = gone.answers[:2]
	f(gone, "http_server_duration_seconds_bucket", "none", "no trace that the exemplars name is stored", "", 0)
}
