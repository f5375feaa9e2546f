package api

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"inquest/api/apitype"
	"inquest/record"
	"inquest/store"
)

const (
	defaultTraces = 20
	maxTraces     = 1500
)

// jaegerSearch finds traces by a span in them.
func (s *server) jaegerSearch(w http.ResponseWriter, r *http.Request) error {
	if ids := r.Form["traceID"]; len(ids) > 0 {
		return s.jaegerByIDs(w, r, ids)
	}
	filter, err := jaegerFilter(r)
	if err != nil {
		return err
	}
	from, to, err := s.jaegerRange(r)
	if err != nil {
		return err
	}
	limit, err := intParam(r, "limit", defaultTraces, maxTraces)
	if err != nil {
		return err
	}
	rows, err := s.rows(r.Context(), store.RecordQuery{
		LogsQL: filter + "\n| stats by (" + strconv.Quote(record.FieldTraceID) + ") max(_time) latest\n| sort by (latest desc) limit " + strconv.Itoa(max(limit, 1)),
		From:   from, To: to,
	})
	if err != nil {
		return err
	}
	var ids []string
	for _, row := range rows {
		if id := row[record.FieldTraceID]; id != "" {
			ids = append(ids, id)
		}
	}
	traces, err := s.jaegerTraces(r.Context(), ids)
	if err != nil {
		return err
	}
	return writeJaeger(w, traces, len(traces))
}

func (s *server) jaegerByIDs(w http.ResponseWriter, r *http.Request, asked []string) error {
	if len(asked) > maxTraces {
		return badParam("traceID", errorf("%d ids are above the limit of %d", len(asked), maxTraces))
	}
	ids := make([]string, len(asked))
	for i, a := range asked {
		id, err := traceID(a)
		if err != nil {
			return err
		}
		ids[i] = id
	}
	traces, err := s.jaegerTraces(r.Context(), ids)
	if err != nil {
		return err
	}
	return writeJaeger(w, traces, len(traces))
}

// jaegerTraces loads traces, in the order of ids. Spans may lie outside of the
// range of the search, so they are read without one.
func (s *server) jaegerTraces(ctx context.Context, ids []string) ([]jaegerTraceJSON, error) {
	traces := []jaegerTraceJSON{}
	if len(ids) == 0 {
		return traces, nil
	}
	most := 5 * s.limits.Spans // of all traces together
	rows, err := s.rows(ctx, store.RecordQuery{
		LogsQL: ofType(record.TypeSpan, "") + " " + oneOf(record.FieldTraceID, ids),
		Limit:  most,
	})
	if err != nil {
		return nil, err
	}
	byID := map[string][]map[string]string{}
	for _, row := range rows {
		id := row[record.FieldTraceID]
		byID[id] = append(byID[id], row)
	}
	for _, id := range ids {
		if spans := byID[id]; len(spans) > 0 {
			j := jaegerOf(s.buildTrace(id, spans))
			if len(rows) == most {
				j.Warnings = append(j.Warnings, "spans may be missing: ask for fewer traces")
			}
			traces = append(traces, j)
		}
	}
	return traces, nil
}

// jaegerFilter turns the parameters of a search into LogsQL.
func jaegerFilter(r *http.Request) (string, error) {
	service := r.Form.Get("service")
	if service == "" {
		return "", badParam("service", errorf("it is missing: GET /jaeger/api/services lists the services"))
	}
	filters := []string{ofType(record.TypeSpan, service)}
	if op := r.Form.Get("operation"); op != "" && op != "all" {
		filters = append(filters, equals(record.FieldName, op))
	}
	tags, err := jaegerTags(r)
	if err != nil {
		return "", err
	}
	for _, k := range sortedKeys(tags) {
		filters = append(filters, tagFilter(k, tags[k]))
	}
	for _, bound := range [][2]string{{"minDuration", ":>="}, {"maxDuration", ":<="}} {
		name, op := bound[0], bound[1]
		v := r.Form.Get(name)
		if v == "" {
			continue
		}
		d, err := time.ParseDuration(v)
		if err != nil || d < 0 {
			return "", badParam(name, errorf("%q is not a duration: write it like 1.2s, 100ms or 500us", v))
		}
		filters = append(filters, record.FieldDuration+op+strconv.FormatInt(d.Nanoseconds(), 10))
	}
	return strings.Join(filters, " "), nil
}

// jaegerTags reads tags={"key":"value"} and tag=key:value.
func jaegerTags(r *http.Request) (map[string]string, error) {
	tags := map[string]string{}
	for _, v := range r.Form["tags"] {
		if v == "" {
			continue
		}
		var some map[string]any
		if err := json.Unmarshal([]byte(v), &some); err != nil {
			return nil, badParam("tags", errorf("%q is not a JSON object of strings: %w", v, err))
		}
		for k, v := range some {
			tags[k] = anyText(v)
		}
	}
	for _, v := range r.Form["tag"] {
		key, value, ok := strings.Cut(v, ":")
		if !ok {
			return nil, badParam("tag", errorf("%q is not of the form key:value", v))
		}
		tags[key] = value
	}
	return tags, nil
}

