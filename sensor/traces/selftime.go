package traces

import (
	"inquest/record"
	"inquest/sensor"
)

// KindSelfTime is the time a request spends in a service's own code.
const KindSelfTime = "self_time"

// SelfTime measures, of each visit, the time that neither another service nor a
// dependency accounts for. It speaks for computing: slow code, no processor,
// locks, garbage collection.
type SelfTime struct{}

// Name implements [sensor.Sensor].
func (SelfTime) Name() string { return "traces/self_time" }

// Quadrant implements [sensor.Sensor].
func (SelfTime) Quadrant() record.Quadrant { return record.QuadrantTraces }

// Measure implements [sensor.Sensor].
func (s SelfTime) Measure(w *sensor.Window, p *sensor.Profile) {
	for _, t := range w.Traces {
		for _, v := range t.Visits {
			if v.Entry.Error {
				continue // it ended early, or waited for what never answered
			}
			self := int64(0)
			for _, n := range v.Nodes {
				if _, dep := sensor.DependencyOf(n); !dep && len(n.Remote()) == 0 {
					self += n.Self
				}
			}
			k := key(s, KindSelfTime, sensor.Service(v.Service), sensor.OperationName(v.Entry.Name), "ms")
			p.Value(k, float64(self)/1e6, item(v.Entry))
		}
	}
}
