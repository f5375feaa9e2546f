// Package metrics holds the sensor that reads metric series of what services
// do: latency, errors, queues, caches, throughput, tokens.
package metrics

import (
	"inquest/record"
	"inquest/sensor"
)

// All returns the sensors of this package.
func All() []sensor.Sensor { return []sensor.Sensor{Series{}, Consistency{}} }

// Judge returns the findings that need all of the series: w holds baseline and
// incident, base the slices of the baseline.
func Judge(w *sensor.Window, base []sensor.Range, inc sensor.Range) []sensor.Compared {
	return Changes(w, base, inc)
}

// Series measures every series that is not of a resource, by class.
type Series struct{}

// Name implements [sensor.Sensor].
func (Series) Name() string { return "metrics/series" }

// Quadrant implements [sensor.Sensor].
func (Series) Quadrant() record.Quadrant { return record.QuadrantMetrics }

// Measure implements [sensor.Sensor].
func (s Series) Measure(w *sensor.Window, p *sensor.Profile) {
	Measure(s, w, p)
}

// Measure adds the points of the series that belong to the sensor's quadrant.
func Measure(s sensor.Sensor, w *sensor.Window, p *sensor.Profile) {
	for i := range w.Series {
		series := &w.Series[i]
		about := series.About()
		if about.Class.Quadrant() != s.Quadrant() {
			continue
		}
		for _, e := range about.Edges {
			p.Edges[e]++
		}
		// A usage stands for itself; as a share of its limit it would count twice.
		if about.Owner.IsZero() || series.Limit != 0 || !about.Class.Measured() {
			continue
		}
		sample := p.Sample(sensor.Key{
			Quadrant: s.Quadrant(), Sensor: s.Name(), Kind: string(about.Class), Entity: about.Owner,
			Subject: about.Subject, Unit: series.Unit,
		})
		values := make([]float64, len(series.Points))
		for k, pt := range series.Points {
			values[k] = pt.Value
			sample.Add(pt.Value, record.Item{Time: sensor.Time(pt.Time), Text: about.Selector, Value: &values[k]})
		}
	}
}
