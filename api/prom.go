package api

import (
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"

	"inquest/api/apitype"
	"inquest/store"
)

// maxPoints is how many points a series of an answer may have, as in Prometheus.
const maxPoints = 11_000

const cutWarning = "results truncated due to limit"

func (s *server) promInstant(w http.ResponseWriter, r *http.Request) error {
	expr, err := queryParam(r, "up")
	if err != nil {
		return err
	}
	at, err := s.timeParam(r, "time", s.now())
	if err != nil {
		return err
	}
	limit, err := intParam(r, "limit", 0, 0)
	if err != nil {
		return err
	}
	res, err := s.cfg.Samples.QueryInstant(r.Context(), expr, at)
	if err != nil {
		return err
	}
	return writeLimited(w, res, limit)
}

func (s *server) promRange(w http.ResponseWriter, r *http.Request) error {
	expr, err := queryParam(r, "up")
	if err != nil {
		return err
	}
	for _, name := range []string{"start", "end", "step"} {
		if r.Form.Get(name) == "" {
			return badParam(name, errorf("it is missing: a range query needs start, end and step"))
		}
	}
	from, to, err := s.rangeParams(r, time.Time{}, time.Time{})
	if err != nil {
		return err
	}
	step, err := durationParam(r, "step", 0)
	if err != nil {
		return err
	}
	limit, err := intParam(r, "limit", 0, 0)
	if err != nil {
		return err
	}
	if step < time.Millisecond {
		return badParam("step", errorf("zero or negative query resolution step widths are not accepted. Try a positive integer"))
	}
	// The range may be longer than a Duration can say, so it is counted in steps.
	if to.UnixMilli()/step.Milliseconds()-from.UnixMilli()/step.Milliseconds() > maxPoints {
		return badRequest("take a larger step or a shorter range",
			"exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the query resolution (?step=XX)")
	}
	res, err := s.cfg.Samples.QueryRange(r.Context(), expr, from, to, step)
	if err != nil {
		return err
	}
	return writeLimited(w, res, limit)
}

func writeLimited(w http.ResponseWriter, res store.Result, limit int) error {
	warnings := res.Warnings
	switch v := res.Value.(type) {
	case promql.Vector:
		if limit > 0 && len(v) > limit {
			res.Value, warnings = v[:limit], append(warnings, cutWarning)
		}
	case promql.Matrix:
		if limit > 0 && len(v) > limit {
			res.Value, warnings = v[:limit], append(warnings, cutWarning)
		}
	}
	return writeResult(w, res, warnings)
}

// seriesScope is what the requests about series and labels have in common.
type seriesScope struct {
	selectors []string
	from, to  time.Time
	limit     int // 0 means none
}

// ask is the limit to give to the store: one more tells whether it cuts.
func (sc seriesScope) ask() int {
	if sc.limit == 0 {
		return 0
	}
	return sc.limit + 1
}

func (s *server) seriesScope(r *http.Request) (seriesScope, error) {
	sc := seriesScope{selectors: r.Form["match[]"]}
	for _, sel := range sc.selectors {
		if _, err := s.promql.ParseMetricSelector(sel); err != nil {
			return sc, badParam("match[]", err)
		}
	}
	var err error
	if sc.from, sc.to, err = s.rangeParams(r, apitype.MinTime, apitype.MaxTime); err != nil {
		return sc, err
	}
	sc.limit, err = intParam(r, "limit", 0, 1<<30)
	return sc, err
}

// cutTo cuts values to the limit and warns when it did.
func cutTo[T any](values []T, limit int) (cut []T, warnings []string) {
	if limit > 0 && len(values) > limit {
		return values[:limit], []string{cutWarning}
	}
	if values == nil {
		values = []T{} // [] and not null
	}
	return values, nil
}

func (s *server) promSeries(w http.ResponseWriter, r *http.Request) error {
	sc, err := s.seriesScope(r)
	if err != nil {
		return err
	}
	if len(sc.selectors) == 0 {
		return badParam("match[]", errorf("no match[] parameter provided: name series as match[]={job=\"x\"}"))
	}
	series, err := s.cfg.Samples.Series(r.Context(), sc.selectors, sc.from, sc.to, sc.ask())
	if err != nil {
		return err
	}
	series, warnings := cutTo(series, sc.limit)
	data := make([]map[string]string, len(series))
	for i, ls := range series {
		data[i] = ls.Map()
	}
	return writeSuccess(w, data, warnings...)
}

func (s *server) promLabels(w http.ResponseWriter, r *http.Request) error {
	sc, err := s.seriesScope(r)
	if err != nil {
		return err
	}
	names, err := s.cfg.Samples.LabelNames(r.Context(), sc.selectors, sc.from, sc.to, sc.ask())
	if err != nil {
		return err
	}
	names, warnings := cutTo(names, sc.limit)
	return writeSuccess(w, names, warnings...)
}

func (s *server) promLabelValues(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	if unescaped := model.UnescapeName(name, model.ValueEncodingEscaping); unescaped != "" {
		name = unescaped // U__service_2e_name is service.name
	}
	if !model.UTF8Validation.IsValidLabelName(name) {
		return badParam("name", errorf("invalid label name: %q", name))
	}
	sc, err := s.seriesScope(r)
	if err != nil {
		return err
	}
	values, err := s.cfg.Samples.LabelValues(r.Context(), name, sc.selectors, sc.from, sc.to, sc.ask())
	if err != nil {
		return err
	}
	values, warnings := cutTo(values, sc.limit)
	return writeSuccess(w, values, warnings...)
}

// promMetadatum is one entry of Prometheus' metadata.
type promMetadatum struct {
	Type string `json:"type"`
	Unit string `json:"unit"`
	Help string `json:"help"`
}

func (s *server) promMetadata(w http.ResponseWriter, r *http.Request) error {
	limit, err := intParam(r, "limit", 0, 0)
	if err != nil {
		return err
	}
	var asked []string
	if m := r.Form.Get("metric"); m != "" {
		asked = []string{m}
	}
	all, err := s.cfg.Samples.Metadata(r.Context(), asked...)
	if err != nil {
		return err
	}
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	names, warnings := cutTo(names, limit)
	data := make(map[string][]promMetadatum, len(names))
	for _, name := range names {
		data[name] = []promMetadatum{promMetadatum(all[name])}
	}
	return writeSuccess(w, data, warnings...)
}

func (s *server) promFormat(w http.ResponseWriter, r *http.Request) error {
	if err := r.ParseForm(); err != nil {
		return formError(err)
	}
	q, err := queryParam(r, "up")
	if err != nil {
		return err
	}
	expr, err := s.promql.ParseExpr(q)
	if err != nil {
		return badParam("query", err)
	}
	return writeSuccess(w, expr.Pretty(0))
}

// metricName returns the name that matchers ask for; "" when they name none.
func metricName(matchers []*labels.Matcher) string {
	for _, m := range matchers {
		if m.Name == model.MetricNameLabel && m.Type == labels.MatchEqual {
			return m.Value
		}
	}
	return ""
}
