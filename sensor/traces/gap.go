package traces

import (
	"inquest/record"
	"inquest/sensor"
)

// KindGap is the time a call spends on the way between two services.
const KindGap = "gap"

// Gap measures parent minus child duration of each call between services. Both
// are durations on one clock each, so clock skew does not matter. It speaks for
// the way: network, proxies, connection pools, queues in front of the callee.
type Gap struct{}

// Name implements [sensor.Sensor].
func (Gap) Name() string { return "traces/gap" }

// Quadrant implements [sensor.Sensor].
func (Gap) Quadrant() record.Quadrant { return record.QuadrantTraces }

// Measure implements [sensor.Sensor].
func (s Gap) Measure(w *sensor.Window, p *sensor.Profile) {
	for _, t := range w.Traces {
		for _, n := range t.Nodes {
			remote := n.Remote()
			if len(remote) == 0 {
				continue
			}
			for _, r := range remote {
				p.Edges[record.Edge{Kind: record.EdgeCalls, From: sensor.Service(n.Service), To: sensor.Service(r.Service)}]++
			}
			// Several callees of one span: what remains belongs to the span. A
			// callee that outlives the call (a message, work left behind) has no
			// gap, and one that failed may be several tries.
			r := remote[0].Entry
			if len(remote) != 1 || n.Error || r.Duration > n.Duration || n.Kind == "producer" || r.Kind == "consumer" {
				continue
			}
			k := key(s, KindGap, sensor.Service(r.Service), "", "ms")
			k.Peer = sensor.Service(n.Service)
			p.Value(k, float64(n.Duration-r.Duration)/1e6, item(n))
		}
	}
}