// tagFilter is a filter for a tag, where what Jaeger derives from a span's own
// fields is looked for there.
func tagFilter(key, value string) string {
	switch key {
	case "error":
		if value == "false" {
			return "!" + equals(record.FieldStatus, "error")
		}
		return equals(record.FieldStatus, "error")
	case "span.kind":
		return equals(record.FieldSpanKind, value)
	case "otel.status_code":
		return equals(record.FieldStatus, strings.ToLower(value))
	case "otel.status_description":
		return equals(record.FieldStatusMessage, value)
	default:
		return "(" + equals(key, value) + " or " + equals("resource."+key, value) + ")"
	}
}

// jaegerRange reads start and end, which Jaeger gives in microseconds, and
// lookback. Without them the last two days are searched.
func (s *server) jaegerRange(r *http.Request) (from, to time.Time, err error) {
	to = s.now()
	if to, err = microsParam(r, "end", to); err != nil {
		return from, to, err
	}
	lookback := 48 * time.Hour
	if v := r.Form.Get("lookback"); v != "" && v != "custom" {
		if lookback, err = apitype.ParseDuration(v); err != nil {
			return from, to, badParam("lookback", err)
		}
	}
	if from, err = microsParam(r, "start", to.Add(-lookback)); err != nil {
		return from, to, err
	}
	if to.Before(from) {
		return from, to, badRequest("exchange start and end", "the end of the search is before its start")
	}
	return from, to, nil
}

func microsParam(r *http.Request, name string, def time.Time) (time.Time, error) {
	v := r.Form.Get(name)
	if v == "" {
		return def, nil
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < apitype.MinTime.UnixMicro() || n > apitype.MaxTime.UnixMicro() {
		return def, badParam(name, errorf("%q is not a time in microseconds since 1970", v))
	}
	return time.UnixMicro(n).UTC(), nil
}

// jaegerDependency is one edge of the graph of services.
type jaegerDependency struct {
	Parent    string `json:"parent"`
	Child     string `json:"child"`
	CallCount int    `json:"callCount"`
}

// maxDependencySpans bounds the spans that a graph of services is made from.
const maxDependencySpans = 200_000

// jaegerDependencies counts calls between services in a window that ends at
// endTs and is lookback long, both in milliseconds.
func (s *server) jaegerDependencies(w http.ResponseWriter, r *http.Request) error {
	end, lookback := s.now().UnixMilli(), int64(24*time.Hour/time.Millisecond)
	for name, dst := range map[string]*int64{"endTs": &end, "lookback": &lookback} {
		if v := r.Form.Get(name); v != "" {
			n, err := strconv.ParseInt(v, 10, 64)
			if err != nil || n < 0 || n > apitype.MaxTime.UnixMilli() {
				return badParam(name, errorf("%q is not a number of milliseconds", v))
			}
			*dst = n
		}
	}
	to := time.UnixMilli(end).UTC()
	from := time.UnixMilli(max(end-lookback, apitype.MinTime.UnixMilli())).UTC()
	deps, err := s.dependencies(r.Context(), from, to)
	if err != nil {
		return err
	}
	return writeJaeger(w, deps, 0)
}

func (s *server) dependencies(ctx context.Context, from, to time.Time) ([]jaegerDependency, error) {
	type edge struct{ parent, service string }
	services := map[string]string{} // by span id
	calls := map[edge]int{}
	q := store.RecordQuery{
		LogsQL: ofType(record.TypeSpan, "") + "\n| fields " + record.FieldSpanID + ", " + record.FieldParentSpanID + `, "service.name"`,
		From:   from, To: to, Limit: maxDependencySpans,
	}
	err := s.cfg.Records.QueryRecords(ctx, q, func(fields []record.Field) error {
		var id, parent, service string
		for _, f := range fields {
			switch f.Name {
			case record.FieldSpanID:
				id = strings.Clone(f.Value)
			case record.FieldParentSpanID:
				parent = strings.Clone(f.Value)
			case "service.name":
				service = strings.Clone(f.Value)
			}
		}
		services[id] = service
		if parent != "" {
			calls[edge{parent, service}]++
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	counts := map[[2]string]int{}
	for e, n := range calls {
		if caller := services[e.parent]; caller != "" && caller != e.service {
			counts[[2]string{caller, e.service}] += n
		}
	}
	deps := make([]jaegerDependency, 0, len(counts))
	for pair, n := range counts {
		deps = append(deps, jaegerDependency{pair[0], pair[1], n})
	}
	slices.SortFunc(deps, func(a, b jaegerDependency) int {
		return cmp.Or(strings.Compare(a.Parent, b.Parent), strings.Compare(a.Child, b.Child))
	})
	return deps, nil
}
