// Package binding binds stored records without a trace id to their requests, by
// the rules of package admit/bind. It is done when questions are asked, not when
// records arrive: a span comes after the records that were written during it, a
// recorder must acknowledge at once and keeps what it got as it is, and so the
// same stored data always gives the same answer. It is above the stores, since
// it reads them; admit/bind knows no store.
package binding

import (
	"context"
	"errors"
	"fmt"
	"time"

	"inquest/admit/bind"
	"inquest/record"
	"inquest/store"
)

// Options are the settings of binding. The zero value of each gives its default.
type Options struct {
	// Window is how far apart a record and the evidence may be. Default
	// [bind.DefaultWindow]. Whole seconds count.
	Window time.Duration
	// MaxSpan is how long before the window a span may have begun and still be
	// seen. Default one hour.
	MaxSpan time.Duration
	// MaxRequestIDs, MaxSpans and MaxOthers bound what is held in memory at once:
	// request ids of records without a trace id, spans, and other evidence. A
	// stretch of time that holds more is worked on in parts. Defaults 200,000,
	// 500,000 and 1,000,000.
	MaxRequestIDs, MaxSpans, MaxOthers int
	// Filter is a LogsQL filter that says which records are bound; the evidence is
	// the same whatever it says. Default: all.
	Filter string
}

// candidates is the query for the records that are bound.
func (o Options) candidates() string {
	if o.Filter == "" {
		return idless
	}
	return idless + " (" + o.Filter + ")"
}

func (o Options) withDefaults() Options {
	if o.Window < time.Second {
		o.Window = bind.DefaultWindow
	}
	o.Window = o.Window.Truncate(time.Second)
	if o.MaxSpan <= 0 {
		o.MaxSpan = time.Hour
	}
	if o.MaxRequestIDs <= 0 {
		o.MaxRequestIDs = 200_000
	}
	if o.MaxSpans <= 0 {
		o.MaxSpans = 500_000
	}
	if o.MaxOthers <= 0 {
		o.MaxOthers = 1_000_000
	}
	return o
}

// Counts says what became of records without a trace id.
type Counts struct {
	Records             int `json:"records"`
	ByRequestID         int `json:"by_request_id"`
	ByProcess           int `json:"by_process"`
	WithSpan            int `json:"with_span"` // of the bound ones, those with a span id too
	AmbiguousRequestID  int `json:"ambiguous_request_id"`
	AmbiguousProcess    int `json:"ambiguous_process"`
	NoEvidence          int `json:"no_evidence"`
	Unexamined          int `json:"unexamined"`            // in a second with more evidence than may be held
	RequestID           int `json:"request_id"`            // with a request id of their own, in a field or their text
	RequestIDWithBound  int `json:"request_id_with_bound"` // with one of their own or of the trace they are bound to
	RequestIDInTextOnly int `json:"request_id_in_text"`    // whose own request id is in their text only
}

func (c *Counts) add(b bind.Binding, o bind.Outcome) {
	c.Records++
	switch o {
	case bind.AmbiguousRequestID:
		c.AmbiguousRequestID++
	case bind.AmbiguousProcess:
		c.AmbiguousProcess++
	case bind.NoEvidence:
		c.NoEvidence++
	case bind.Bound:
		if b.By == bind.ByRequestID {
			c.ByRequestID++
		} else {
			c.ByProcess++
		}
		if b.SpanID != "" {
			c.WithSpan++
		}
	}
	if b.RequestID != "" {
		c.RequestIDWithBound++
	}
}

// plus adds up counts.
func (c *Counts) plus(d Counts) {
	c.Records += d.Records
	c.ByRequestID += d.ByRequestID
	c.ByProcess += d.ByProcess
	c.WithSpan += d.WithSpan
	c.AmbiguousRequestID += d.AmbiguousRequestID
	c.AmbiguousProcess += d.AmbiguousProcess
	c.NoEvidence += d.NoEvidence
	c.Unexamined += d.Unexamined
	c.RequestID += d.RequestID
	c.RequestIDWithBound += d.RequestIDWithBound
	c.RequestIDInTextOnly += d.RequestIDInTextOnly
}

// Result is what [Bind] counted, by service ("" for records without one).
type Result struct {
	Services map[string]Counts
}

// Total is the sum over all services.
func (r *Result) Total() Counts {
	var c Counts
	for _, s := range r.Services {
		c.plus(s)
	}
	return c
}

