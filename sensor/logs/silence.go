package logs

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"inquest/record"
	"inquest/sensor"
	"inquest/stats"
)

// KindSilence is how long the log of a service, pod or machine stands still.
const KindSilence = "log_silence"

const (
	// tailGaps is the number of the longest gaps of the baseline whose lengths tell
	// how the tail falls off, leastGaps the least from which it can.
	tailGaps, leastGaps = 20, 6
	// leastRecords is the number of records in the baseline from which a log can be
	// silent.
	leastRecords = 30
)

// silences compares the longest gap of each log with those of the baseline: over a
// high threshold, lengths fall off exponentially (peaks over threshold).
func silences(base []*sensor.Profile, inc *sensor.Profile) []sensor.Compared {
	if len(base) < leastSlices || inc.Logs == 0 {
		return nil
	}
	seen := map[record.Entity]int{}
	for _, p := range base {
		for e, s := range p.Streams {
			if s.Records > 0 {
				seen[e]++
			}
		}
	}
	entities := make([]record.Entity, 0, len(seen))
	for e, n := range seen {
		if n >= leastSlices && 2*n > len(base) {
			entities = append(entities, e)
		}
	}
	slices.SortFunc(entities, record.Entity.Compare)
	var out []sensor.Compared
	for _, e := range entities {
		if x, ok := silence(e, base, inc); ok {
			out = append(out, x)
		}
	}
	return out
}

// past is what the baseline shows of the gaps of one log.
type past struct {
	gaps    []float64 // s, the longest first
	longest []float64 // s, by slice
	seconds float64
	records int
	last    int64 // time of the last record before the incident, when what was read reaches to it
	service string
}

func gapsOf(e record.Entity, base []*sensor.Profile, before int64) past {
	b := past{longest: make([]float64, len(base)), last: math.MinInt64}
	const none = math.MinInt64
	end, at := int64(none), int64(none) // of the stretch that goes on, and its last record
	for i, p := range base {
		if p.Range.From != end {
			at = none
		}
		end = p.Range.To
		b.seconds += float64(p.Range.To-p.Range.From) / 1e9
		s := p.Streams[e]
		if s == nil || s.Records == 0 {
			continue
		}
		if s.Service != "" {
			b.service = s.Service
		}
		b.records += s.Records
		add := func(g sensor.Range) {
			d := float64(g.To-g.From) / 1e9
			b.gaps = append(b.gaps, d)
			b.longest[i] = max(b.longest[i], d)
		}
		if at != none && s.First > at {
			add(sensor.Range{From: at, To: s.First})
		}
		for _, g := range s.Gaps {
			add(g)
		}
		at = s.Last
		if s.Last < before {
			b.last = max(b.last, s.Last)
		}
	}
	if end < before {
		b.last = math.MinInt64 // what lies between was not read
	}
	slices.SortFunc(b.gaps, func(x, y float64) int { return cmp.Compare(y, x) })
	return b
}

// p is how often so long a stretch has a gap as long.
func (b *past) p(gap, seconds float64) float64 {
	n := min(tailGaps, len(b.gaps)-1)
	least := b.gaps[n]
	excess := stats.Median(b.gaps[:n]) - least
	scale := max(excess/math.Ln2, 0.02*least, 1e-3) // of exponential excesses
	if gap <= least {
		return 1
	}
	expected := float64(n) * seconds / b.seconds * math.Exp(-(gap-least)/scale)
	return -math.Expm1(-expected)
}

func silence(e record.Entity, base []*sensor.Profile, inc *sensor.Profile) (sensor.Compared, bool) {
	b := gapsOf(e, base, inc.Range.From)
	if b.records < leastRecords || len(b.gaps) <= leastGaps {
		return sensor.Compared{}, false
	}
	gap := longest(e, inc, b.last)
	if b.service != "" && gap.To == inc.Range.To && replaced(b.service, base, inc) {
		return sensor.Compared{}, false // another pod took over
	}
	length := float64(gap.To-gap.From) / 1e9
	x := sensor.Compared{Distance: length}
	f := &x.Finding
	*f = record.Finding{
		Quadrant: record.QuadrantLogs, Sensor: Streams{}.Name(), Entity: e, Kind: KindSilence,
		From: sensor.Time(inc.Range.From), To: sensor.Time(inc.Range.To), Direction: record.DirectionUp,
		Observed: length, Expected: stats.Median(b.longest), Unit: "s",
	}
	f.Strength = stats.Recalibrate(b.p(length, float64(inc.Range.To-inc.Range.From)/1e9), length, b.longest)
	for i, g := range b.longest {
		y := sensor.Past{Slice: i, P: 1, Distance: g, Observed: g}
		if g > b.gaps[min(tailGaps, len(b.gaps)-1)] {
			y.P = b.p(g, float64(base[i].Range.To-base[i].Range.From)/1e9)
		}
		x.Past = append(x.Past, y)
	}
	f.Effect = length / max(b.gaps[0], 1e-3)
	if f.Strength < 1 {
		at := sensor.Time(gap.From)
		f.Onset = &at
		f.Text = fmt.Sprintf("%s logged nothing for %.3g s from %s on; before, at most %.3g s", e.Name, length, at.Format(time.TimeOnly), b.gaps[0])
	}
	f.Evidence = sensor.Evidence(sensor.Key{Quadrant: f.Quadrant, Entity: e}, sensor.Range{From: gap.From, To: gap.To}, nil)
	return x, true
}

// longest returns the longest gap in the incident, from the last record before it
// and to its end.
func longest(e record.Entity, inc *sensor.Profile, last int64) sensor.Range {
	from := inc.Range.From
	if d := inc.Range.From - last; last != math.MinInt64 && d > 0 && d < inc.Range.To-inc.Range.From {
		from = last
	}
	s := inc.Streams[e]
	if s == nil || s.Records == 0 {
		return sensor.Range{From: from, To: inc.Range.To}
	}
	out := sensor.Range{From: from, To: max(s.First, from)}
	for _, g := range append(slices.Clone(s.Gaps), sensor.Range{From: s.Last, To: max(inc.Range.To, s.Last)}) {
		if g.To-g.From > out.To-out.From {
			out = g
		}
	}
	return out
}

// replaced reports whether a pod of the service writes in the incident that wrote
// nothing before.
func replaced(service string, base []*sensor.Profile, inc *sensor.Profile) bool {
	for e, s := range inc.Streams {
		if s.Service != service || s.Records == 0 {
			continue
		}
		if !slices.ContainsFunc(base, func(p *sensor.Profile) bool { return p.Streams[e] != nil && p.Streams[e].Records > 0 }) {
			return true
		}
	}
	return false
}
