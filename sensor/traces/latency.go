package traces

import (
	"inquest/record"
	"inquest/sensor"
)

// KindLatency is the whole time of an operation, callees included: a symptom,
// which says where it hurts and not why.
const KindLatency = "latency"

// Latency measures inclusive durations per operation.
type Latency struct{}

// Name implements [sensor.Sensor].
func (Latency) Name() string { return "traces/latency" }

// Quadrant implements [sensor.Sensor].
func (Latency) Quadrant() record.Quadrant { return record.QuadrantTraces }

// Measure implements [sensor.Sensor].
func (s Latency) Measure(w *sensor.Window, p *sensor.Profile) {
	for _, t := range w.Traces {
		for _, v := range t.Visits {
			k := key(s, KindLatency, sensor.Service(v.Service), sensor.OperationName(v.Entry.Name), "ms")
			p.Value(k, float64(v.Entry.Duration)/1e6, item(v.Entry))
		}
	}
}
