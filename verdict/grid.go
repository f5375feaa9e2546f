package verdict

import (
	"context"
	"maps"

	"inquest/record"
	"inquest/sensor"
)

// grid is a stretch cut into equal steps, each measured once.
type grid struct {
	ranges   []sensor.Range
	requests []*sensor.Profile
	series   []*sensor.Profile
	merged   map[int][2]*sensor.Profile
	slices   int // bound of baseline slices
}

func (e *Engine) readGrid(ctx context.Context, s Scan) (*grid, error) {
	g := &grid{slices: e.opt.Slices, merged: map[int][2]*sensor.Profile{}}
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
		p.Points = part.Points
		for _, m := range seriesSensors() {
			m.Measure(part, p)
		}
		g.series = append(g.series, p)
	}
	return g, nil
}

// merge returns the steps from i on taken together, once for all windows.
func (g *grid) merge(i, per int) (requests, series *sensor.Profile) {
	m, ok := g.merged[i]
	if !ok {
		m = [2]*sensor.Profile{sensor.Merge(g.requests[i : i+per]), sensor.Merge(g.series[i : i+per])}
		g.merged[i] = m
	}
	return m[0], m[1]
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
	// The rest is compared in stretches as long as the window itself, the same for
	// all windows.
	for k := 0; k+per <= len(g.ranges); k += per {
		if k+per > i-guard && k < i+per+guard {
			continue
		}
		requests, series := g.merge(k, per)
		if requests.Spans+requests.Logs > 0 {
			ev.baseRequests = append(ev.baseRequests, requests)
		}
		if series.Points > 0 {
			ev.baseSeries = append(ev.baseSeries, series)
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
			resources, other := count(p)
			n[record.QuadrantResources] += resources
			n[record.QuadrantMetrics] += other
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
