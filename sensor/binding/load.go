package binding

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"inquest/admit/bind"
	"inquest/record"
	"inquest/store"
)

// idless are the log records that may be bound.
var idless = fmt.Sprintf(`{%q=%q} %s:""`, record.FieldType, string(record.TypeLog), record.FieldTraceID)

// idlessFields are what the rules read of them.
var idlessFields = quoted(slices.Concat([]string{record.FieldTime, record.FieldBody}, bind.ProcessFields, bind.ThreadFields, bind.RequestIDFields)...)

// spanFields are what the rules read of a span.
var spanFields = quoted(slices.Concat([]string{
	record.FieldTime, record.FieldDuration, record.FieldTraceID, record.FieldSpanID, record.FieldParentSpanID, record.FieldTraceState,
}, bind.ProcessFields, bind.ThreadFields)...)

func quoted(names ...string) string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = strconv.Quote(name)
	}
	return strings.Join(out, ", ")
}

// anyOf is a filter for rows that have one of the fields.
func anyOf(names []string) string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = strconv.Quote(name) + ":*"
	}
	return "(" + strings.Join(out, " or ") + ")"
}

// recordOf reads what the rules need, in strings that stay valid.
func recordOf(fields []record.Field) bind.Record {
	var r bind.Record
	body := ""
	for _, f := range fields {
		switch f.Name {
		case record.FieldTime:
			r.Time = parseTime(f.Value)
		case record.FieldBody:
			body = f.Value
		default:
			if !r.Process.Set(f.Name, f.Value) {
				r.Thread.Set(f.Name, f.Value)
			}
		}
	}
	if r.RequestID = bind.RequestID(fields); r.RequestID == "" {
		r.RequestID = bind.RequestIDInText(body)
	}
	r.RequestID = strings.Clone(r.RequestID)
	r.Service = strings.Clone(r.Service)
	return r
}

// parseTime reads a time as the store writes it; it writes no other.
func parseTime(s string) int64 {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return 0
	}
	return t.UnixNano()
}

// loader fills an index.
type loader struct {
	ctx      context.Context
	records  store.RecordReader
	o        Options
	ix       *bind.Index
	from, to time.Time // of the evidence, in whole seconds

	needIDs  map[string]bool // request ids of records without a trace id
	services map[string]bool // whose processes are known, "" for all
	strings  map[string]string
	process  map[bind.Process]*bind.Process
}

// Load returns the evidence about records without a trace id between from and
// to, and how many of them there are. [bind.Index.Bind] then gives the binding
// of each. Memory is bounded by the options; an error says so when they do not
// suffice, and then a shorter range helps.
func Load(ctx context.Context, records store.RecordReader, from, to time.Time, o Options) (*bind.Index, int, error) {
	o = o.withDefaults()
	l := &loader{
		ctx: ctx, records: records, o: o, ix: bind.NewIndex(o.Window),
		from:    from.Truncate(time.Second).Add(-o.Window),
		to:      to.Truncate(time.Second).Add(o.Window + time.Second),
		needIDs: map[string]bool{}, services: map[string]bool{}, strings: map[string]string{}, process: map[bind.Process]*bind.Process{},
	}
	n, err := l.needs(from, to)
	if err != nil || n == 0 {
		return l.ix, n, l.fail(err)
	}
	for _, load := range []func() error{l.spans, l.hints, l.requests, l.texts} {
		if err := load(); err != nil {
			return nil, n, l.fail(err)
		}
	}
	l.ix.Build()
	return l.ix, n, nil
}

func (l *loader) fail(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("cannot read the evidence for binding records: %w", err)
}

// needs learns which request ids and processes matter.
func (l *loader) needs(from, to time.Time) (n int, err error) {
	err = l.query(l.o.candidates()+" | fields "+idlessFields, from, to, func(fields []record.Field) error {
		n++
		r := recordOf(fields)
		if r.RequestID != "" {
			l.needIDs[r.RequestID] = true
			if len(l.needIDs) > l.o.MaxRequestIDs {
				return errTooMuch
			}
		}
		if r.Process.Known() {
			l.services[r.Service] = true
		}
		return nil
	})
	return n, err
}

