package verdict

import (
	"context"
	"maps"
	"slices"

	"inquest/record"
	"inquest/sensor"
)

// grid is a stretch cut into equal steps, each measured once.
type grid struct {
	ranges   []sensor.Range
	requests []*sensor.Profile
	series   []*sensor.Profile
	// steps taken together, by the first
	mergedRequests, mergedSeries map[int]*sensor.Profile
	slices                       int // bound of baseline slices
}

func (e *Engine) readGrid(ctx context.Context, s Scan) (*grid, error) {
	g := &grid{slices: e.opt.Slices, mergedRequests: map[int]*sensor.Profile{}, mergedSeries: map[int]*sensor.Profile{}}
	for t := s.From; t.Before(s.To); t = t.Add(s.Step) {
		g.ranges = append(g.ranges, rangeOf(t, t.Add(s.Step)))
	}
	notes := map[record.Quadrant]string{}
	var err error
	if g.requests, err = e.profiles(ctx, g.ranges, notes); err != nil {
		return nil, err
	}
	w, err := sensor.Gather(ctx, e.src, rangeOf(s.From, s.To), e.opt.Limits, record.QuadrantMetrics)
	if err != nil {
		return nil, err
	}
	maps.Copy(notes, w.Unavailable)
	for _, r := range g.ranges {
		part := w.Part(r)
		p := sensor.NewProfile(r)
		p.TakeSeries(part)
		for _, m := range seriesSensors() {
			m.Measure(part, p)
		}
		g.series = append(g.series, p)
	}
	return g, nil
}

// merge returns the steps from i on taken together, once for all windows.
func (g *grid) merge(steps []*sensor.Profile, done map[int]*sensor.Profile, i, per int) *sensor.Profile {
	if done[i] == nil {
		done[i] = sensor.Merge(steps[i : i+per])
	}
	return done[i]
}

// around returns the starts of stretches of per steps laid out from the window
// at i in both directions, less the guard.
func (g *grid) around(i, per, guard int) []int {
	var starts []int
	for k := i - guard - per; k >= 0; k -= per {
		starts = append(starts, k)
	}
	slices.Reverse(starts)
	for k := i + per + guard; k+per <= len(g.ranges); k += per {
		starts = append(starts, k)
	}
	return starts
}

// evidence builds what was measured in per steps from i on, against the rest
// less a guard of half the window on both sides; nil when nothing was recorded.
func (g *grid) evidence(i, per int) *evidence {
	guard := (per + 1) / 2
	ev := &evidence{
		window: sensor.Range{From: g.ranges[i].From, To: g.ranges[i+per-1].To},
		has:    map[record.Quadrant]bool{},
	}
	ev.requests, ev.series = sensor.Merge(g.requests[i:i+per]), sensor.Merge(g.series[i:i+per])
	if ev.requests.Spans+ev.requests.Logs+ev.series.Points == 0 {
		return nil
	}
	// The rest is compared in stretches as long as the window itself. Requests often
	// come with holes between, and stretches laid out from the window meet them as
	// it does. Series run through, and one layout serves all windows.
	for _, k := range g.around(i, per, guard) {
		if p := g.merge(g.requests, g.mergedRequests, k, per); p.Spans+p.Logs > 0 {
			ev.baseRequests = append(ev.baseRequests, p)
		}
	}
	for k := 0; k+per <= len(g.ranges); k += per {
		if k+per > i-guard && k < i+per+guard {
			continue
		}
		if p := g.merge(g.series, g.mergedSeries, k, per); p.Points > 0 {
			ev.baseSeries = append(ev.baseSeries, p)
		}
	}
	ev.has = has(append(ev.baseRequests[:len(ev.baseRequests):len(ev.baseRequests)], ev.baseSeries...), ev.requests, ev.series)
	ev.baseRequests, ev.baseSeries = thin(ev.baseRequests, g.slices), thin(ev.baseSeries, g.slices)
	return ev
}

// thin takes at most n profiles, evenly.
func thin(p []*sensor.Profile, n int) []*sensor.Profile {
	if len(p) <= n {
		return p
	}
	out := make([]*sensor.Profile, 0, n)
	for i := range n {
		out = append(out, p[i*len(p)/n])
	}
	return out
}

// has tells which quadrants have data in the incident and in the baseline.
func has(base []*sensor.Profile, now ...*sensor.Profile) map[record.Quadrant]bool {
	total := func(all []*sensor.Profile) map[record.Quadrant]int {
		n := map[record.Quadrant]int{}
		for _, p := range all {
			n[record.QuadrantTraces] += p.Spans
			n[record.QuadrantLogs] += p.Logs
			for q, points := range p.Measured {
				n[q] += points
			}
		}
		return n
	}
	a, b := total(base), total(now)
	out := map[record.Quadrant]bool{}
	for _, q := range record.Quadrants {
		out[q] = a[q] > 0 && b[q] > 0
	}
	return out
}
