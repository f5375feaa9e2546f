package api

import (
	"math"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"

	"inquest/store"
)

func TestPromEncoding(t *testing.T) {
	f := func(v parser.Value, want string) {
		t.Helper()
		got, err := encodeValue(v)
		if err != nil || string(got) != want {
			t.Errorf("got %s, %v\nwant %s", got, err, want)
		}
	}
	up := labels.FromStrings("__name__", "up", "job", `a"b`)
	h := &histogram.FloatHistogram{
		Count: 10, Sum: 20.5, Schema: 0, ZeroThreshold: 0.25, ZeroCount: 3,
		PositiveSpans: []histogram.Span{{Offset: 0, Length: 2}}, PositiveBuckets: []float64{5, 2},
	}
	const hJSON = `{"count":"10","sum":"20.5","buckets":[[3,"-0.25","0.25","3"],[0,"0.5","1","5"],[0,"1","2","2"]]}`
	f(promql.Vector{}, `[]`)
	f(promql.Matrix{}, `[]`)
	f(promql.Matrix(nil), `[]`)
	f(promql.Scalar{T: 1500, V: math.Inf(1)}, `[1.500,"+Inf"]`)
	f(promql.String{T: 1000, V: "a\nb"}, `[1,"a\nb"]`)
	f(promql.Vector{{Metric: up, T: 1435781451781, F: 1}}, `[{"metric":{"__name__":"up","job":"a\"b"},"value":[1435781451.781,"1"]}]`)
	f(promql.Vector{{T: 1005, F: math.NaN()}, {T: -1, F: 1e-7}}, `[{"metric":{},"value":[1.005,"NaN"]},{"metric":{},"value":[-0.001,"1e-07"]}]`)
	f(promql.Vector{{Metric: up, T: 1000, H: h}}, `[{"metric":{"__name__":"up","job":"a\"b"},"histogram":[1,`+hJSON+`]}]`)
	f(promql.Matrix{{Metric: up, Floats: []promql.FPoint{{T: 0, F: 1}, {T: 15000, F: 2.5}}}},
		`[{"metric":{"__name__":"up","job":"a\"b"},"values":[[0,"1"],[15,"2.5"]]}]`)
	f(promql.Matrix{{Floats: []promql.FPoint{{T: 0, F: 1}}, Histograms: []promql.HPoint{{T: 1000, H: h}}}},
		`[{"metric":{},"values":[[0,"1"]],"histograms":[[1,`+hJSON+`]]}]`)
}

