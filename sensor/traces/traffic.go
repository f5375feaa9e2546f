package traces

import (
	"inquest/record"
	"inquest/sensor"
)

// KindTraffic is the number of requests that reach a service.
const KindTraffic = "traffic"

// Traffic counts visits by service.
type Traffic struct{}

// Name implements [sensor.Sensor].
func (Traffic) Name() string { return "traces/traffic" }

// Quadrant implements [sensor.Sensor].
func (Traffic) Quadrant() record.Quadrant { return record.QuadrantTraces }

// Measure implements [sensor.Sensor].
func (s Traffic) Measure(w *sensor.Window, p *sensor.Profile) {
	for _, t := range w.Traces {
		for _, v := range t.Visits {
			p.Count(key(s, KindTraffic, sensor.Service(v.Service), "", "{request}"), item(v.Entry))
		}
	}
}
