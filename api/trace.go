package api

import (
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

func (s *server) trace(w http.ResponseWriter, r *http.Request) error {
	id, err := traceID(r.PathValue("traceID"))
	if err != nil {
		return err
	}
	format := r.Form.Get("format")
	if format != "" && format != "tree" && format != "otlp" {
		return badParam("format", errorf("%q is not tree or otlp", format))
	}
	limit, err := intParam(r, "logs", defaultTraceLogs, s.limits.Rows)
	if err != nil {
		return err
	}
	t, err := s.loadTrace(r.Context(), id)
	if err != nil {
		return err
	}
	if t == nil {
		return notFound("the id may be wrong, the trace older than the retention, or no span of it was sent", "no span of trace %s is stored", id)
	}
	if format == "otlp" {
		return writeOTLP(w, t)
	}
	var warnings []string
	if limit > 0 {
		var warning string
		if t.Logs, t.LogsCut, warning, err = s.traceLogs(r.Context(), id, limit); err != nil {
			return err
		}
		warnings = withWarning(warnings, warning)
	}
	return writeSuccess(w, t, warnings...)
}

// traceID reads a trace id. Jaeger leaves out leading zeros, so short ids are
// filled up.
func traceID(s string) (string, error) {
	id := strings.ToLower(s)
	if len(id) > 32 || id == "" || strings.Trim(id, "0123456789abcdef") != "" || strings.Trim(id, "0") == "" {
		return "", badParam("traceID", errorf("%q is not a trace id: it has up to 32 hexadecimal digits", s))
	}
	return strings.Repeat("0", 32-len(id)) + id, nil
}

// loadTrace returns nil when no span of the trace is stored.
func (s *server) loadTrace(ctx context.Context, id string) (*apitype.Trace, error) {
	rows, err := s.rows(ctx, store.RecordQuery{
		LogsQL: ofType(record.TypeSpan, "") + " " + equals(record.FieldTraceID, id),
		Limit:  s.limits.Spans + 1,
	})
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return s.buildTrace(id, rows), nil
}

func (s *server) buildTrace(id string, rows []map[string]string) *apitype.Trace {
	t := &apitype.Trace{TraceID: id}
	if t.Cut = len(rows) > s.limits.Spans; t.Cut {
		rows = rows[:s.limits.Spans]
	}
	spans := make([]apitype.Span, len(rows))
	for i, row := range rows {
		spans[i] = spanOf(row)
	}
	arrange(t, spans)
	return t
}

// ownFields are the fields of a span's record that are not attributes.
var ownFields = map[string]bool{
	record.FieldTime: true, record.FieldBody: true, record.FieldType: true, record.FieldSeq: true,
	"_stream": true, "_stream_id": true,
	record.FieldTraceID: true, record.FieldSpanID: true, record.FieldParentSpanID: true,
	record.FieldName: true, record.FieldSpanKind: true, record.FieldStatus: true, record.FieldStatusMessage: true,
	record.FieldDuration: true, record.FieldEvents: true, record.FieldLinks: true,
	record.FieldOverflow: true,
}

func spanOf(row map[string]string) apitype.Span {
	sp := apitype.Span{
		SpanID:        row[record.FieldSpanID],
		ParentSpanID:  row[record.FieldParentSpanID],
		Children:      []string{},
		Service:       row["service.name"],
		Name:          row[record.FieldName],
		Kind:          row[record.FieldSpanKind],
		Status:        row[record.FieldStatus],
		StatusMessage: row[record.FieldStatusMessage],
		Attributes:    map[string]string{},
		Resource:      map[string]string{},
	}
	sp.Start, _ = time.Parse(time.RFC3339Nano, row[record.FieldTime])
	sp.DurationNS, _ = strconv.ParseInt(row[record.FieldDuration], 10, 64)
	// Events and links are JSON of the recorder's making; what cannot be read
	// stays visible as an attribute.
	if v := row[record.FieldEvents]; v != "" && decodeExact(v, &sp.Events) != nil {
		sp.Attributes[record.FieldEvents] = v
	}
	if v := row[record.FieldLinks]; v != "" && decodeExact(v, &sp.Links) != nil {
		sp.Attributes[record.FieldLinks] = v
	}
	for name, value := range row {
		if ownFields[name] {
			continue
		}
		if bare, ok := resourceName(name); ok {
			sp.Resource[bare] = value
		} else if sent, ok := strings.CutPrefix(name, "attribute."); ok && (ownFields[sent] || row[sent] != "") {
			// The recorder moved it out of the way of a field of its own.
			sp.Attributes[sent] = value
		} else {
			sp.Attributes[name] = value
		}
	}
	var more map[string]any
	if v := row[record.FieldOverflow]; v != "" && json.Unmarshal([]byte(v), &more) == nil {
		for name, value := range more {
			sp.Attributes[name] = anyText(value)
		}
	}
	return sp
}

// decodeExact decodes JSON and keeps numbers as they were written: 64-bit
// integers do not fit into a float64.
func decodeExact(data string, into any) error {
	dec := json.NewDecoder(strings.NewReader(data))
	dec.UseNumber()
	return dec.Decode(into)
}

func anyText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	}
	data, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(data)
}

