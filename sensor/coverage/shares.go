package coverage

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"inquest/admit/bind"
	"inquest/record"
	"inquest/sensor/binding"
	"inquest/store"
)

// both selects log records and spans.
var both = fmt.Sprintf(`{%q in (%q, %q)}`, record.FieldType, string(record.TypeLog), string(record.TypeSpan))

// hasRequestID selects rows with a request id in a field.
var hasRequestID = func() string {
	parts := make([]string, len(bind.RequestIDFields))
	for i, name := range bind.RequestIDFields {
		parts[i] = strconv.Quote(name) + ":*"
	}
	return "(" + strings.Join(parts, " or ") + ")"
}()

// requestIDAs is the pipe that gives a row's request id one name.
var requestIDAs = func() string {
	names := make([]string, len(bind.RequestIDFields))
	for i, name := range bind.RequestIDFields {
		names[i] = strconv.Quote(name)
	}
	return "coalesce(" + strings.Join(names, ", ") + ") as id"
}()

// measureShares counts records and their ids by service. The store counts; what
// comes back is a row for each service.
func (r *Report) measureShares(ctx context.Context, records store.RecordReader, o Options) error {
	services := map[string]*Service{}
	get := func(name string) *Service {
		s := services[name]
		if s == nil {
			name = strings.Clone(name)
			s = &Service{Name: name}
			services[name] = s
		}
		return s
	}
	q := fmt.Sprintf(`%s | stats by (%q, "service.name") count() n, count() if (%s:*) traces, count() if (%s:*) spans, count() if %s requests`,
		both, record.FieldType, record.FieldTraceID, record.FieldSpanID, hasRequestID)
	err := r.count(ctx, records, q, func(row map[string]string) {
		s := get(row["service.name"])
		n := number(row["n"])
		s.Records += n
		s.TraceID.Own += number(row["traces"])
		s.SpanID.Own += number(row["spans"])
		s.RequestID.Own += number(row["requests"])
		if row[record.FieldType] == string(record.TypeSpan) {
			s.Spans += n
		} else {
			s.Logs += n
			s.logsWithTrace += number(row["traces"])
		}
	})
	if err != nil {
		return err
	}
	bound, err := binding.Bind(ctx, records, r.From, r.To, o.Binding, nil)
	if err != nil {
		return err
	}
	viaTrace := map[string]int{}
	q = fmt.Sprintf(`%[1]s %[2]s:* !%[3]s %[2]s:in(%[1]s %[2]s:* %[3]s | %[4]s | stats by (%[2]s) count_uniq(id) n | filter n:=1 | fields %[2]s) | stats by ("service.name") count() n`,
		both, record.FieldTraceID, hasRequestID, requestIDAs)
	if err := r.count(ctx, records, q, func(row map[string]string) { viaTrace[strings.Clone(row["service.name"])] = number(row["n"]) }); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(services)) {
		s := services[name]
		c := bound.Services[name]
		s.Binding = c
		s.TraceID.With = s.TraceID.Own + c.ByRequestID + c.ByProcess
		s.SpanID.With = s.SpanID.Own + c.WithSpan
		// Those with an id in a field are among the own ones already.
		s.RequestID.With = s.RequestID.Own + viaTrace[name] + c.RequestIDWithBound - (c.RequestID - c.RequestIDInTextOnly)
		for _, f := range []*Figure{&s.TraceID, &s.SpanID, &s.RequestID} {
			f.With = min(f.With, s.Records)
			f.OwnShare = float64(f.Own) / float64(s.Records)
			f.WithShare = float64(f.With) / float64(s.Records)
		}
		r.Services = append(r.Services, *s)
	}
	return nil
}

// count runs a query over the range and gives each row as a map, valid during
// the call.
func (r *Report) count(ctx context.Context, records store.RecordReader, logsQL string, fn func(map[string]string)) error {
	row := map[string]string{}
	return records.QueryRecords(ctx, store.RecordQuery{LogsQL: logsQL, From: r.From, To: r.To}, func(fields []record.Field) error {
		clear(row)
		for _, f := range fields {
			row[f.Name] = f.Value
		}
		fn(row)
		return nil
	})
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}
