package verdict

import (
	"cmp"
	"math"
	"slices"
	"time"

	"inquest/record"
	"inquest/sensor"
)

// onset estimates when the cause began to show. Requests that break tell it by
// the first of them, values by where they change their level; the strongest
// evidence that tells anything is believed.
func onset(q Question, ev *evidence, f *facts, h *hypothesis) *Onset {
	if q.Onset != nil {
		return &Onset{Time: q.Onset.UTC(), Given: true}
	}
	if b := f.breakOf(h); b != nil && len(b.At) > 0 {
		return &Onset{Time: sensor.Time(b.At[0]), ErrorSeconds: spacing(b.At, ev.window)}
	}
	var idx []int
	for i := range h.pieces {
		if p := &h.pieces[i]; !p.expect.Absent && !p.expect.Symptom && p.p <= essentialP {
			idx = append(idx, p.findings...)
		}
	}
	slices.SortStableFunc(idx, func(a, b int) int {
		return cmp.Or(cmp.Compare(f.findings[a].Strength, f.findings[b].Strength), cmp.Compare(f.findings[b].Effect, f.findings[a].Effect))
	})
	for _, i := range idx {
		if o := ev.change(&f.findings[i]); o != nil {
			return o
		}
	}
	w := ev.window
	return &Onset{Time: sensor.Time(w.From), ErrorSeconds: time.Duration(w.To - w.From).Seconds()}
}

// spacing is how far apart observations are: the onset lies at most so far
// before the first.
func spacing(at []int64, w sensor.Range) float64 {
	if len(at) < 2 {
		return time.Duration(w.To - w.From).Seconds()
	}
	return time.Duration((at[len(at)-1] - at[0]) / int64(len(at)-1)).Seconds()
}

// sampleOf returns the values of a finding's measure in the incident.
func (ev *evidence) sampleOf(x *record.Finding) *sensor.Sample {
	k := sensor.Key{
		Quadrant: x.Quadrant, Sensor: x.Sensor, Kind: x.Kind, Entity: x.Entity, Subject: x.Subject, Unit: x.Unit,
	}
	if x.Peer != nil {
		k.Peer = *x.Peer
	}
	if s := ev.requests.Values[k]; s != nil {
		return s
	}
	return ev.series.Values[k]
}

// change finds where the values of a finding pass half the way from what is
// expected to what was observed, for good: the split that leaves the fewest
// values on the wrong side. It returns nil when there are too few values.
func (ev *evidence) change(x *record.Finding) *Onset {
	s := ev.sampleOf(x)
	if s == nil || len(s.Values) < 2 {
		return nil
	}
	order := make([]int, len(s.Values))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(s.Times[a], s.Times[b]) })
	half := (x.Observed + x.Expected) / 2
	changed := make([]bool, len(order))
	for i, k := range order {
		changed[i] = (s.Values[k] > half) == (x.Observed > x.Expected)
	}
	at := split(changed)
	if at == len(order) {
		return nil
	}
	first := s.Times[order[at]]
	before := ev.window.From
	if at > 0 {
		before = s.Times[order[at-1]]
	}
	// Between the last ordinary and the first changed value; a value that stands
	// for a time, as a metric does, may have changed well before it was read.
	return &Onset{
		Time:         sensor.Time(before + (first-before)/2),
		ErrorSeconds: math.Max(time.Duration((first-before)/2).Seconds(), 1),
	}
}

// split returns the index from which on flags are set, with the fewest
// exceptions before and after; len(flags) when they are set nowhere.
func split(flags []bool) int {
	wrong := 0 // for a split at 0: all flags that are not set
	for _, f := range flags {
		if !f {
			wrong++
		}
	}
	best, at := wrong, 0
	for i, f := range flags {
		if f {
			wrong++
		} else {
			wrong--
		}
		if wrong < best {
			best, at = wrong, i+1
		}
	}
	return at
}
