package resources

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

// KindGap is silence of what sent telemetry at a steady pace.
const KindGap = "telemetry_gap"

// Up measures how often a target that was to be scraped did not answer.
type Up struct{}

// Name implements [sensor.Sensor].
func (Up) Name() string { return "resources/up" }

// Quadrant implements [sensor.Sensor].
func (Up) Quadrant() record.Quadrant { return record.QuadrantResources }

// Measure implements [sensor.Sensor].
func (u Up) Measure(w *sensor.Window, p *sensor.Profile) {
	for i := range w.Series {
		s := &w.Series[i]
		if s.Name != "up" {
			continue
		}
		about := s.About()
		if about.Owner.IsZero() {
			continue
		}
		hits := p.Trials(sensor.Key{
			Quadrant: u.Quadrant(), Sensor: u.Name(), Kind: KindGap, Entity: about.Owner, Subject: about.Subject, Unit: "1",
		})
		values := make([]float64, len(s.Points))
		for k, pt := range s.Points {
			values[k] = pt.Value
			hits.Add(pt.Value == 0, record.Item{Time: sensor.Time(pt.Time), Text: about.Selector, Value: &values[k]})
		}
	}
}

// sender is what sends series together: a target, or a process with an SDK.
type sender struct {
	service, instance, pod, node string
}

type sent struct {
	sender
	times    []int64
	series   int
	selector string
}

// leastPoints is how many points a sender must have had to be missed.
const leastPoints = 8

// Gaps looks for senders all of whose series stop in the incident while others go
// on. A sender is known by its service, instance, pod and node. Each that sent at
// a steady pace has a finding: how long it was silent at most, in seconds.
func Gaps(w *sensor.Window, base []sensor.Range, inc sensor.Range) []sensor.Compared {
	if w == nil || len(base) == 0 {
		return nil
	}
	senders := collect(w)
	var out []sensor.Compared
	for i := range senders {
		if c, ok := gap(senders, i, base, inc); ok {
			out = append(out, c)
		}
	}
	return out
}

// collect unites the times of the series of each sender.
func collect(w *sensor.Window) []sent {
	index := map[sender]int{}
	var out []sent
	for i := range w.Series {
		s := &w.Series[i]
		if s.Query != "" {
			continue // derived from others
		}
		names := sensor.Owners(s.Labels)
		k := sender{names[record.EntityService], s.Labels["service.instance.id"], names[record.EntityPod], names[record.EntityNode]}
		if k.instance == "" {
			k.instance = s.Labels["instance"]
		}
		if k == (sender{}) {
			continue
		}
		at, ok := index[k]
		if !ok {
			at = len(out)
			index[k] = at
			out = append(out, sent{sender: k, selector: s.About().Selector})
		}
		x := &out[at]
		x.series++
		// Series of one target share their times; those of a few more show what one
		// that is seldom set leaves out.
		if n := len(x.times); n == 0 || x.series <= 8 || x.times[n-1] < s.Points[len(s.Points)-1].Time {
			for _, p := range s.Points {
				x.times = append(x.times, p.Time)
			}
			slices.Sort(x.times)
			x.times = slices.Compact(x.times)
		}
	}
	slices.SortFunc(out, func(a, b sent) int {
		return cmp.Or(cmp.Compare(a.service, b.service), cmp.Compare(a.pod, b.pod), cmp.Compare(a.node, b.node), cmp.Compare(a.instance, b.instance))
	})
	return out
}

// entity is what a sender stands for.
func (s *sender) entity() record.Entity {
	switch {
	case s.pod != "":
		return sensor.Pod(s.pod)
	case s.node != "" && s.service == "":
		return sensor.NodeEntity(s.node)
	case s.service != "":
		return sensor.Service(s.service)
	}
	return sensor.NodeEntity(s.instance)
}

// longest is the longest silence of sorted times in r, its beginning, and the
// number of times. At r's end it counts only up to the end that is given.
func longest(times []int64, r sensor.Range, end int64) (silence float64, from int64, n int) {
	lo, _ := slices.BinarySearch(times, r.From)
	last := r.From
	if lo > 0 {
		last = max(times[lo-1], r.From-(r.To-r.From))
	}
	from = last
	for _, t := range times[lo:] {
		if t >= r.To {
			break
		}
		n++
		if d := time.Duration(t - last).Seconds(); d > silence {
			silence, from = d, last
		}
		last = t
	}
	if d := time.Duration(min(r.To, end) - last).Seconds(); d > silence {
		silence, from = d, last
	}
	return silence, from, n
}

