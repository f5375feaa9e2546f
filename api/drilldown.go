package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"

	"inquest/api/apitype"
	"inquest/record"
	"inquest/store"
)

const (
	defaultWindow    = 5 * time.Minute
	drilldownLimit   = 10  // exemplars in the answer
	defaultTraceLogs = 200 // log records
)

// drilldown leads from a point of a metric to an example of what it measured
// and to what was logged there.
func (s *server) drilldown(w http.ResponseWriter, r *http.Request) error {
	expr, err := queryParam(r, `http_server_duration_seconds_bucket{job="checkout"}`)
	if err != nil {
		return err
	}
	at, err := s.timeParam(r, "time", s.now())
	if err != nil {
		return err
	}
	window, err := durationParam(r, "window", defaultWindow)
	if err != nil {
		return err
	}
	if window < time.Second || window > 24*time.Hour {
		return badParam("window", errorf("it must be from 1s to 24h"))
	}
	limit, err := intParam(r, "limit", defaultTraceLogs, s.limits.Rows)
	if err != nil {
		return err
	}
	selectors, err := s.selectors(expr)
	if err != nil {
		return err
	}
	if len(selectors) == 0 {
		return badParam("query", errorf("it names no series, so nothing leads to a trace"))
	}
	d := apitype.Drilldown{
		Query: expr, Time: at, From: at.Add(-window), To: at.Add(window),
		How: apitype.HowNone, Exemplars: []apitype.Exemplar{}, Logs: []map[string]string{},
	}
	res, err := s.cfg.Samples.QueryInstant(r.Context(), expr, at)
	if err != nil {
		return err
	}
	if d.Series, err = encodeValue(res.Value); err != nil {
		return err
	}
	if err := s.drillTrace(r.Context(), &d, selectors, res.Value); err != nil {
		return err
	}
	warnings := res.Warnings
	if d.Trace != nil && limit > 0 {
		logs, cut, warning, err := s.traceLogs(r.Context(), d.Trace.TraceID, limit)
		if err != nil {
			return err
		}
		d.Logs, d.LogsCut = append(d.Logs, logs...), cut
		warnings = withWarning(warnings, warning)
	}
	return writeSuccess(w, d, warnings...)
}

// drillTrace finds the trace: by exemplars, else by the slowest span.
func (s *server) drillTrace(ctx context.Context, d *apitype.Drilldown, selectors [][]*labels.Matcher, value parser.Value) error {
	found, _, err := s.findExemplars(ctx, selectors, d.From, d.To)
	if err != nil {
		return err
	}
	d.Exemplars = append(d.Exemplars, nearest(found, d.Time)...)
	tried := map[string]bool{}
	for _, e := range d.Exemplars {
		if e.TraceID == "" || tried[e.TraceID] {
			continue
		}
		tried[e.TraceID] = true
		if d.Trace, err = s.loadTrace(ctx, e.TraceID); err != nil {
			return err
		}
		if d.Trace != nil {
			d.How = apitype.HowExemplar
			d.Explanation = fmt.Sprintf("an exemplar of %s with the value %g, %s from the time asked for, names the trace",
				e.Metric, e.Value, e.Time.Sub(d.Time).Abs())
			return nil
		}
	}
	why := "the series has no exemplar in the window"
	if len(tried) > 0 {
		why = "no trace that the exemplars name is stored"
	}
	return s.drillSlowest(ctx, d, selectors, value, why)
}

// nearest returns the exemplars nearest to at, at most drilldownLimit. Of those
// equally near the larger value comes first.
func nearest(found []apitype.Exemplar, at time.Time) []apitype.Exemplar {
	slices.SortStableFunc(found, func(a, b apitype.Exemplar) int {
		return cmp.Or(cmp.Compare(a.Time.Sub(at).Abs(), b.Time.Sub(at).Abs()), cmp.Compare(b.Value, a.Value))
	})
	return found[:min(len(found), drilldownLimit)]
}

