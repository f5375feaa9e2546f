package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"inquest/api/apitype"
	"inquest/record"
	"inquest/store"
)

// promExemplarSeries is one element of Prometheus' answer.
type promExemplarSeries struct {
	SeriesLabels map[string]string `json:"seriesLabels"`
	Exemplars    []promExemplar    `json:"exemplars"`
}

type promExemplar struct {
	Labels    map[string]string `json:"labels"`
	Value     string            `json:"value"`
	Timestamp float64           `json:"timestamp"`
}

func (s *server) promExemplars(w http.ResponseWriter, r *http.Request) error {
	expr, err := queryParam(r, "http_server_duration_seconds_bucket")
	if err != nil {
		return err
	}
	from, to, err := s.rangeParams(r, apitype.MinTime, apitype.MaxTime)
	if err != nil {
		return err
	}
	selectors, err := s.selectors(expr)
	if err != nil {
		return err
	}
	found, cut, err := s.findExemplars(r.Context(), selectors, from, to)
	if err != nil {
		return err
	}
	var warnings []string
	if cut {
		warnings = append(warnings, fmt.Sprintf("only %d exemplars are shown: narrow the selector or the time range", s.limits.Exemplars))
	}
	return writeSuccess(w, groupExemplars(found), warnings...)
}

// selectors returns the series selectors that a PromQL expression contains.
func (s *server) selectors(expr string) ([][]*labels.Matcher, error) {
	parsed, err := s.promql.ParseExpr(expr)
	if err != nil {
		return nil, badParam("query", err)
	}
	return parser.ExtractSelectors(parsed), nil
}

func groupExemplars(found []apitype.Exemplar) []promExemplarSeries {
	answer := []promExemplarSeries{}
	index := map[string]int{}
	for _, e := range found {
		ls := make(map[string]string, len(e.Labels)+1)
		for k, v := range e.Labels {
			ls[k] = v
		}
		ls[model.MetricNameLabel] = e.Metric
		key := mapKey(ls)
		i, ok := index[key]
		if !ok {
			i = len(answer)
			index[key] = i
			answer = append(answer, promExemplarSeries{SeriesLabels: ls})
		}
		own := map[string]string{}
		if e.TraceID != "" {
			own["trace_id"] = e.TraceID
		}
		if e.SpanID != "" {
			own["span_id"] = e.SpanID
		}
		answer[i].Exemplars = append(answer[i].Exemplars, promExemplar{
			Labels:    own,
			Value:     strconv.FormatFloat(e.Value, 'f', -1, 64),
			Timestamp: float64(e.Time.UnixMilli()) / 1000,
		})
	}
	return answer
}

// findExemplars returns the exemplars of the series that any of the selectors
// matches, oldest first. Exemplars are records: they outlive the head of the
// time-series store, and those of to are included as in Prometheus.
func (s *server) findExemplars(ctx context.Context, selectors [][]*labels.Matcher, from, to time.Time) (found []apitype.Exemplar, cut bool, err error) {
	names, err := s.exemplarNames(ctx, from, to)
	if err != nil {
		return nil, false, err
	}
	seen := map[string]bool{}
	for _, sel := range selectors {
		var mine []string
		for _, name := range names {
			if namesMatch(sel, name) {
				mine = append(mine, name)
			}
		}
		if len(mine) == 0 {
			continue
		}
		q := store.RecordQuery{
			LogsQL: ofType(record.TypeExemplar, serviceOf(sel)) + " " + oneOf(record.FieldName, mine),
			From:   from, To: includeEnd(to),
		}
		err := s.cfg.Records.QueryRecords(ctx, q, func(fields []record.Field) error {
			e, others, ok := exemplarOf(fields, metricName(sel))
			if !ok || !labelsMatch(sel, e, others) {
				return nil
			}
			key := e.Metric + mapKey(e.Labels) + e.Time.String() + e.SpanID + e.TraceID
			if seen[key] { // two selectors of one expression may name one series
				return nil
			}
			if len(found) == s.limits.Exemplars {
				return errCut
			}
			seen[key] = true
			found = append(found, e)
			return nil
		})
		if errors.Is(err, errCut) {
			cut = true
			break
		}
		if err != nil {
			return nil, false, err
		}
	}
	slices.SortStableFunc(found, func(a, b apitype.Exemplar) int {
		return cmp.Or(a.Time.Compare(b.Time), strings.Compare(a.TraceID, b.TraceID), strings.Compare(a.SpanID, b.SpanID))
	})
	return found, cut, nil
}

// includeEnd makes the end of a range, which Prometheus includes, fit for
// stores, which exclude it.
func includeEnd(to time.Time) time.Time {
	if to.Before(apitype.MaxTime) {
		return to.Add(time.Millisecond)
	}
	return to
}