// resourcePrefixes begin the names that OpenTelemetry's conventions give to
// attributes of resources. Records are flat, so the name has to tell.
var resourcePrefixes = []string{
	"service.", "k8s.", "host.", "telemetry.", "process.", "os.", "container.",
	"cloud.", "deployment.", "device.", "faas.", "webengine.", "resource.",
}

// resourceName tells whether a field is a resource's attribute, and its name there.
func resourceName(name string) (string, bool) {
	for _, p := range resourcePrefixes {
		if strings.HasPrefix(name, p) {
			return strings.TrimPrefix(name, "resource."), true
		}
	}
	return name, false
}

// arrange puts spans in the order of a waterfall and works out what only the
// whole trace tells.
func arrange(t *apitype.Trace, spans []apitype.Span) {
	slices.SortStableFunc(spans, func(a, b apitype.Span) int {
		if c := a.Start.Compare(b.Start); c != 0 {
			return c
		}
		return strings.Compare(a.SpanID, b.SpanID)
	})
	byID := make(map[string]int, len(spans))
	for i := len(spans) - 1; i >= 0; i-- { // of two with one id, the first has the children
		byID[spans[i].SpanID] = i
	}
	children := make(map[int][]int, len(spans))
	var roots []int
	missing := map[string]bool{}
	for i := range spans {
		parent, ok := byID[spans[i].ParentSpanID]
		switch {
		case spans[i].ParentSpanID == "" || ok && parent == i:
			roots = append(roots, i)
		case !ok:
			spans[i].Orphan = true
			missing[spans[i].ParentSpanID] = true
			roots = append(roots, i)
		default:
			children[parent] = append(children[parent], i)
			spans[parent].Children = append(spans[parent].Children, spans[i].SpanID)
		}
	}
	w := &walk{spans: spans, children: children, done: make([]bool, len(spans))}
	for _, i := range roots {
		w.from(i)
	}
	for i := range spans { // spans that are each other's parents hang on no root
		if !w.done[i] {
			w.from(i)
		}
	}
	t.Spans = w.out
	t.MissingParents = sortedKeys(missing)
	summarize(t)
}

// walk collects spans depth first. It keeps its own stack: a trace may be as
// deep as it is long.
type walk struct {
	spans    []apitype.Span
	children map[int][]int
	done     []bool
	out      []apitype.Span
}

func (w *walk) from(root int) {
	type place struct{ span, depth int }
	stack := []place{{root, 0}}
	for len(stack) > 0 {
		at := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if w.done[at.span] {
			continue
		}
		w.done[at.span] = true
		sp := w.spans[at.span]
		sp.Depth = at.depth
		sp.SelfNS = w.self(at.span)
		w.out = append(w.out, sp)
		kids := w.children[at.span]
		for k := len(kids) - 1; k >= 0; k-- {
			stack = append(stack, place{kids[k], at.depth + 1})
		}
	}
}

// self is the part of a span's time that none of its children covers. Children
// come by start.
func (w *walk) self(i int) int64 {
	sp := &w.spans[i]
	start := sp.Start.UnixNano()
	end := start + sp.DurationNS
	covered, upTo := int64(0), start
	for _, c := range w.children[i] {
		from := max(w.spans[c].Start.UnixNano(), upTo)
		to := min(w.spans[c].Start.UnixNano()+w.spans[c].DurationNS, end)
		if to > from {
			covered += to - from
			upTo = to
		}
	}
	return max(sp.DurationNS-covered, 0)
}

func summarize(t *apitype.Trace) {
	services := map[string]bool{}
	var first, last int64
	for i := range t.Spans {
		sp := &t.Spans[i]
		start := sp.Start.UnixNano()
		end := start + max(sp.DurationNS, 0)
		if i == 0 || start < first {
			first = start
		}
		if i == 0 || end > last {
			last = end
		}
		if sp.Service != "" {
			services[sp.Service] = true
		}
	}
	for i := range t.Spans {
		t.Spans[i].OffsetNS = t.Spans[i].Start.UnixNano() - first
	}
	t.Start = time.Unix(0, first).UTC()
	t.DurationNS = last - first
	t.Services = sortedKeys(services)
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
