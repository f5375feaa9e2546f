package sensor

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"inquest/record"
)

// Limits bound what a window holds. What lies beyond is cut by a rule that does
// not depend on the order of arrival, and declared in [Window.Cut].
type Limits struct {
	Spans  int // spans of one window
	Logs   int // log records of one window
	Series int // metric series of one window
	Points int // points of one series
}

// DefaultLimits keep one window within a few hundred MB.
var DefaultLimits = Limits{Spans: 400_000, Logs: 400_000, Series: 50_000, Points: 20_000}

// Window is the telemetry of a stretch of time, gathered and indexed. It is
// read-only after [Gather].
type Window struct {
	Range Range
	// Traces are sorted by start, then by identifier.
	Traces []*Trace
	// Loose are the log records that belong to no gathered trace, by time.
	Loose []Log
	// Series are sorted by name and labels.
	Series []Series
	// Clocks are those by which spans and log records were corrected; nil when
	// one clock stamps all.
	Clocks *Clocks

	Spans, Logs, Points int
	// Cut says what was left out by limits, Unavailable which quadrants could
	// not be asked and why.
	Cut         map[record.Quadrant]string
	Unavailable map[record.Quadrant]string
}

// errLimit ends a call of a source early.
var errLimit = errors.New("limit of the window reached")

// Gather reads one stretch of the given quadrants' telemetry. Errors of the
// source are noted in the window; only the end of ctx is returned.
func Gather(ctx context.Context, src Source, r Range, lim Limits, want ...record.Quadrant) (*Window, error) {
	w := &Window{Range: r, Cut: map[record.Quadrant]string{}, Unavailable: map[record.Quadrant]string{}}
	var spans []Span
	var logs []Log
	if wants(want, record.QuadrantTraces) {
		err := src.Spans(ctx, r, func(s Span) error {
			if len(spans) >= lim.Spans {
				w.Cut[record.QuadrantTraces] = "more spans than the limit of the window"
				return errLimit
			}
			if s.Duration < 0 {
				s.Duration = 0
			}
			spans = append(spans, s)
			return nil
		})
		if err := w.note(ctx, record.QuadrantTraces, err); err != nil {
			return nil, err
		}
	}
	if wants(want, record.QuadrantLogs) {
		err := src.Logs(ctx, r, func(l Log) error {
			if len(logs) >= lim.Logs {
				w.Cut[record.QuadrantLogs] = "more log records than the limit of the window"
				return errLimit
			}
			logs = append(logs, l)
			return nil
		})
		if err := w.note(ctx, record.QuadrantLogs, err); err != nil {
			return nil, err
		}
	}
	if wants(want, record.QuadrantMetrics) {
		err := src.Samples(ctx, r, func(s Series) error {
			if len(w.Series) >= lim.Series {
				w.Cut[record.QuadrantMetrics] = "more metric series than the limit of the window"
				return errLimit
			}
			if len(s.Points) > lim.Points {
				s.Points = s.Points[len(s.Points)-lim.Points:]
				w.Cut[record.QuadrantMetrics] = "series with more points than the limit; their latest points were used"
			}
			w.Points += len(s.Points)
			w.Series = append(w.Series, s)
			return nil
		})
		if err := w.note(ctx, record.QuadrantMetrics, err); err != nil {
			return nil, err
		}
	}
	w.Series = Derive(w.Series)
	classes := map[[2]string]Class{}
	for i := range w.Series {
		w.Series[i].about = about(&w.Series[i], classes)
	}
	w.Spans, w.Logs = len(spans), len(logs)
	w.index(spans, logs)
	return w, nil
}

func wants(want []record.Quadrant, q record.Quadrant) bool {
	return len(want) == 0 || slices.Contains(want, q)
}

func (w *Window) note(ctx context.Context, q record.Quadrant, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil && !errors.Is(err, errLimit) {
		w.Unavailable[q] = err.Error()
	}
	return nil
}

// index builds traces and sorts everything, so that the order in which the
// source gave it leaves no mark.
func (w *Window) index(spans []Span, logs []Log) {
	sortSpans(spans)
	if w.Clocks = readClocks(spans); w.Clocks.correct(spans, logs) {
		sortSpans(spans)
	}
	slices.SortFunc(logs, func(a, b Log) int {
		return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.TraceID, b.TraceID),
			cmp.Compare(a.SpanID, b.SpanID), cmp.Compare(a.Service, b.Service),
			cmp.Compare(a.Code, b.Code), cmp.Compare(a.Body, b.Body))
	})
	byTrace := map[string]*Trace{}
	for i := 0; i < len(spans); {
		j := i
		for j < len(spans) && spans[j].TraceID == spans[i].TraceID {
			j++
		}
		if spans[i].TraceID != "" {
			t := newTrace(spans[i:j])
			byTrace[t.ID] = t
			w.Traces = append(w.Traces, t)
		}
		i = j
	}
	for _, l := range logs {
		if t := byTrace[l.TraceID]; t == nil || !t.attach(l) {
			w.Loose = append(w.Loose, l)
		}
	}
	slices.SortFunc(w.Traces, func(a, b *Trace) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.ID, b.ID))
	})
	slices.SortFunc(w.Series, compareSeries)
}

func sortSpans(spans []Span) {
	slices.SortFunc(spans, func(a, b Span) int {
		return cmp.Or(cmp.Compare(a.TraceID, b.TraceID), cmp.Compare(a.Start, b.Start),
			cmp.Compare(b.Duration, a.Duration), cmp.Compare(a.SpanID, b.SpanID))
	})
}

func compareSeries(a, b Series) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(LabelText(a.Labels), LabelText(b.Labels)))
}

// LabelText writes labels in a stable form.
func LabelText(l map[string]string) string {
	names := make([]string, 0, len(l))
	for n := range l {
		names = append(names, n)
	}
	slices.Sort(names)
	var out []byte
	for _, n := range names {
		if len(out) > 0 {
			out = append(out, ',')
		}
		out = append(out, n...)
		out = append(out, '=')
		out = append(out, l[n]...)
	}
	return string(out)
}

// Part returns the part of w whose traces begin, whose log records lie and whose
// points lie in r. It shares everything with w.
func (w *Window) Part(r Range) *Window {
	p := &Window{Range: r, Clocks: w.Clocks, Cut: w.Cut, Unavailable: w.Unavailable}
	for _, t := range w.Traces {
		if r.Contains(t.Start) {
			p.Traces = append(p.Traces, t)
			p.Spans += len(t.Nodes)
			p.Logs += t.Logs
		}
	}
	for _, l := range w.Loose {
		if r.Contains(l.Time) {
			p.Loose = append(p.Loose, l)
			p.Logs++
		}
	}
	for _, s := range w.Series {
		lo, _ := slices.BinarySearchFunc(s.Points, r.From, func(p Point, t int64) int { return cmp.Compare(p.Time, t) })
		hi, _ := slices.BinarySearchFunc(s.Points, r.To, func(p Point, t int64) int { return cmp.Compare(p.Time, t) })
		if hi > lo {
			s.Points = s.Points[lo:hi]
			p.Series = append(p.Series, s)
			p.Points += hi - lo
		}
	}
	return p
}
