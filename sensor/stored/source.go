// Package stored is the [sensor.Source] over the stores of records and samples.
// Filtering is pushed down to them in LogsQL and PromQL.
package stored

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"inquest/record"
	"inquest/sensor"
	"inquest/store"
)

// Source reads telemetry from stores. It is safe for concurrent use.
type Source struct {
	records store.RecordReader
	samples store.SampleReader
}

var _ sensor.Source = (*Source)(nil)

// New returns a source over the stores.
func New(records store.RecordReader, samples store.SampleReader) *Source {
	return &Source{records: records, samples: samples}
}

// spanFields are the fields of a span that sensors read.
var spanFields = fieldList(
	record.FieldType, record.FieldTime, record.FieldTraceID, record.FieldSpanID, record.FieldParentSpanID,
	record.FieldName, record.FieldSpanKind, record.FieldStatus, record.FieldDuration,
)

// logFields are the fields of a log record that sensors read.
var logFields = fieldList(
	record.FieldType, record.FieldTime, record.FieldBody, record.FieldTraceID, record.FieldSpanID,
	record.FieldSeverity, record.FieldSeverityNumber,
)

// fieldVersion is the version of the service that sent a record.
const fieldVersion = "service.version"

func fieldList(own ...string) string {
	names := slices.Concat(own, record.StreamFields, []string{fieldVersion}, sensor.Attributes)
	for i, name := range names {
		if begin, ok := strings.CutSuffix(name, "*"); ok {
			names[i] = strconv.Quote(begin) + "*"
			continue
		}
		names[i] = strconv.Quote(name)
	}
	return strings.Join(names, ", ")
}

func query(t record.Type, fields string) string {
	return fmt.Sprintf(`{%q=%q} | fields %s`, record.FieldType, string(t), fields)
}

// Spans implements [sensor.Source].
func (s *Source) Spans(ctx context.Context, r sensor.Range, fn func(sensor.Span) error) error {
	in := interner{}
	return s.records.QueryRecords(ctx, store.RecordQuery{
		LogsQL: query(record.TypeSpan, spanFields),
		From:   sensor.Time(r.From), To: sensor.Time(r.To),
	}, func(fields []record.Field) error {
		sp, err := record.ParseSpan(fields)
		if err != nil {
			return fmt.Errorf("cannot read a stored span: %w", err)
		}
		return fn(sensor.Span{
			TraceID: strings.Clone(sp.TraceID), SpanID: strings.Clone(sp.SpanID), Parent: strings.Clone(sp.ParentSpanID),
			Service: in.get(sp.Service), Version: in.get(sp.Attributes[fieldVersion]), Pod: in.get(instance(sp.Source)), Node: in.get(node(sp.Source)),
			Name: in.get(sp.Name), Kind: in.get(sp.Kind),
			Start: sp.Time.UnixNano(), Duration: max(0, sp.Duration.Nanoseconds()),
			Error:      sp.Status == "error",
			Attributes: in.attributes(sp.Attributes),
		})
	})
}

// Logs implements [sensor.Source].
func (s *Source) Logs(ctx context.Context, r sensor.Range, fn func(sensor.Log) error) error {
	in := interner{}
	return s.records.QueryRecords(ctx, store.RecordQuery{
		LogsQL: query(record.TypeLog, logFields),
		From:   sensor.Time(r.From), To: sensor.Time(r.To),
	}, func(fields []record.Field) error {
		l, err := record.ParseLog(fields)
		if err != nil {
			return fmt.Errorf("cannot read a stored log record: %w", err)
		}
		attrs := in.attributes(l.Attributes)
		return fn(sensor.Log{
			Time: l.Time.UnixNano(), Service: in.get(l.Service), Version: in.get(l.Attributes[fieldVersion]), Pod: in.get(instance(l.Source)), Node: in.get(node(l.Source)),
			Severity: severity(l), Body: strings.Clone(l.Body),
			TraceID: strings.Clone(l.TraceID), SpanID: strings.Clone(l.SpanID),
			Code:       in.get(Code(attrs)),
			Attributes: attrs,
		})
	})
}

// instance names the running copy of a service.
func instance(s record.Source) string {
	if s.Pod != "" {
		return s.Pod
	}
	return s.Instance
}

