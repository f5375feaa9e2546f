package verdict

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"inquest/record"
	"inquest/sensor"
)

func rangeOf(from, to time.Time) sensor.Range {
	return sensor.Range{From: from.UnixNano(), To: to.UnixNano()}
}

func outRange(r sensor.Range) Range { return Range{sensor.Time(r.From), sensor.Time(r.To)} }

// gather reads and measures incident and baseline.
func (e *Engine) gather(ctx context.Context, q Question) (*evidence, error) {
	ev := &evidence{voc: e.voc, window: rangeOf(q.From, q.To), has: map[record.Quadrant]bool{}}
	ev.baseline = e.baselineRanges(q)
	all := ev.window
	for _, b := range ev.baseline {
		all.From, all.To = min(all.From, b.From), max(all.To, b.To)
	}
	covers, err := e.src.Describe(ctx, all)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		covers = nil // the source cannot tell: take it to be there, and see
		for _, quad := range []record.Quadrant{record.QuadrantLogs, record.QuadrantMetrics, record.QuadrantTraces} {
			covers = append(covers, sensor.Coverage{Source: "telemetry", Quadrant: quad})
		}
	}
	requests := e.plan(ev, covers, record.QuadrantTraces, record.QuadrantLogs)
	if err := e.readRequests(ctx, ev, requests, covers); err != nil {
		return nil, err
	}
	if err := e.readSeries(ctx, ev, e.plan(ev, covers, record.QuadrantMetrics), all, covers); err != nil {
		return nil, err
	}
	if err := e.readNoted(ctx, ev); err != nil {
		return nil, err
	}
	slices.SortFunc(ev.missing, func(a, b Missing) int {
		return cmp.Or(cmp.Compare(a.Quadrant, b.Quadrant), cmp.Compare(a.Source, b.Source), cmp.Compare(a.Reason, b.Reason))
	})
	return ev, nil
}

// baselineRanges are the stretches to compare with: those asked for, else the
// lookback. The incident itself is cut out, and half its length on both sides,
// for its edges are not known so well and what it did fades out.
func (e *Engine) baselineRanges(q Question) []sensor.Range {
	var ranges []sensor.Range
	for _, b := range q.Baseline {
		ranges = append(ranges, rangeOf(b.From, b.To))
	}
	if len(ranges) == 0 {
		ranges = []sensor.Range{rangeOf(q.From.Add(-e.opt.Lookback), q.From)}
	}
	w := rangeOf(q.From, q.To)
	guard := (w.To - w.From) / 2
	w.From, w.To = w.From-guard, w.To+guard
	var out []sensor.Range
	for _, r := range join(ranges) {
		if r.From < w.From {
			out = append(out, sensor.Range{From: r.From, To: min(r.To, w.From)})
		}
		if r.To > w.To {
			out = append(out, sensor.Range{From: max(r.From, w.To), To: r.To})
		}
	}
	return out
}

// join sorts ranges and unites those that touch.
func join(in []sensor.Range) []sensor.Range {
	s := slices.Clone(in)
	slices.SortFunc(s, func(a, b sensor.Range) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) })
	var out []sensor.Range
	for _, r := range s {
		if k := len(out) - 1; k >= 0 && r.From <= out[k].To {
			out[k].To = max(out[k].To, r.To)
		} else {
			out = append(out, r)
		}
	}
	return out
}

func intersect(a, b []sensor.Range) []sensor.Range {
	var out []sensor.Range
	for _, x := range a {
		for _, y := range b {
			if from, to := max(x.From, y.From), min(x.To, y.To); from < to {
				out = append(out, sensor.Range{From: from, To: to})
			}
		}
	}
	return join(out)
}

