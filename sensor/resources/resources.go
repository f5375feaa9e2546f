// Package resources holds the sensors that read what is finite: processor,
// memory, GPU, network, disk, connections.
package resources

import (
	"inquest/record"
	"inquest/sensor"
	"inquest/sensor/metrics"
)

// All returns the sensors of this package.
func All() []sensor.Sensor { return []sensor.Sensor{Usage{}, Limit{}, Up{}} }

// Judge returns the findings that need all of the series: w holds baseline and
// incident, base the slices of the baseline.
func Judge(w *sensor.Window, base []sensor.Range, inc sensor.Range) []sensor.Compared {
	return append(append(Trends(w, base, inc), Sawteeth(w, base, inc)...), Gaps(w, base, inc)...)
}

// Usage measures the use of resources.
type Usage struct{}

// Name implements [sensor.Sensor].
func (Usage) Name() string { return "resources/usage" }

// Quadrant implements [sensor.Sensor].
func (Usage) Quadrant() record.Quadrant { return record.QuadrantResources }

// Measure implements [sensor.Sensor].
func (s Usage) Measure(w *sensor.Window, p *sensor.Profile) { metrics.Measure(s, w, p) }
