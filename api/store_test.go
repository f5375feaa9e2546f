package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"inquest/api/apitype"
	"inquest/record"
	"inquest/store"
	"inquest/store/local"
)

// incident is telemetry of one request through web and cart, slow in cart, and
// of fast requests before and after it, ten seconds apart.
type incident struct {
	start time.Time
	rows  []record.Row
	md    []pmetric.Metrics

	buckets [3]uint64
	sum     float64
}

func (in *incident) id(n int) pcommon.TraceID { return pcommon.TraceID{15: byte(n + 1), 0: 0xab} }

func (in *incident) add(rows []record.Row) {
	for _, r := range rows { // the converter uses its memory again
		in.rows = append(in.rows, record.Row{Time: r.Time, Stream: slices.Clone(r.Stream), Fields: slices.Clone(r.Fields)})
	}
}

func newIncident() *incident {
	in := &incident{start: time.Now().Add(-10 * time.Minute).Truncate(time.Second)}
	var c record.Converter
	for n := range 10 {
		at := in.start.Add(time.Duration(n) * 10 * time.Second)
		took := 20 * time.Millisecond
		if n == 5 {
			took = 3 * time.Second
		}
		td := ptrace.NewTraces()
		web := in.span(td, "web", "GET /cart", n, 1, 0, at, took+10*time.Millisecond)
		web.SetKind(ptrace.SpanKindServer)
		web.Attributes().PutStr("http.route", "/cart")
		web.Attributes().PutStr("name", "sent by the application")
		cart := in.span(td, "cart", "GetCart", n, 2, 1, at.Add(5*time.Millisecond), took)
		if n == 5 {
			cart.Status().SetCode(ptrace.StatusCodeError)
			cart.Events().AppendEmpty().SetName("retry")
			cart.Events().At(0).Attributes().PutInt("bytes", 1<<60+1)
		}
		in.add(c.Spans(td, uint64(n+1), 0))

		ld := plog.NewLogs()
		rl := ld.ResourceLogs().AppendEmpty()
		rl.Resource().Attributes().PutStr("service.name", "cart")
		for i, text := range []string{"second", "first"} {
			lr := rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
			lr.SetTimestamp(pcommon.NewTimestampFromTime(at.Add(time.Duration(10-i) * time.Millisecond)))
			lr.Body().SetStr(fmt.Sprintf("%s line of request %d", text, n))
			lr.SetTraceID(in.id(n))
		}
		in.add(c.Logs(ld, uint64(n+100), 0))
		in.md = append(in.md, in.duration(n, at, took))
		in.add(c.Exemplars(in.md[n], uint64(n+200), 0))
	}
	return in
}

func (in *incident) span(td ptrace.Traces, service, name string, n int, id, parent byte, at time.Time, took time.Duration) ptrace.Span {
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", service)
	rs.Resource().Attributes().PutStr("service.version", "1.0")
	sp := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	sp.SetName(name)
	sp.SetTraceID(in.id(n))
	sp.SetSpanID(pcommon.SpanID{6: byte(n + 1), 7: id})
	if parent != 0 {
		sp.SetParentSpanID(pcommon.SpanID{6: byte(n + 1), 7: parent})
	}
	sp.SetStartTimestamp(pcommon.NewTimestampFromTime(at))
	sp.SetEndTimestamp(pcommon.NewTimestampFromTime(at.Add(took)))
	return sp
}

