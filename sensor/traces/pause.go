package traces

import (
	"cmp"
	"slices"

	"inquest/record"
	"inquest/sensor"
	"inquest/stats"
)

// KindPause is that several requests of one pod stand still together: how often,
// and with the subject "length" for how long (ms). Garbage collection, a graph
// that is captured again, a process that is stopped.
const KindPause = "pause"

const (
	// leastMoments is the number of moments between steps from which the usual
	// length of one is known.
	leastMoments = 20
	// pauseTimes is from how many times their upper decile a moment is a pause: with
	// steps at random, one in a thousand is that long.
	pauseTimes = 3
	// leastPause is the shortest pause, ns: no request notices a shorter one.
	leastPause = 10e6
)

// Pauses looks, in each pod, for moments in which two requests or more were at
// work, none waited for another service, and none of them took a step: no span
// began or ended, no record was written.
type Pauses struct{}

// Name implements [sensor.Sensor].
func (Pauses) Name() string { return "traces/pauses" }

// Quadrant implements [sensor.Sensor].
func (Pauses) Quadrant() record.Quadrant { return record.QuadrantTraces }

// podSteps is what happened in a pod.
type podSteps struct {
	service string
	steps   []step
}

// step is a time at which something happened, and how that changed the number of
// requests at work.
type step struct {
	at     int64
	change int32
	visit  *sensor.Visit
}

// Measure implements [sensor.Sensor].
func (s Pauses) Measure(w *sensor.Window, p *sensor.Profile) {
	pods := map[string]*podSteps{}
	var names []string
	var work []interval
	for _, t := range w.Traces {
		for _, v := range t.Visits {
			if v.Pod == "" {
				continue
			}
			pod := pods[v.Pod]
			if pod == nil {
				pod = &podSteps{service: v.Service}
				pods[v.Pod] = pod
				names = append(names, v.Pod)
			}
			work = working(v, work[:0])
			for _, x := range work {
				pod.steps = append(pod.steps, step{x.from, 1, v}, step{x.to, -1, v})
			}
			for _, n := range v.Nodes {
				pod.steps = append(pod.steps, step{n.Start, 0, v}, step{n.End(), 0, v})
			}
			for i := range v.Logs {
				pod.steps = append(pod.steps, step{v.Logs[i].Time, 0, v})
			}
		}
	}
	for _, name := range names {
		pods[name].measure(s, p, name, w.Range)
	}
}

type moment struct {
	at, length int64
	visit      *sensor.Visit // that was at work
}

func (pod *podSteps) measure(s sensor.Sensor, p *sensor.Profile, name string, r sensor.Range) {
	moments := pod.moments(r)
	if len(moments) < leastMoments {
		return
	}
	lengths := make([]float64, len(moments))
	for i, m := range moments {
		lengths[i] = float64(m.length)
	}
	least := max(leastPause, pauseTimes*stats.Quantile(lengths, 0.9))
	often := key(s, KindPause, sensor.Pod(name), "", "{pause}")
	if p.Rates[often] == nil {
		p.Rates[often] = &sensor.Hits{} // it was looked at
	}
	p.Edges[record.Edge{Kind: record.EdgeServes, From: sensor.Pod(name), To: sensor.Service(pod.service)}]++
	long := key(s, KindPause, sensor.Pod(name), "length", "ms")
	for _, m := range moments {
		if float64(m.length) < least {
			continue
		}
		it := short(m.visit.Entry)
		it.Time = sensor.Time(m.at)
		p.Count(often, it)
		p.Value(long, float64(m.length)/1e6, it)
	}
}

// moments returns the times between steps at which two requests or more were at
// work.
func (pod *podSteps) moments(r sensor.Range) []moment {
	slices.SortStableFunc(pod.steps, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	var out []moment
	working := int32(0)
	for i, x := range pod.steps {
		if i > 0 && working >= 2 && x.at > pod.steps[i-1].at && pod.steps[i-1].at < r.To {
			last := pod.steps[i-1]
			out = append(out, moment{last.at, x.at - last.at, last.visit})
		}
		working += x.change
	}
	return out
}

type interval struct{ from, to int64 }

// working adds the times to list at which a visit worked itself: in a span that is
// no call, outside of its children.
func working(v *sensor.Visit, list []interval) []interval {
	for _, n := range v.Nodes {
		if leads(n) {
			continue
		}
		if _, dep := sensor.DependencyOf(n); dep {
			continue
		}
		upTo := n.Start
		for _, c := range n.Children {
			if c.Start > upTo {
				list = append(list, interval{upTo, min(c.Start, n.End())})
			}
			upTo = max(upTo, c.End())
		}
		if upTo < n.End() {
			list = append(list, interval{upTo, n.End()})
		}
	}
	slices.SortFunc(list, func(a, b interval) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
	out := list[:0]
	for _, x := range list {
		if k := len(out) - 1; k >= 0 && x.from <= out[k].to {
			out[k].to = max(out[k].to, x.to)
		} else if x.to > x.from {
			out = append(out, x)
		}
	}
	return out
}