func node(s record.Source) string {
	if s.Node != "" {
		return s.Node
	}
	return s.Host
}

// severity is the number of a log record's severity; senders that give only a
// text are understood as far as the words are common.
func severity(l record.Log) int {
	if l.SeverityNumber != 0 {
		return l.SeverityNumber
	}
	return Severity(l.Severity)
}

// Severity returns OpenTelemetry's number for a severity in words, or 0.
func Severity(text string) int {
	switch strings.ToLower(text) {
	case "trace":
		return 1
	case "debug":
		return 5
	case "info", "information", "notice":
		return 9
	case "warn", "warning":
		return 13
	case "error", "err":
		return 17
	case "fatal", "critical", "panic", "emerg", "alert":
		return 21
	}
	return 0
}

// Code is the place in the code that attributes name, by OpenTelemetry's
// conventions old and new, or "".
func Code(attrs map[string]string) string {
	place := attrs["code.function.name"]
	if place == "" {
		place = attrs["code.function"]
		if ns := attrs["code.namespace"]; ns != "" && place != "" {
			place = ns + "." + place
		} else if ns != "" {
			place = ns
		}
	}
	line := attrs["code.line.number"]
	if line == "" {
		line = attrs["code.lineno"]
	}
	if place == "" || line == "" {
		return place
	}
	return place + "#" + line
}

// interner shares strings that repeat from row to row; what a store gives is
// valid during the call only.
type interner map[string]string

func (in interner) get(s string) string {
	if s == "" {
		return ""
	}
	if t, ok := in[s]; ok {
		return t
	}
	s = strings.Clone(s)
	in[s] = s
	return s
}

func (in interner) attributes(attrs map[string]string) map[string]string {
	var out map[string]string
	for name, v := range attrs {
		if v != "" && sensor.Wanted(name) {
			if out == nil {
				out = make(map[string]string, len(attrs))
			}
			out[in.get(name)] = in.get(v)
		}
	}
	return out
}

// Describe implements [sensor.Source].
func (s *Source) Describe(ctx context.Context, r sensor.Range) ([]sensor.Coverage, error) {
	var all []sensor.Coverage
	for _, q := range []struct {
		quadrant record.Quadrant
		kind     record.Type
	}{{record.QuadrantLogs, record.TypeLog}, {record.QuadrantTraces, record.TypeSpan}} {
		c := sensor.Coverage{Source: "records", Quadrant: q.quadrant}
		var err error
		if c.Ranges, err = s.recordRanges(ctx, q.kind, r); err != nil {
			c.Unavailable = err.Error()
		}
		all = append(all, c)
	}
	c := sensor.Coverage{Source: "samples", Quadrant: record.QuadrantMetrics}
	var err error
	if c.Ranges, err = s.sampleRanges(ctx, r); err != nil {
		c.Unavailable = err.Error()
	}
	return append(all, c), ctx.Err()
}

// coverageStep is the resolution in which a stretch counts as covered.
const coverageStep = time.Minute

// recordRanges are the minutes that hold a record of the type.
func (s *Source) recordRanges(ctx context.Context, t record.Type, r sensor.Range) ([]sensor.Range, error) {
	minutes := map[int64]bool{}
	err := s.records.QueryRecords(ctx, store.RecordQuery{
		LogsQL: fmt.Sprintf(`{%q=%q} | stats by (_time:%s) count() n`, record.FieldType, string(t), coverageStep),
		From:   sensor.Time(r.From), To: sensor.Time(r.To),
	}, func(fields []record.Field) error {
		for _, f := range fields {
			if f.Name == record.FieldTime {
				at, err := time.Parse(time.RFC3339Nano, f.Value)
				if err != nil {
					return err
				}
				minutes[at.UnixNano()] = true
			}
		}
		return nil
	})
	return joined(minutes, r), err
}

// joined makes ranges of steps that touch, inside r.
func joined(starts map[int64]bool, r sensor.Range) []sensor.Range {
	out := []sensor.Range{}
	step := int64(coverageStep)
	for _, from := range slices.Sorted(maps.Keys(starts)) {
		to := min(from+step, r.To)
		from = max(from, r.From)
		if n := len(out); n > 0 && out[n-1].To >= from {
			out[n-1].To = to
			continue
		}
		out = append(out, sensor.Range{From: from, To: to})
	}
	return out
}
