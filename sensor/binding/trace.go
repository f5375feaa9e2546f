package binding

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"inquest/admit/bind"
	"inquest/record"
	"inquest/store"
)

// maxTraceIDs bounds the request ids of one trace that records are looked for by.
const maxTraceIDs = 100

// OfTrace calls fn for each log record without a trace id that the evidence
// binds to the trace, in no order; the rules are those of [Bind]. fn gets the
// fields with what was inferred added, as [Annotate] does; they are valid during
// the call only, and fn must not query the store. An error of fn ends the call
// and is returned as it is.
//
// Only records that can be the trace's are examined: those of its services
// during its time, and those that name one of its request ids within the window
// around. An option Filter limits them further.
func OfTrace(ctx context.Context, records store.RecordReader, traceID string, o Options, fn func(fields []record.Field) error) error {
	o = o.withDefaults()
	t, err := aboutTrace(ctx, records, traceID)
	if err != nil || t.from.IsZero() {
		return err
	}
	from, to := t.from, t.to.Add(1)
	if len(t.ids) > 0 {
		from, to = from.Add(-o.Window), to.Add(o.Window)
	}
	if filter := t.filter(); o.Filter == "" {
		o.Filter = filter
	} else {
		o.Filter = "(" + o.Filter + ") (" + filter + ")"
	}
	_, err = Bind(ctx, records, from, to, o, func(fields []record.Field, b bind.Binding, out bind.Outcome) error {
		if out != bind.Bound || b.TraceID != traceID {
			return nil
		}
		return fn(Annotate(fields, b))
	})
	return err
}

// traceFacts are what tells where a trace's records can be.
type traceFacts struct {
	from, to time.Time // of all its spans and records
	services map[string]bool
	ids      map[string]bool // request ids
}

func aboutTrace(ctx context.Context, records store.RecordReader, traceID string) (*traceFacts, error) {
	t := &traceFacts{services: map[string]bool{}, ids: map[string]bool{}}
	q := fmt.Sprintf(`{%q in (%q, %q)} %q:=%q | fields %s`, record.FieldType, string(record.TypeLog), string(record.TypeSpan), record.FieldTraceID, traceID,
		quoted(append([]string{record.FieldTime, record.FieldDuration, record.FieldBody, "service.name"}, bind.RequestIDFields...)...))
	err := records.QueryRecords(ctx, store.RecordQuery{LogsQL: q}, func(fields []record.Field) error {
		t.add(fields)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read the trace for binding records: %w", err)
	}
	return t, nil
}

func (t *traceFacts) add(fields []record.Field) {
	r := recordOf(fields)
	start, end := time.Unix(0, r.Time).UTC(), time.Unix(0, r.Time).UTC()
	for _, f := range fields {
		if f.Name == record.FieldDuration {
			if d, err := strconv.ParseInt(f.Value, 10, 64); err == nil && d > 0 {
				end = end.Add(time.Duration(d))
			}
		}
	}
	if t.from.IsZero() || start.Before(t.from) {
		t.from = start
	}
	if end.After(t.to) {
		t.to = end
	}
	t.services[r.Service] = true
	if r.RequestID != "" && len(t.ids) < maxTraceIDs {
		t.ids[r.RequestID] = true
	}
}

// filter is a LogsQL filter for the records that can be the trace's.
func (t *traceFacts) filter() string {
	services := slices.Sorted(maps.Keys(t.services))
	parts := []string{fmt.Sprintf(`_time:[%s, %s] "service.name":in(%s)`, t.from.Format(time.RFC3339Nano), t.to.Format(time.RFC3339Nano), quoted(services...))}
	if t.services[""] {
		parts = append(parts, fmt.Sprintf(`_time:[%s, %s] "service.name":""`, t.from.Format(time.RFC3339Nano), t.to.Format(time.RFC3339Nano)))
	}
	if len(t.ids) > 0 {
		ids := slices.Sorted(maps.Keys(t.ids))
		var values, texts []string
		for _, id := range ids {
			values = append(values, id, `["`+id+`"]`) // a header is a list
			texts = append(texts, regexp.QuoteMeta(id))
		}
		for _, name := range bind.RequestIDFields {
			parts = append(parts, fmt.Sprintf("%q:in(%s)", name, quoted(values...)))
		}
		parts = append(parts, fmt.Sprintf("%s:~%q", record.FieldBody, strings.Join(texts, "|")))
	}
	return "(" + strings.Join(parts, ") or (") + ")"
}
