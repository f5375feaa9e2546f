package traces

import (
	"inquest/record"
	"inquest/sensor"
)

// KindDependencyTime is the time of a call to something that sends no spans.
const KindDependencyTime = "dependency_time"

// KindDependencyErrors is the share of such calls that fail.
const KindDependencyErrors = "dependency_errors"

// Dependency measures calls to databases, queues and remote APIs.
type Dependency struct{}

// Name implements [sensor.Sensor].
func (Dependency) Name() string { return "traces/dependency" }

// Quadrant implements [sensor.Sensor].
func (Dependency) Quadrant() record.Quadrant { return record.QuadrantTraces }

// Measure implements [sensor.Sensor].
func (s Dependency) Measure(w *sensor.Window, p *sensor.Profile) {
	for _, t := range w.Traces {
		for _, n := range t.Nodes {
			dep, ok := sensor.DependencyOf(n)
			if !ok {
				continue
			}
			p.Edges[record.Edge{Kind: record.EdgeCalls, From: sensor.Service(n.Service), To: dep}]++
			k := key(s, KindDependencyTime, dep, "", "ms")
			k.Peer = sensor.Service(n.Service)
			p.Value(k, float64(n.Duration)/1e6, item(n))
			k = key(s, KindDependencyErrors, dep, "", "1")
			k.Peer = sensor.Service(n.Service)
			p.Share(k, n.Error, item(n))
		}
	}
}
