package api

import (
	"net/http"
	"strconv"
	"time"

	"inquest/api/apitype"
	"inquest/record"
	"inquest/store"
)

// The JSON of Jaeger's query service, as its UI and Grafana read it.
type (
	jaegerAnswer struct {
		Data   any           `json:"data"`
		Total  int           `json:"total"`
		Limit  int           `json:"limit"`
		Offset int           `json:"offset"`
		Errors []jaegerError `json:"errors"`
	}
	jaegerError struct {
		Code    int    `json:"code"`
		Msg     string `json:"msg"`
		TraceID string `json:"traceID,omitempty"`
	}
	jaegerTraceJSON struct {
		TraceID   string                   `json:"traceID"`
		Spans     []jaegerSpan             `json:"spans"`
		Processes map[string]jaegerProcess `json:"processes"`
		Warnings  []string                 `json:"warnings"`
	}
	jaegerSpan struct {
		TraceID       string            `json:"traceID"`
		SpanID        string            `json:"spanID"`
		OperationName string            `json:"operationName"`
		References    []jaegerReference `json:"references"`
		StartTime     int64             `json:"startTime"` // µs since the epoch
		Duration      int64             `json:"duration"`  // µs
		Tags          []jaegerTag       `json:"tags"`
		Logs          []jaegerLog       `json:"logs"`
		ProcessID     string            `json:"processID"`
		Warnings      []string          `json:"warnings"`
	}
	jaegerReference struct {
		RefType string `json:"refType"`
		TraceID string `json:"traceID"`
		SpanID  string `json:"spanID"`
	}
	jaegerTag struct {
		Key   string `json:"key"`
		Type  string `json:"type"`
		Value any    `json:"value"`
	}
	jaegerLog struct {
		Timestamp int64       `json:"timestamp"` // µs since the epoch
		Fields    []jaegerTag `json:"fields"`
	}
	jaegerProcess struct {
		ServiceName string      `json:"serviceName"`
		Tags        []jaegerTag `json:"tags"`
	}
	jaegerOperation struct {
		Name     string `json:"name"`
		SpanKind string `json:"spanKind"`
	}
)

func writeJaeger(w http.ResponseWriter, data any, total int) error {
	return writeJSON(w, jaegerAnswer{Data: data, Total: total})
}

func (s *server) jaegerServices(w http.ResponseWriter, r *http.Request) error {
	names, err := s.distinct(r.Context(), store.RecordQuery{LogsQL: ofType(record.TypeSpan, "")}, "service.name")
	if err != nil {
		return err
	}
	return writeJaeger(w, names, len(names))
}

func (s *server) jaegerServiceOperations(w http.ResponseWriter, r *http.Request) error {
	q := store.RecordQuery{LogsQL: ofType(record.TypeSpan, r.PathValue("service"))}
	names, err := s.distinct(r.Context(), q, record.FieldName)
	if err != nil {
		return err
	}
	return writeJaeger(w, names, len(names))
}

func (s *server) jaegerOperations(w http.ResponseWriter, r *http.Request) error {
	service := r.Form.Get("service")
	if service == "" {
		return badParam("service", errorf("it is missing: GET /jaeger/api/services lists the services"))
	}
	q := ofType(record.TypeSpan, service)
	if kind := r.Form.Get("spanKind"); kind != "" {
		q += " " + equals(record.FieldSpanKind, kind)
	}
	rows, err := s.rows(r.Context(), store.RecordQuery{
		LogsQL: q + "\n| stats by (" + strconv.Quote(record.FieldName) + ", " + strconv.Quote(record.FieldSpanKind) + ") count() rows" +
			"\n| sort by (" + strconv.Quote(record.FieldName) + ", " + strconv.Quote(record.FieldSpanKind) + ")",
	})
	if err != nil {
		return err
	}
	ops := make([]jaegerOperation, len(rows))
	for i, row := range rows {
		ops[i] = jaegerOperation{Name: row[record.FieldName], SpanKind: row[record.FieldSpanKind]}
	}
	return writeJaeger(w, ops, len(ops))
}