// drillSlowest takes the slowest span of the service and operation that the
// series is about.
func (s *server) drillSlowest(ctx context.Context, d *apitype.Drilldown, selectors [][]*labels.Matcher, value parser.Value, why string) error {
	hints := seriesHints(selectors, value)
	service := hintedService(hints)
	if service == "" {
		d.Explanation = why + ", and the series names no service (service_name or job) by which to look for spans"
		return nil
	}
	base := ofType(record.TypeSpan, service)
	operation, said := operationFilter(hints)
	for _, filter := range []string{operation, ""} {
		if filter == "" && operation != "" {
			said = "any operation, since none of its spans has " + said
		}
		row, err := s.slowest(ctx, strings.TrimSpace(base+" "+filter), d.From, d.To)
		if err != nil {
			return err
		}
		if row == nil {
			continue
		}
		if d.Trace, err = s.loadTrace(ctx, row[record.FieldTraceID]); err != nil || d.Trace == nil {
			return err
		}
		d.How = apitype.HowSlowestSpan
		ns, _ := strconv.ParseInt(row[record.FieldDuration], 10, 64)
		d.Explanation = fmt.Sprintf("%s; this is the trace of the slowest span (%s, %s) of the service %s in the window, with %s",
			why, row[record.FieldName], time.Duration(ns), service, said)
		return nil
	}
	d.Explanation = fmt.Sprintf("%s, and no span of the service %s is stored for it", why, service)
	return nil
}

func (s *server) slowest(ctx context.Context, filter string, from, to time.Time) (map[string]string, error) {
	rows, err := s.rows(ctx, store.RecordQuery{
		LogsQL: filter + " " + strconv.Quote(record.FieldTraceID) + ":*" + sortBy(record.FieldDuration, true, 1),
		From:   from, To: to, Limit: 1,
	})
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return rows[0], nil
}

// seriesHints are the labels of the point: what the selectors pin down, and
// what the series of the largest value has.
func seriesHints(selectors [][]*labels.Matcher, value parser.Value) map[string]string {
	hints := map[string]string{}
	if v, ok := value.(promql.Vector); ok && len(v) > 0 {
		largest := slices.MaxFunc(v, func(a, b promql.Sample) int { return cmp.Compare(a.F, b.F) })
		largest.Metric.Range(func(l labels.Label) { hints[l.Name] = l.Value })
	}
	for _, sel := range selectors {
		for _, m := range sel {
			if m.Type == labels.MatchEqual && m.Value != "" {
				hints[m.Name] = m.Value
			}
		}
	}
	return hints
}

func hintedService(hints map[string]string) string {
	for _, name := range []string{"service_name", "service.name"} {
		if v := hints[name]; v != "" {
			return v
		}
	}
	job := hints["job"] // namespace/name, as OpenTelemetry's Prometheus compatibility has it
	return job[strings.LastIndexByte(job, '/')+1:]
}

// operationLabels lead from a label of a series to the spans it is about.
var operationLabels = []struct{ label, field string }{
	{"span_name", record.FieldName},
	{"operation", record.FieldName},
	{"http_route", "http.route"},
	{"rpc_method", "rpc.method"},
	{"gen_ai_operation_name", "gen_ai.operation.name"},
	{"messaging_operation", "messaging.operation"},
	{"db_operation", "db.operation"},
	{"url_path", "url.path"},
	{"http_target", "http.target"},
}

// operationFilter is a filter for the spans of the operation that the labels
// name, and how to say it.
func operationFilter(hints map[string]string) (filter, said string) {
	for _, o := range operationLabels {
		for _, label := range []string{o.label, o.field} {
			if v := hints[label]; v != "" && label != record.FieldName {
				return equals(o.field, v), o.field + "=" + strconv.Quote(v)
			}
		}
	}
	return "", "any operation, since the series names none"
}