func gap(senders []sent, i int, base []sensor.Range, inc sensor.Range) (sensor.Compared, bool) {
	s := &senders[i]
	if len(s.times) == 0 {
		return sensor.Compared{}, false
	}
	var gaps []float64
	var of []int
	total := 0
	for k, r := range base {
		// A sender that began later was not silent before.
		if r.To <= s.times[0] {
			continue
		}
		d, _, n := longest(s.times, sensor.Range{From: max(r.From, s.times[0]), To: r.To}, r.To)
		gaps, of = append(gaps, d), append(of, k)
		total += n
	}
	if len(gaps) < 3 || total < leastPoints {
		return sensor.Compared{}, false
	}
	usual := pace(s.times)
	// It counts while others send: the end of all telemetry is no one's silence.
	end := int64(0)
	for k := range senders {
		if t := senders[k].times; k != i && len(t) > 0 {
			lo, _ := slices.BinarySearch(t, inc.To)
			if lo > 0 {
				end = max(end, t[lo-1])
			}
		}
	}
	silence, from, _ := longest(s.times, inc, end)
	k := sensor.Key{Quadrant: record.QuadrantResources, Sensor: "resources/gap", Kind: KindGap, Entity: s.entity(), Subject: s.service, Unit: "s"}
	f := record.Finding{
		Quadrant: k.Quadrant, Sensor: k.Sensor, Entity: k.Entity, Kind: k.Kind, Subject: k.Subject, Unit: k.Unit,
		From: sensor.Time(inc.From), To: sensor.Time(inc.To), Direction: record.DirectionUp,
		Observed: silence, Expected: stats.Median(gaps), Strength: 1,
	}
	p, z := stats.ShiftTail(gaps, silence, usual)
	c := sensor.Compared{Finding: f}
	// Two turns may be missed by chance; and others must have gone on meanwhile.
	if z > 0 && silence > 3*usual && othersGoOn(senders, i, sensor.Range{From: from + int64(usual*1e9), To: from + int64(silence*1e9)}) {
		c.Strength, c.Effect, c.Distance = p, z, z
		c.Text = fmt.Sprintf("all %d series of %s from %s fall silent for %s; usually they come every %s",
			s.series, s.entity().Name, s.service, span(silence/3600), span(usual/3600))
		if s.service == "" {
			c.Text = fmt.Sprintf("all %d series of %s fall silent for %s; usually they come every %s",
				s.series, s.entity().Name, span(silence/3600), span(usual/3600))
		}
		onset := sensor.Time(from)
		c.Onset, c.OnsetErrorSeconds = &onset, usual
		scale := math.Hypot(stats.Summarize(gaps).Scale, usual)
		for n, v := range gaps {
			c.Past = append(c.Past, sensor.Past{Slice: of[n], P: 1, Observed: v, Distance: (v - f.Expected) / scale})
		}
	}
	c.Evidence = sensor.Evidence(k, inc, []record.Item{{Time: sensor.Time(from), Text: s.selector}})
	return c, true
}

// pace is the median distance of times, s.
func pace(times []int64) float64 {
	d := make([]float64, 0, len(times))
	for i := 1; i < len(times); i++ {
		d = append(d, time.Duration(times[i]-times[i-1]).Seconds())
	}
	if len(d) == 0 {
		return 0
	}
	return stats.Median(d)
}

// othersGoOn reports whether half of the other senders that sent before r, and at
// least one, send in it.
func othersGoOn(senders []sent, i int, r sensor.Range) bool {
	on, all := 0, 0
	for k := range senders {
		if k == i || len(senders[k].times) == 0 || senders[k].times[0] >= r.From {
			continue
		}
		all++
		lo, _ := slices.BinarySearch(senders[k].times, r.From)
		if lo < len(senders[k].times) && senders[k].times[lo] < r.To {
			on++
		}
	}
	return on > 0 && 2*on >= all
}