func (s *server) jaegerTrace(w http.ResponseWriter, r *http.Request) error {
	id, err := traceID(r.PathValue("traceID"))
	if err != nil {
		return err
	}
	t, err := s.loadTrace(r.Context(), id)
	if err != nil {
		return err
	}
	if t == nil {
		return notFound("", "trace not found")
	}
	return writeJaeger(w, []jaegerTraceJSON{jaegerOf(t)}, 0)
}

// jaegerOf writes a trace as Jaeger does: spans with equal resources share a
// process.
func jaegerOf(t *apitype.Trace) jaegerTraceJSON {
	j := jaegerTraceJSON{TraceID: t.TraceID, Spans: make([]jaegerSpan, len(t.Spans)), Processes: map[string]jaegerProcess{}}
	if t.Cut {
		j.Warnings = append(j.Warnings, "the trace has more spans than can be shown")
	}
	ids := map[string]string{}
	for i := range t.Spans {
		sp := &t.Spans[i]
		key := mapKey(sp.Resource)
		id, ok := ids[key]
		if !ok {
			id = "p" + strconv.Itoa(len(ids)+1)
			ids[key] = id
			j.Processes[id] = jaegerProcessOf(sp)
		}
		j.Spans[i] = jaegerSpanOf(t.TraceID, id, sp)
	}
	return j
}

func jaegerProcessOf(sp *apitype.Span) jaegerProcess {
	p := jaegerProcess{ServiceName: sp.Service, Tags: []jaegerTag{}}
	for _, k := range sortedKeys(sp.Resource) {
		if k != "service.name" {
			p.Tags = append(p.Tags, stringTag(k, sp.Resource[k]))
		}
	}
	return p
}

func stringTag(k, v string) jaegerTag { return jaegerTag{Key: k, Type: "string", Value: v} }

func jaegerSpanOf(traceID, process string, sp *apitype.Span) jaegerSpan {
	j := jaegerSpan{
		TraceID: traceID, SpanID: sp.SpanID, OperationName: sp.Name, ProcessID: process,
		References: []jaegerReference{}, Tags: []jaegerTag{}, Logs: []jaegerLog{},
		StartTime: sp.Start.UnixMicro(),
		Duration:  max(sp.DurationNS, 0) / int64(time.Microsecond),
	}
	if sp.ParentSpanID != "" {
		j.References = append(j.References, jaegerReference{"CHILD_OF", traceID, sp.ParentSpanID})
	}
	for _, l := range sp.Links {
		j.References = append(j.References, jaegerReference{"FOLLOWS_FROM", l.TraceID, l.SpanID})
	}
	if sp.Kind != "" {
		j.Tags = append(j.Tags, stringTag("span.kind", sp.Kind))
	}
	if sp.Status == "error" {
		j.Tags = append(j.Tags, jaegerTag{"error", "bool", true})
	}
	if sp.Status != "" {
		j.Tags = append(j.Tags, stringTag("otel.status_code", map[string]string{"ok": "OK", "error": "ERROR"}[sp.Status]))
	}
	if sp.StatusMessage != "" {
		j.Tags = append(j.Tags, stringTag("otel.status_description", sp.StatusMessage))
	}
	if sp.DurationNS < 0 {
		j.Warnings = append(j.Warnings, "the span ends "+time.Duration(-sp.DurationNS).String()+" before it starts")
	}
	for _, k := range sortedKeys(sp.Attributes) {
		j.Tags = append(j.Tags, stringTag(k, sp.Attributes[k]))
	}
	for _, e := range sp.Events {
		l := jaegerLog{Timestamp: e.TimeNS / 1000, Fields: []jaegerTag{stringTag("event", e.Name)}}
		for _, k := range sortedKeys(e.Attributes) {
			l.Fields = append(l.Fields, stringTag(k, anyText(e.Attributes[k])))
		}
		j.Logs = append(j.Logs, l)
	}
	return j
}