// Bind works out the binding of each log record without a trace id between from
// (inclusive) and to (exclusive). fn, which may be nil, gets the stored fields
// of each and what was found, in no order and never concurrently; they are valid
// during the call only, and fn must not query the store. An error of fn ends the
// call and is returned as it is.
//
// The cost is two passes over the records without a trace id, and one over what
// carries request ids and the spans of their services within the window around.
func Bind(ctx context.Context, records store.RecordReader, from, to time.Time, o Options, fn func(fields []record.Field, b bind.Binding, out bind.Outcome) error) (*Result, error) {
	o = o.withDefaults()
	res := &Result{Services: map[string]Counts{}}
	const step = 10 * time.Minute
	from, to, err := clamp(ctx, records, o, from, to)
	if err != nil {
		return nil, err
	}
	for at := from; at.Before(to); {
		next := at.Truncate(step).Add(step)
		if next.After(to) {
			next = to
		}
		w := &worker{ctx: ctx, records: records, o: o, fn: fn, res: res}
		if err := w.part(at, next); err != nil {
			return nil, err
		}
		at = next
	}
	return res, nil
}

// clamp cuts the range to where there are records without a trace id.
func clamp(ctx context.Context, records store.RecordReader, o Options, from, to time.Time) (time.Time, time.Time, error) {
	var first, last time.Time
	err := records.QueryRecords(ctx, store.RecordQuery{
		LogsQL: o.candidates() + ` | stats min(_time) first, max(_time) last`, From: from, To: to,
	}, func(fields []record.Field) error {
		for _, f := range fields {
			t, err := time.Parse(time.RFC3339Nano, f.Value)
			if err != nil {
				return nil // no rows
			}
			if f.Name == "first" {
				first = t
			} else {
				last = t
			}
		}
		return nil
	})
	if err != nil {
		return from, to, fmt.Errorf("cannot find records without a trace id: %w", err)
	}
	if first.IsZero() || last.IsZero() {
		return from, from, nil
	}
	return first, last.Add(1), nil
}

// errTooMuch says that a stretch holds more evidence than may be kept.
var errTooMuch = errors.New("more evidence than may be held at once")

// worker binds the records of one stretch.
type worker struct {
	ctx     context.Context
	records store.RecordReader
	o       Options
	fn      func([]record.Field, bind.Binding, bind.Outcome) error
	res     *Result
}

// part binds from ≤ time < to, in halves where there is too much of it. Halves
// give the same answers, since each looks at the whole window around.
func (w *worker) part(from, to time.Time) error {
	ix, n, err := Load(w.ctx, w.records, from, to, w.o)
	if errors.Is(err, errTooMuch) {
		if to.Sub(from) <= time.Second {
			return w.skip(from, to)
		}
		middle := from.Add(to.Sub(from) / 2)
		if err := w.part(from, middle); err != nil {
			return err
		}
		return w.part(middle, to)
	}
	if err != nil {
		return err
	}
	if n == 0 {
		return nil
	}
	query := w.o.candidates()
	if w.fn == nil {
		query += " | fields " + idlessFields
	}
	return w.each(query, from, to, func(fields []record.Field) error {
		r := recordOf(fields)
		b, out := ix.Bind(&r)
		c := w.res.Services[r.Service]
		c.add(b, out)
		if r.RequestID != "" {
			c.RequestID++
			if bind.RequestID(fields) == "" {
				c.RequestIDInTextOnly++
			}
		}
		w.res.Services[r.Service] = c
		if w.fn != nil {
			return w.fn(fields, b, out)
		}
		return nil
	})
}

// skip counts records that cannot be examined.
func (w *worker) skip(from, to time.Time) error {
	return w.each(w.o.candidates()+" | fields "+idlessFields, from, to, func(fields []record.Field) error {
		r := recordOf(fields)
		c := w.res.Services[r.Service]
		c.Records++
		c.Unexamined++
		w.res.Services[r.Service] = c
		return nil
	})
}

func (w *worker) each(query string, from, to time.Time, fn func([]record.Field) error) error {
	return w.records.QueryRecords(w.ctx, store.RecordQuery{LogsQL: query, From: from, To: to}, fn)
}

// Annotate returns fields with what the binding found added: trace_id, span_id,
// request.id and the mark [bind.Attribute]. What the record has already stays.
func Annotate(fields []record.Field, b bind.Binding) []record.Field {
	if b.By == "" {
		return fields
	}
	has := func(name string) bool {
		for _, f := range fields {
			if f.Name == name && f.Value != "" {
				return true
			}
		}
		return false
	}
	for _, f := range []record.Field{
		{Name: record.FieldTraceID, Value: b.TraceID},
		{Name: record.FieldSpanID, Value: b.SpanID},
		{Name: bind.RequestIDFields[0], Value: b.RequestID},
		{Name: bind.Attribute, Value: b.By},
	} {
		if f.Value != "" && !has(f.Name) {
			fields = append(fields, f)
		}
	}
	return fields
}
