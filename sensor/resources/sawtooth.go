package resources

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"inquest/record"
	"inquest/sensor"
	"inquest/stats"
)

// KindSawtooth is the end of kinds of periodicity on a small scale.
const KindSawtooth = "sawtooth"

// swinging are the classes whose periodicity means something: pools that are
// rebuilt by a timer, stages that starve each other, garbage collection.
var swinging = map[sensor.Class]bool{
	sensor.ClassGPU: true, sensor.ClassGPUMemory: true, sensor.ClassMemory: true, sensor.ClassCPU: true,
	sensor.ClassConnections: true, sensor.ClassPool: true, sensor.ClassLatency: true, sensor.ClassTail: true,
}

const (
	samplesPerPeriod = 4 // at least: below, the shape is not seen
	leastPeriods     = 3
	// sawShare is the share of the variance from which a wave rules a series.
	sawShare   = 0.4
	leastSwing = 0.1  // of the level: its standard deviation
	mostSaws   = 1024 // samples of a stretch that are looked at
)

// Sawteeth looks for waves in the incident that the baseline does not have. Each
// series that is sampled densely enough has a finding.
func Sawteeth(w *sensor.Window, base []sensor.Range, inc sensor.Range) []sensor.Compared {
	if w == nil {
		return nil
	}
	var out []sensor.Compared
	for i := range w.Series {
		s := &w.Series[i]
		about := s.About()
		if !swinging[about.Class] || about.Owner.IsZero() || s.Limit != 0 {
			continue
		}
		if c, ok := sawtooth(s, about, base, inc); ok {
			out = append(out, c)
		}
	}
	return out
}

func sawtooth(s *sensor.Series, about *sensor.About, base []sensor.Range, inc sensor.Range) (sensor.Compared, bool) {
	x, step := even(within(s.Points, inc))
	if float64(len(x)) < samplesPerPeriod*leastPeriods {
		return sensor.Compared{}, false
	}
	k := sensor.Key{
		Quadrant: about.Class.Quadrant(), Sensor: "resources/sawtooth", Kind: string(about.Class) + "_" + KindSawtooth,
		Entity: about.Owner, Subject: about.Subject, Unit: "1",
	}
	c := sensor.Compared{Finding: record.Finding{
		Quadrant: k.Quadrant, Sensor: k.Sensor, Entity: k.Entity, Kind: k.Kind, Subject: k.Subject, Unit: k.Unit,
		From: sensor.Time(inc.From), To: sensor.Time(inc.To), Direction: record.DirectionUp, Strength: 1,
	}}
	wave, ok := stats.Periodic(x, samplesPerPeriod, leastPeriods)
	if !ok || wave.Share < sawShare || wave.P > 0.01 || swing(x) < leastSwing {
		return c, true
	}
	var shares []float64
	var of []int
	for i, r := range base {
		y, other := even(within(s.Points, r))
		if len(y) == 0 || other > 2*step || float64(len(y)) < samplesPerPeriod*leastPeriods {
			continue
		}
		share := 0.0
		if v, ok := stats.Periodic(y, samplesPerPeriod, leastPeriods); ok && swing(y) >= leastSwing {
			share = v.Share
		}
		shares, of = append(shares, share), append(of, i)
	}
	if len(shares) < 3 {
		return c, true
	}
	// What noise shows as a wave by chance is the floor.
	const floor = 0.05
	p, z := stats.ShiftTail(shares, wave.Share, floor)
	if z <= 0 {
		return c, true
	}
	c.Strength, c.Effect, c.Distance = math.Max(p, wave.P), z, z
	c.Observed, c.Expected = wave.Share, stats.Median(shares)
	sum := stats.Summarize(shares)
	for i, v := range shares {
		c.Past = append(c.Past, sensor.Past{Slice: of[i], P: 1, Observed: v, Distance: (v - sum.Median) / math.Hypot(sum.Scale, floor)})
	}
	last := within(s.Points, inc)
	peak := slices.MaxFunc(last, func(a, b sensor.Point) int { return int(math.Copysign(1, a.Value-b.Value)) })
	c.Evidence = sensor.Evidence(k, inc, []record.Item{{Time: sensor.Time(peak.Time), Text: about.Selector, Value: &peak.Value}})
	c.Text = fmt.Sprintf("%s of %s (%s) swings with a period of %s, between %s and %s",
		strings.ReplaceAll(string(about.Class), "_", " "), about.Owner.Name, about.Subject,
		span(wave.Period*step/3600), amount(stats.Quantile(x, 0.05), s.Unit), amount(stats.Quantile(x, 0.95), s.Unit))
	return c, true
}

// swing is the standard deviation of x as a share of its level.
func swing(x []float64) float64 {
	s := stats.Summarize(x)
	if s.Median == 0 {
		if s.Max > s.Min {
			return 1
		}
		return 0
	}
	return s.Scale / math.Abs(s.Median)
}

// even returns values at even steps, in seconds, between which points are
// interpolated; nothing when more than a fifth of the steps are uneven.
func even(p []sensor.Point) (x []float64, step float64) {
	if len(p) < samplesPerPeriod*leastPeriods {
		return nil, 0
	}
	p = p[max(0, len(p)-mostSaws):]
	gaps := make([]float64, len(p)-1)
	for i := range gaps {
		gaps[i] = float64(p[i+1].Time-p[i].Time) / 1e9
	}
	step = stats.Median(gaps)
	odd := 0
	for _, g := range gaps {
		if math.Abs(g-step) > step/2 {
			odd++
		}
	}
	if step <= 0 || 5*odd > len(gaps) {
		return nil, 0
	}
	n := int(float64(p[len(p)-1].Time-p[0].Time)/1e9/step+0.5) + 1
	if n > 2*mostSaws {
		return nil, 0
	}
	x = make([]float64, 0, n)
	for i, k := 0, 0; i < n; i++ {
		t := p[0].Time + int64(float64(i)*step*1e9)
		for k+2 < len(p) && p[k+1].Time < t {
			k++
		}
		a, b := p[k], p[k+1]
		f := math.Min(1, math.Max(0, float64(t-a.Time)/float64(b.Time-a.Time)))
		x = append(x, a.Value+f*(b.Value-a.Value))
	}
	return x, step
}
