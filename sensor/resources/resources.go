// Package resources holds the sensors that read what is finite: processor,
// memory, GPU, network, disk, connections.
package resources

import (
	"inquest/record"
	"inquest/sensor"
	"inquest/sensor/metrics"
)

// All returns the sensors of this package.
func All() []sensor.Sensor { return []sensor.Sensor{Usage{}, Limit{}} }

// Usage measures the use of resources.
type Usage struct{}

// Name implements [sensor.Sensor].
func (Usage) Name() string { return "resources/usage" }

// Quadrant implements [sensor.Sensor].
func (Usage) Quadrant() record.Quadrant { return record.QuadrantResources }

// Measure implements [sensor.Sensor].
func (s Usage) Measure(w *sensor.Window, p *sensor.Profile) { metrics.Measure(s, w, p) }