// The requests that Grafana's Prometheus data source sends.
func TestGrafanaPrometheus(t *testing.T) {
	samples := &fakeSamples{
		result: store.Result{Value: promql.Vector{{Metric: labels.FromStrings("job", "x"), T: 1000, F: 2}}, Warnings: []string{"w"}},
		series: []labels.Labels{labels.FromStrings("__name__", "up", "job", "x"), labels.FromStrings("__name__", "up", "job", "y")},
		names:  []string{"a", "b", "c"},
		meta:   map[string]store.Metadata{"up": {Type: "gauge"}, "b": {Type: "counter", Unit: "s", Help: "h"}},
	}
	h := newTestHandler(t, Config{Samples: samples, Version: "1"})
	f := func(method, target, body, wantAsked, want string) {
		t.Helper()
		header := map[string]string(nil)
		if method == "POST" {
			header = formHeader
		}
		w := askChecked(t, h, 200, method, target, header, body)
		if got := strings.TrimSpace(w.Body.String()); !strings.Contains(got, want) {
			t.Errorf("%s %s answers %s, want %s", method, target, got, want)
		}
		if wantAsked != "" && samples.last != wantAsked {
			t.Errorf("%s %s asks %q, want %q", method, target, samples.last, wantAsked)
		}
	}
	const vector = `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"job":"x"},"value":[1,"2"]}]},"warnings":["w"]}`
	f("POST", "/api/v1/query", "query=1%2B1&time=1767366245.5", "1+1 @1767366245500", vector)
	f("GET", "/api/v1/query?query=up&time=2026-01-02T15:04:05.781Z", "", "up @1767366245781", vector)
	f("POST", "/api/v1/query_range", "query=up&start=1767366000&end=1767366300&step=15", "up @1767366000000..1767366300000/15s", vector)
	f("GET", "/api/v1/query_range?query=up&start=1767366000.123&end=1767366300&step=1m", "", "up @1767366000123..1767366300000/1m0s", vector)
	f("GET", "/api/v1/query_range?query=up&start=0&end=165000&step=15", "", "up @0..165000000/15s", vector)
	f("GET", "/api/v1/series?match[]=up&match[]=%7Bjob%3D%22x%22%7D&start=1&end=2&limit=1", "", `[up {job="x"}] limit 2`,
		`{"status":"success","data":[{"__name__":"up","job":"x"}],"warnings":["results truncated due to limit"]}`)
	f("POST", "/api/v1/series", "match[]=up", "[up] limit 0", `"job":"y"}]}`)
	f("POST", "/api/v1/labels", "start=1&end=2&match[]=up", "[up] limit 0", `{"status":"success","data":["a","b","c"]}`)
	f("GET", "/api/v1/labels?limit=2", "", "[] limit 3", `{"status":"success","data":["a","b"],"warnings":["results truncated due to limit"]}`)
	f("GET", "/api/v1/label/__name__/values?match[]=up&limit=40000", "", "__name__ [up] limit 40001", `["a","b","c"]`)
	f("GET", "/api/v1/label/service.name/values", "", "service.name [] limit 0", `["a","b","c"]`)
	f("GET", "/api/v1/label/U__service_2e_name/values", "", "service.name [] limit 0", `["a","b","c"]`)
	f("GET", "/api/v1/metadata?limit=1", "", "[]", `{"b":[{"type":"counter","unit":"s","help":"h"}]}`)
	f("GET", "/api/v1/metadata?metric=up", "", "[up]", `"up":[{"type":"gauge","unit":"","help":""}]`)
	f("GET", "/api/v1/status/buildinfo", "", "", `"version":"3.`)
	f("GET", "/api/v1/rules?type=alert", "", "", `{"status":"success","data":{"groups":[]}}`)
	f("GET", "/api/v1/alerts", "", "", `{"status":"success","data":{"alerts":[]}}`)
	f("POST", "/api/v1/format_query", "query=sum(rate(a[5m]))by(job)", "", `"sum by (job) (rate(a[5m]))"`)
}

func TestPromErrors(t *testing.T) {
	h := newTestHandler(t, Config{})
	f := func(target, want string) {
		t.Helper()
		w := askChecked(t, h, 400, "GET", target, nil, "")
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s answers %s, want %s", target, w.Body, want)
		}
	}
	f("/api/v1/query", `the parameter \"query\" is missing`)
	f("/api/v1/query?query=up&time=yesterday", `cannot read \"yesterday\" as a time`)
	f("/api/v1/query?query=up&timeout=x", `invalid parameter \"timeout\"`)
	f("/api/v1/query?query=up&limit=-1", `invalid parameter \"limit\"`)
	f("/api/v1/query?query=%zz", `cannot read the parameters`)
	f("/api/v1/query_range?query=up&start=1&end=2", `invalid parameter \"step\"`)
	f("/api/v1/query_range?query=up&start=2&end=1&step=1", "exchange start and end")
	f("/api/v1/query_range?query=up&start=1&end=2&step=0", "step widths are not accepted")
	f("/api/v1/query_range?query=up&start=1&end=2&step=-1", `invalid parameter \"step\"`)
	f("/api/v1/query_range?query=up&start=0&end=11001&step=1", "exceeded maximum resolution of 11,000")
	f("/api/v1/query_range?query=up&start=1700-01-01T00:00:00Z&end=2200-01-01T00:00:00Z&step=1", "exceeded maximum resolution of 11,000")
	f("/api/v1/series", "no match[] parameter")
	f("/api/v1/series?match[]=up{", `invalid parameter \"match[]\"`)
	f("/api/v1/format_query?query=sum(", `invalid parameter \"query\"`)
	f("/api/v1/query_exemplars?query=sum(", `invalid parameter \"query\"`)
	f("/api/v1/drilldown?query=1", "names no series")
	f("/api/v1/drilldown?query=up&window=0", "1s to 24h")
}