func (in *incident) duration(n int, at time.Time, took time.Duration) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", "web")
	rm.Resource().Attributes().PutStr("team", "shop")
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("http.server.request.duration")
	m.SetUnit("s")
	m.SetDescription("How long requests take.")
	m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	p := m.Histogram().DataPoints().AppendEmpty()
	p.SetStartTimestamp(pcommon.NewTimestampFromTime(in.start.Add(-time.Second)))
	p.SetTimestamp(pcommon.NewTimestampFromTime(at))
	p.ExplicitBounds().FromRaw([]float64{0.1, 1})
	in.buckets[min(int(took/time.Second), 1)*2]++
	p.BucketCounts().FromRaw(in.buckets[:])
	p.SetCount(uint64(n + 1))
	in.sum += took.Seconds()
	p.SetSum(in.sum)
	p.Attributes().PutStr("http.route", "/cart")
	p.Attributes().PutInt("http.response.status_code", 200)
	ex := p.Exemplars().AppendEmpty()
	ex.SetTimestamp(pcommon.NewTimestampFromTime(at))
	ex.SetDoubleValue(took.Seconds())
	ex.SetTraceID(in.id(n))
	return md
}

// storedIncident returns the API on a real store that holds the incident.
func storedIncident(t *testing.T) (http.Handler, *incident) {
	t.Helper()
	records, err := local.OpenRecords(local.RecordsOptions{Dir: t.TempDir(), MinFreeBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	samples, err := local.OpenSamples(local.SamplesOptions{Dir: t.TempDir(), MinFreeBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(records.Close(), samples.Close()); err != nil {
			t.Error(err)
		}
	})
	in := newIncident()
	for i, state := range []string{"confirmed", "suspected"} {
		fields := VerdictFields(Investigation{
			ID: fmt.Sprintf("v%d", i), State: state, From: in.start, To: in.start.Add(time.Minute),
			Cause: "cart is slow", Verdict: json.RawMessage(`{"n":1}`),
		})
		in.rows = append(in.rows, record.Row{
			Time: in.start.Add(time.Duration(i) * time.Minute).UnixNano(), Stream: []record.Field{{Name: record.FieldType, Value: string(record.TypeVerdict)}},
			Fields: append(fields, record.Field{Name: record.FieldSeq, Value: "1000"}),
		})
	}
	if err := records.Append(t.Context(), store.Batch{Seq: 1, Rows: in.rows}); err != nil {
		t.Fatal(err)
	}
	for _, md := range in.md {
		if rejected, err := samples.AppendMetrics(t.Context(), md); err != nil || len(rejected) > 0 {
			t.Fatal(rejected, err)
		}
	}
	return newTestHandler(t, Config{Records: records, CatchUp: records.Flush, Samples: samples}), in
}

func getData[T any](t *testing.T, h http.Handler, target string) T {
	t.Helper()
	w := askChecked(t, h, 200, "GET", target, nil, "")
	var answer struct{ Data T }
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatalf("%s: %v: %s", target, err, w.Body)
	}
	return answer.Data
}

func TestOnStore(t *testing.T) {
	h, in := storedIncident(t)
	slow := in.id(5).String()
	f := func(target, want string) {
		t.Helper()
		w := askChecked(t, h, 200, "GET", target, nil, "")
		if got := w.Body.String(); !strings.Contains(got, want) {
			t.Errorf("%s answers %.600s, want %s", target, got, want)
		}
	}
	f("/api/v1/records/query?query=request+5+|+sort+by+(_time)+|+fields+_msg", `{"_msg":"first line of request 5"}`+"\n"+`{"_msg":"second line of request 5"}`)
	f("/api/v1/records/query?query=*+|+stats+by+(record.type)+count()+n+|+sort+by+(record.type)", `{"record.type":"exemplar","n":"10"}`)
	f("/api/v1/records/query?limit=1&query=line&order=newest", `"_msg":"second line of request 9"`)
	f("/jaeger/api/services", `"data":["cart","web"]`)
	f("/jaeger/api/services/web/operations", `"data":["GET /cart"]`)
	f("/jaeger/api/operations?service=web", `"data":[{"name":"GET /cart","spanKind":"server"}]`)
	f("/jaeger/api/dependencies", `"data":[{"parent":"web","child":"cart","callCount":10}]`)

	search := func(params string, want ...int) {
		t.Helper()
		var got, wanted []string
		for _, tr := range getData[[]jaegerTraceJSON](t, h, "/jaeger/api/traces?"+params) {
			got = append(got, tr.TraceID)
			if len(tr.Spans) != 2 {
				t.Errorf("%s: trace %s has %d spans", params, tr.TraceID, len(tr.Spans))
			}
		}
		for _, n := range want {
			wanted = append(wanted, in.id(n).String())
		}
		if !slices.Equal(got, wanted) {
			t.Errorf("%s finds %v, want %v", params, got, wanted)
		}
	}
	search("service=web", 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
	search("service=web&limit=2", 9, 8)
	search("service=web&minDuration=1s", 5)
	search("service=web&maxDuration=1s&limit=1", 9)
	search("service=cart&tags="+`{"error":"true"}`, 5)
	search("service=cart&operation=GetCart&tags="+`{"error":"false"}&limit=1`, 9)
	search("service=web&tag=http.route:/cart&tag=span.kind:server&limit=1", 9)
	search("service=web&tag=http.route:/other")
	search(fmt.Sprintf("service=web&start=%d&end=%d", in.start.UnixMicro(), in.start.Add(15*time.Second).UnixMicro()), 1, 0)
	search("traceID="+slow, 5)

	tr := getData[apitype.Trace](t, h, "/api/v1/traces/"+slow)
	if len(tr.Spans) != 2 || tr.Spans[0].Name != "GET /cart" || tr.Spans[1].Depth != 1 || tr.DurationNS != 3010e6 || tr.Spans[0].SelfNS != 10e6 ||
		tr.Spans[0].Attributes["name"] != "sent by the application" || tr.Spans[0].Resource["service.version"] != "1.0" {
		t.Errorf("the trace is %+v", tr)
	}
	otlp, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(ask(t, h, "GET", "/api/v1/traces/"+slow+"?format=otlp", nil, "").Body.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if v, _ := otlp.ResourceSpans().At(1).ScopeSpans().At(0).Spans().At(0).Events().At(0).Attributes().Get("bytes"); v.Int() != 1<<60+1 {
		t.Errorf("an integer of an event comes back as %v", v.AsRaw())
	}

	list := getData[[]Investigation](t, h, "/api/v1/investigations")
	if len(list) != 2 || list[0].ID != "v1" || list[0].Verdict != nil || !list[1].From.Equal(in.start) {
		t.Errorf("the list is %+v", list)
	}
	if list := getData[[]Investigation](t, h, "/api/v1/investigations?state=confirmed"); len(list) != 1 || list[0].ID != "v0" {
		t.Errorf("the list of confirmed is %+v", list)
	}
	if inv := getData[Investigation](t, h, "/api/v1/investigations/v0"); inv.Cause != "cart is slow" || string(inv.Verdict) != `{"n":1}` {
		t.Errorf("the verdict is %+v", inv)
	}
}

func TestMetricToTraceOnStore(t *testing.T) {
	h, in := storedIncident(t)
	at := in.start.Add(50 * time.Second)
	exemplars := getData[[]promExemplarSeries](t, h, fmt.Sprintf("/api/v1/query_exemplars?start=%d&end=%d&query=", at.Add(-10*time.Second).Unix(), at.Unix())+
		`histogram_quantile(0.9,sum+by+(le)(rate(http_server_request_duration_seconds_bucket{http_route="/cart",job="web",http_response_status_code="200"}[5m])))`)
	if len(exemplars) != 1 || len(exemplars[0].Exemplars) != 2 || exemplars[0].Exemplars[1].Value != "3" || exemplars[0].Exemplars[1].Labels["trace_id"] != in.id(5).String() {
		t.Errorf("exemplars are %+v", exemplars)
	}
	// The labels are those of the series.
	own := exemplars[0].SeriesLabels
	delete(own, "__name__")
	delete(own, "le")
	series := getData[[]map[string]string](t, h, "/api/v1/series?match[]=http_server_request_duration_seconds_count")
	if len(series) != 1 {
		t.Fatalf("series are %v", series)
	}
	delete(series[0], "__name__")
	delete(series[0], "team") // of which a record does not say that it is the resource's
	if !maps.Equal(own, series[0]) {
		t.Errorf("exemplars have the labels %v, their series %v", own, series[0])
	}
	if e := getData[[]promExemplarSeries](t, h, `/api/v1/query_exemplars?query=http_server_request_duration_seconds_bucket{team="shop"}`); len(e) != 1 || len(e[0].Exemplars) != 10 {
		t.Errorf("exemplars by a resource's attribute are %+v", e)
	}
	f := func(query, how string) {
		t.Helper()
		began := time.Now()
		d := getData[apitype.Drilldown](t, h, fmt.Sprintf("/api/v1/drilldown?time=%d&window=1m&query=%s", at.Unix(), query))
		if d.How != how || d.Trace == nil || d.Trace.TraceID != in.id(5).String() || len(d.Logs) != 2 || d.Logs[0][record.FieldBody] != "first line of request 5" {
			t.Errorf("%s leads to %s, %+v, %v", query, d.Explanation, d.Trace, d.Logs)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("%s takes %s", query, took)
		}
	}
	f(`http_server_request_duration_seconds_bucket{job="web"}`, apitype.HowExemplar)
	f(`histogram_quantile(0.99,sum+by+(le,job)(rate(http_server_request_duration_seconds_bucket[1m])))`, apitype.HowExemplar)
	f(`http_server_other{job="web"}`, apitype.HowSlowestSpan)
	f(`sum(rate(http_server_active_requests{job="cart"}[5m]))`, apitype.HowSlowestSpan)
}

func TestPromOnStore(t *testing.T) {
	h, in := storedIncident(t)
	f := func(target, want string) {
		t.Helper()
		w := askChecked(t, h, 200, "GET", target, nil, "")
		if got := w.Body.String(); !strings.Contains(got, want) {
			t.Errorf("%s answers %.600s, want %s", target, got, want)
		}
	}
	last := in.start.Add(90 * time.Second).Unix()
	const name = "http_server_request_duration_seconds"
	f(fmt.Sprintf("/api/v1/query?query=sum+by+(job)(%s_count)&time=%d", name, last), fmt.Sprintf(`{"metric":{"job":"web"},"value":[%d,"10"]}`, last))
	f(fmt.Sprintf("/api/v1/query?query=1%%2B1&time=%d", last), fmt.Sprintf(`{"resultType":"scalar","result":[%d,"2"]}`, last))
	f(fmt.Sprintf("/api/v1/query_range?query=sum(%s_count)&start=%d&end=%d&step=90", name, in.start.Unix(), last),
		fmt.Sprintf(`"values":[[%d,"1"],[%d,"10"]]`, in.start.Unix(), last))
	f("/api/v1/labels", `"http_route"`)
	f("/api/v1/label/__name__/values?match[]={job=\"web\"}", `"`+name+`_bucket"`)
	f("/api/v1/label/job/values?limit=1", `"data":["web"]`)
	f("/api/v1/metadata?metric="+name, `"`+name+`":[{"type":"histogram","unit":"seconds","help":"How long requests take."}]`)
	askChecked(t, h, 400, "GET", "/api/v1/query?query=sum(", nil, "")
	askChecked(t, h, 400, "GET", "/api/v1/query_range?query=unknown()&start=1&end=2&step=1", nil, "")
	askChecked(t, h, 400, "GET", "/api/v1/records/query?query=a+|+nonsense", nil, "")
}

// A query on a store that is told to stop ends.
func TestCancelOnStore(t *testing.T) {
	h, _ := storedIncident(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", "http://localhost/api/v1/records/query?query=*", nil)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	if w.Code != statusClientClosed {
		t.Errorf("answers %d: %s", w.Code, w.Body)
	}
}