func (l *loader) query(q string, from, to time.Time, fn func([]record.Field) error) error {
	return l.records.QueryRecords(l.ctx, store.RecordQuery{LogsQL: q, From: from, To: to}, fn)
}

// ofServices is a stream filter for a type of record of the services that matter.
func (l *loader) ofServices(t record.Type) string {
	f := fmt.Sprintf("{%q=%q", record.FieldType, string(t))
	if !l.services[""] {
		f += fmt.Sprintf(`,"service.name" in (%s)`, quoted(slices.Sorted(maps.Keys(l.services))...))
	}
	return f + "}"
}

// early is a filter for spans that began before the evidence does and reach
// into it, as far as LogsQL can tell: the further before, the longer they are.
func (l *loader) early() string {
	var parts []string
	near := time.Duration(0)
	for far := time.Second; near < l.o.MaxSpan; far *= 2 {
		far = min(far, l.o.MaxSpan)
		parts = append(parts, fmt.Sprintf("(_time:[%s, %s) %s:>=%d)",
			l.from.Add(-far).UTC().Format(time.RFC3339Nano), l.from.Add(-near).UTC().Format(time.RFC3339Nano), record.FieldDuration, near.Nanoseconds()))
		near = far
	}
	return "(" + strings.Join(parts, " or ") + ")"
}

// spans loads the spans of the services that matter.
func (l *loader) spans() error {
	if len(l.services) == 0 {
		return nil
	}
	add := func(fields []record.Field) error {
		var s bind.Span
		var p bind.Process
		duration := int64(-1)
		for _, f := range fields {
			switch f.Name {
			case record.FieldTime:
				s.Start = parseTime(f.Value)
			case record.FieldDuration:
				if d, err := strconv.ParseInt(f.Value, 10, 64); err == nil {
					duration = d
				}
			case record.FieldTraceID:
				s.TraceID = l.keep(f.Value)
			case record.FieldSpanID:
				s.SpanID = strings.Clone(f.Value)
			case record.FieldParentSpanID:
				s.ParentSpanID = strings.Clone(f.Value)
			case record.FieldTraceState:
				s.Sampled = bind.SampledState(f.Value)
			default:
				l.setPlace(&p, &s.Thread, f)
			}
		}
		if duration < 0 || !p.Known() || s.TraceID == "" { // it has no end, or none that can be
			return nil
		}
		s.End = s.Start + duration
		if s.End < l.from.UnixNano() {
			return nil
		}
		s.Process = l.shared(p)
		l.ix.AddSpan(s)
		return l.checkSize()
	}
	q := l.ofServices(record.TypeSpan)
	if err := l.query(q+" | fields "+spanFields, l.from, l.to, add); err != nil {
		return err
	}
	return l.query(q+" "+l.early()+" | fields "+spanFields, l.from.Add(-l.o.MaxSpan), l.from, add)
}

func (l *loader) setPlace(p *bind.Process, t *bind.Thread, f record.Field) {
	if v := l.keep(f.Value); !p.Set(f.Name, v) {
		t.Set(f.Name, v)
	}
}

// hints loads which traces the records of the services name.
func (l *loader) hints() error {
	if len(l.services) == 0 {
		return nil
	}
	by := quoted(slices.Concat(bind.ProcessFields, bind.ThreadFields)...)
	q := fmt.Sprintf(`%s %s:* | stats by (_time:1s, %s, %s) count() n`, l.ofServices(record.TypeLog), record.FieldTraceID, record.FieldTraceID, by)
	return l.query(q, l.from, l.to, func(fields []record.Field) error {
		var p bind.Process
		var t bind.Thread
		var trace string
		var at int64
		for _, f := range fields {
			switch f.Name {
			case record.FieldTime:
				at = parseTime(f.Value)
			case record.FieldTraceID:
				trace = l.keep(f.Value)
			default:
				l.setPlace(&p, &t, f)
			}
		}
		if p.Known() {
			l.ix.AddHint(l.shared(p), t, trace, at/int64(time.Second))
		}
		return l.checkSize()
	})
}