// plan cuts the part of the baseline that the quadrants' sources cover into
// slices about as long as the incident, shorter when there would be too few of
// them and never shorter than leastSlice.
func (e *Engine) plan(ev *evidence, covers []sensor.Coverage, quads ...record.Quadrant) []sensor.Range {
	covered := ev.baseline
	var have []sensor.Range
	known := false
	for _, c := range covers {
		if slices.Contains(quads, c.Quadrant) && c.Ranges != nil {
			known = true
			have = append(have, c.Ranges...)
		}
	}
	if known {
		covered = intersect(covered, join(have))
	}
	total := int64(0)
	for _, r := range covered {
		total += r.To - r.From
	}
	width := min(ev.window.To-ev.window.From, max(total/wantSlices, int64(leastSlice)))
	width = max(width, total/int64(e.opt.Slices))
	var out []sensor.Range
	for _, r := range covered {
		n := max(1, (r.To-r.From+width/2)/width)
		for i := range n {
			s := sensor.Range{From: r.From + (r.To-r.From)*i/n, To: r.From + (r.To-r.From)*(i+1)/n}
			if s.To-s.From >= width/4 { // a stump says little and noisily
				out = append(out, s)
			}
		}
	}
	return out
}

// readRequests measures traces and log records.
func (e *Engine) readRequests(ctx context.Context, ev *evidence, plan []sensor.Range, covers []sensor.Coverage) error {
	var err error
	notes := map[record.Quadrant]string{}
	if ev.baseRequests, err = e.profiles(ctx, plan, notes); err != nil {
		return err
	}
	own, err := e.profiles(ctx, []sensor.Range{ev.window}, notes)
	if err != nil {
		return err
	}
	ev.requests = own[0]
	past := map[record.Quadrant]int{}
	for _, p := range ev.baseRequests {
		past[record.QuadrantTraces] += p.Spans
		past[record.QuadrantLogs] += p.Logs
	}
	ev.account(record.QuadrantTraces, ev.requests.Spans, past[record.QuadrantTraces], notes, covers)
	ev.account(record.QuadrantLogs, ev.requests.Logs, past[record.QuadrantLogs], notes, covers)
	return nil
}

// profiles measures slices, reading neighbouring ones together.
func (e *Engine) profiles(ctx context.Context, plan []sensor.Range, notes map[record.Quadrant]string) ([]*sensor.Profile, error) {
	out := make([]*sensor.Profile, len(plan))
	var todo []run
	for i := 0; i < len(plan); {
		if p := e.seen[plan[i]]; p != nil {
			out[i] = p
			i++
			continue
		}
		j := i + 1
		for j < len(plan) && plan[j].From == plan[j-1].To && plan[j].To-plan[i].From <= int64(chunk) && e.seen[plan[j]] == nil {
			j++
		}
		todo = append(todo, run{i, j})
		i = j
	}
	ctx, cancel := context.WithCancel(ctx)
	windows := e.windows(ctx, plan, todo)
	defer func() {
		cancel()
		for range windows { // until its goroutine has ended
		}
	}()
	for _, r := range todo {
		g, ok := <-windows
		if !ok {
			return nil, context.Cause(ctx)
		}
		if g.err != nil {
			return nil, g.err
		}
		maps.Copy(notes, g.window.Cut)
		maps.Copy(notes, g.window.Unavailable)
		for k := r.from; k < r.to; k++ {
			out[k] = e.measure(g.window.Part(plan[k]))
			if len(g.window.Unavailable) == 0 {
				e.seen[plan[k]] = out[k]
			}
		}
	}
	return out, nil
}

// run is a row of slices of a plan that are read together.
type run struct{ from, to int }

type gathered struct {
	window *sensor.Window
	err    error
}