// exemplarNames returns OpenTelemetry's names of the metrics that have exemplars.
func (s *server) exemplarNames(ctx context.Context, from, to time.Time) ([]string, error) {
	return s.distinct(ctx, store.RecordQuery{LogsQL: ofType(record.TypeExemplar, ""), From: from, To: includeEnd(to)}, record.FieldName)
}

// distinct returns the values that a field has in the rows of q, sorted.
func (s *server) distinct(ctx context.Context, q store.RecordQuery, field string) ([]string, error) {
	q.LogsQL += "\n| stats by (" + strconv.Quote(field) + ") count() rows"
	rows, err := s.rows(ctx, q)
	if err != nil {
		return nil, err
	}
	values := map[string]bool{}
	for _, row := range rows {
		if v := row[field]; v != "" {
			values[v] = true
		}
	}
	return sortedKeys(values), nil
}

// namesMatch tells whether the selector's matchers on the name take an
// OpenTelemetry metric.
func namesMatch(sel []*labels.Matcher, otlp string) bool {
	for _, m := range sel {
		if m.Name != model.MetricNameLabel {
			continue
		}
		switch m.Type {
		case labels.MatchEqual:
			if !sameMetric(m.Value, otlp) {
				return false
			}
		case labels.MatchNotEqual:
			if sameMetric(m.Value, otlp) {
				return false
			}
		default:
			// A pattern is held against the name without unit and type: they
			// are not known here.
			if !m.Matches(plainName(otlp)) && !m.Matches(otlp) {
				return false
			}
		}
	}
	return true
}

// plainName is the Prometheus name of a metric without unit and type.
func plainName(otlp string) string { return promLabel(otlp) }

// serviceOf returns the service that a selector pins down, so that the store
// reads no others; "" when it does not.
func serviceOf(sel []*labels.Matcher) string {
	for _, m := range sel {
		if m.Type == labels.MatchEqual && (m.Name == "service_name" || m.Name == "service.name") {
			return m.Value
		}
	}
	return ""
}

// labelsMatch tells whether the exemplar belongs to a series that the selector
// takes. An exemplar is kept with the histogram, not with a bucket: le="0.5"
// takes those of up to 0.5. Others are fields that may be of the resource.
func labelsMatch(sel []*labels.Matcher, e apitype.Exemplar, others map[string]string) bool {
	for _, m := range sel {
		switch m.Name {
		case model.MetricNameLabel, model.QuantileLabel:
		case model.BucketLabel:
			le, err := strconv.ParseFloat(m.Value, 64)
			if err == nil && m.Type == labels.MatchEqual && e.Value > le {
				return false
			}
		default:
			v, ok := e.Labels[m.Name]
			if !ok {
				v, ok = e.Labels[promLabel(m.Name)]
			}
			if !ok {
				v = others[promLabel(m.Name)]
			}
			if !m.Matches(v) {
				return false
			}
		}
	}
	return true
}

// exemplarOf reads an exemplar's record. Labels get the names and the job and
// instance that OpenTelemetry's Prometheus compatibility gives to the series.
// Others, by such names too, are attributes of which a flat record does not say
// whether they are the resource's, and so labels, or the exemplar's own.
func exemplarOf(fields []record.Field, metric string) (e apitype.Exemplar, others map[string]string, ok bool) {
	e = apitype.Exemplar{Metric: metric, Labels: map[string]string{}}
	others = map[string]string{}
	var attributes map[string]any
	resource := map[string]string{}
	for _, f := range fields {
		var err error
		switch f.Name {
		case record.FieldTime:
			e.Time, err = time.Parse(time.RFC3339Nano, f.Value)
		case record.FieldValue:
			e.Value, err = strconv.ParseFloat(f.Value, 64)
		case record.FieldTraceID:
			e.TraceID = strings.Clone(f.Value)
		case record.FieldSpanID:
			e.SpanID = strings.Clone(f.Value)
		case record.FieldName:
			if metric == "" {
				e.Metric = plainName(f.Value)
			}
		case record.FieldLabels:
			err = json.Unmarshal([]byte(f.Value), &attributes)
		default:
			if name, ok := resourceName(f.Name); ok && f.Value != "" {
				resource[name] = strings.Clone(f.Value)
			} else if !ownFields[f.Name] {
				others[promLabel(f.Name)] = strings.Clone(f.Value)
			}
		}
		if err != nil {
			return e, nil, false
		}
	}
	for name, value := range resource {
		e.Labels[promLabel(name)] = value
	}
	if job := resource["service.name"]; job != "" {
		if ns := resource["service.namespace"]; ns != "" {
			job = ns + "/" + job
		}
		e.Labels[model.JobLabel] = job
	}
	if instance := resource["service.instance.id"]; instance != "" {
		e.Labels[model.InstanceLabel] = instance
	}
	for name, value := range attributes {
		e.Labels[promLabel(name)] = anyText(value)
	}
	return e, others, true
}