// requests loads which traces the request ids were seen in, in fields.
func (l *loader) requests() error {
	add := func(fields []record.Field) error {
		var id, trace, service string
		var at, duration int64
		for _, f := range fields {
			switch f.Name {
			case record.FieldTime:
				at = parseTime(f.Value)
			case "id":
				id = bind.CleanRequestID(f.Value)
			case "d":
				if d, err := strconv.ParseFloat(f.Value, 64); err == nil && d > 0 {
					duration = int64(d)
				}
			case record.FieldTraceID:
				trace = f.Value
			case "service.name":
				service = f.Value
			}
		}
		// A trace's request id matters for the records that its spans bind.
		if id == "" || !l.needIDs[id] && l.strings[trace] == "" {
			return nil
		}
		from := at / int64(time.Second)
		l.ix.AddRequest(l.keep(id), l.keep(trace), l.keep(service), from, from+(duration+int64(time.Second)-1)/int64(time.Second))
		return l.checkSize()
	}
	tail := fmt.Sprintf(` | coalesce(%s) as id | stats by (_time:1s, id, %s, "service.name") max(%s) d`, quoted(bind.RequestIDFields...), record.FieldTraceID, record.FieldDuration)
	has := fmt.Sprintf(`%s:* %s`, record.FieldTraceID, anyOf(bind.RequestIDFields))
	both := fmt.Sprintf(`{%q in (%q, %q)} `, record.FieldType, string(record.TypeLog), string(record.TypeSpan))
	if err := l.query(both+has+tail, l.from, l.to, add); err != nil {
		return err
	}
	spans := fmt.Sprintf(`{%q=%q} `, record.FieldType, string(record.TypeSpan))
	return l.query(spans+has+" "+l.early()+tail, l.from.Add(-l.o.MaxSpan), l.from, add)
}

// texts loads which traces the request ids were seen in, in texts of records
// that have none in a field.
func (l *loader) texts() error {
	if len(l.needIDs) == 0 {
		return nil
	}
	q := fmt.Sprintf(`{%q=%q} %s:* !%s %s:~%q | fields %s, %s, "service.name", %s`,
		record.FieldType, string(record.TypeLog), record.FieldTraceID, anyOf(bind.RequestIDFields),
		record.FieldBody, `(?i)req(uest)?[_. -]?id|\[req-|cmpl-|请求`,
		record.FieldTime, record.FieldTraceID, record.FieldBody)
	return l.query(q, l.from, l.to, func(fields []record.Field) error {
		var id, trace, service string
		var at int64
		for _, f := range fields {
			switch f.Name {
			case record.FieldTime:
				at = parseTime(f.Value)
			case record.FieldBody:
				id = bind.RequestIDInText(f.Value)
			case record.FieldTraceID:
				trace = f.Value
			case "service.name":
				service = f.Value
			}
		}
		if id == "" || !l.needIDs[id] {
			return nil
		}
		s := at / int64(time.Second)
		l.ix.AddRequest(l.keep(id), l.keep(trace), l.keep(service), s, s)
		return l.checkSize()
	})
}

// keep returns a copy of s that stays valid; equal ones are shared.
func (l *loader) keep(s string) string {
	if s == "" {
		return ""
	}
	if t, ok := l.strings[s]; ok {
		return t
	}
	s = strings.Clone(s)
	l.strings[s] = s
	return s
}

func (l *loader) shared(p bind.Process) *bind.Process {
	if q := l.process[p]; q != nil {
		return q
	}
	q := &p
	l.process[p] = q
	return q
}

func (l *loader) checkSize() error {
	spans, others := l.ix.Size()
	if spans > l.o.MaxSpans || others > l.o.MaxOthers {
		return errTooMuch
	}
	return nil
}