// windows reads the runs in their order, one ahead of the caller: while one is
// measured the next one is read. The channel is closed at the end, after an
// error, and soon after ctx ends.
func (e *Engine) windows(ctx context.Context, plan []sensor.Range, runs []run) <-chan gathered {
	out := make(chan gathered)
	go func() {
		defer close(out)
		for _, r := range runs {
			around := sensor.Range{From: plan[r.from].From - int64(margin), To: plan[r.to-1].To + int64(margin)}
			w, err := sensor.Gather(ctx, e.src, around, e.opt.Limits, record.QuadrantTraces, record.QuadrantLogs)
			select {
			case out <- gathered{w, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return out
}

func (e *Engine) measure(w *sensor.Window) *sensor.Profile {
	p := sensor.NewProfile(w.Range)
	p.Spans, p.Logs, p.Points = w.Spans, w.Logs, w.Points
	for _, s := range requestSensors() {
		s.Measure(w, p)
	}
	e.voc.Flows(w, p)
	p.Clocks = w.Clocks.In(w.Range)
	if first, last, ok := extent(w); ok {
		p.Seconds = float64(last-first) / 1e9
	}
	return p
}

// extent is the stretch in which a window really has requests or records.
func extent(w *sensor.Window) (first, last int64, ok bool) {
	if n := len(w.Traces); n > 0 {
		first, last, ok = w.Traces[0].Start, w.Traces[n-1].Start, true
	}
	if n := len(w.Loose); n > 0 {
		if a, b := w.Loose[0].Time, w.Loose[n-1].Time; !ok {
			first, last, ok = a, b, true
		} else {
			first, last = min(first, a), max(last, b)
		}
	}
	return first, last, ok && last > first
}

// readSeries measures metrics. Baseline and incident are gathered at once, since
// rates need the point before.
func (e *Engine) readSeries(ctx context.Context, ev *evidence, plan []sensor.Range, all sensor.Range, covers []sensor.Coverage) error {
	w, err := sensor.Gather(ctx, e.src, all, e.opt.Limits, record.QuadrantMetrics)
	if err != nil {
		return err
	}
	ev.windowSeries = w
	measure := func(r sensor.Range) *sensor.Profile {
		part := w.Part(r)
		p := sensor.NewProfile(r)
		p.TakeSeries(part)
		for _, s := range seriesSensors() {
			s.Measure(part, p)
		}
		return p
	}
	past := map[record.Quadrant]int{}
	for _, r := range plan {
		p := measure(r)
		for q, n := range p.Measured {
			past[q] += n
		}
		ev.baseSeries = append(ev.baseSeries, p)
	}
	ev.series = measure(ev.window)
	notes := map[record.Quadrant]string{}
	maps.Copy(notes, w.Cut)
	maps.Copy(notes, w.Unavailable)
	if n := notes[record.QuadrantMetrics]; n != "" {
		notes[record.QuadrantResources] = n
	}
	for _, q := range []record.Quadrant{record.QuadrantMetrics, record.QuadrantResources} {
		ev.account(q, ev.series.Measured[q], past[q], notes, covers)
	}
	return nil
}

// account notes what of a quadrant was examined and what was not. A quadrant
// without data in the incident or the baseline was not examined: it cannot have
// shown nothing.
func (ev *evidence) account(quad record.Quadrant, now, past int, notes map[record.Quadrant]string, covers []sensor.Coverage) {
	source, ranges := string(quad), []Range(nil)
	asked := quad
	if quad == record.QuadrantResources {
		asked = record.QuadrantMetrics // resources are metric series too
	}
	var names []string
	for _, c := range covers {
		if c.Quadrant != asked {
			continue
		}
		names = append(names, c.Source)
		if c.Unavailable != "" {
			ev.missing = append(ev.missing, Missing{Source: c.Source, Quadrant: quad, Reason: c.Unavailable})
		}
		for _, r := range intersect(c.Ranges, []sensor.Range{ev.window}) {
			ranges = append(ranges, outRange(r))
		}
	}
	if len(names) == 1 {
		source = names[0]
	}
	reason := notes[quad]
	switch {
	case now > 0 && past > 0:
		ev.has[quad] = true
		ev.examined = append(ev.examined, Examined{Source: source, Quadrant: quad, Items: now, Ranges: ranges})
		if reason != "" {
			ev.missing = append(ev.missing, Missing{Source: source, Quadrant: quad, Reason: reason})
		}
	case reason != "":
		ev.missing = append(ev.missing, Missing{Source: source, Quadrant: quad, Reason: reason})
	case now == 0:
		ev.missing = append(ev.missing, Missing{Source: source, Quadrant: quad, Reason: "no data in the window of the incident"})
	default:
		ev.missing = append(ev.missing, Missing{
			Source: source, Quadrant: quad,
			Reason: fmt.Sprintf("no data in the baseline to compare its %d items with", now),
		})
	}
}
