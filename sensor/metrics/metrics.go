// Package metrics holds the sensor that reads metric series of what services
// do: latency, errors, queues, caches, throughput, tokens.
package metrics

import (
	"inquest/record"
	"inquest/sensor"
)

// All returns the sensors of this package.
func All() []sensor.Sensor { return []sensor.Sensor{Series{}} }

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
		class := sensor.Classify(series.Name, series.Unit)
		if class.Quadrant() != s.Quadrant() {
			continue
		}
		owner := Owner(series, p)
		if owner.IsZero() {
			continue
		}
		k := sensor.Key{
			Quadrant: s.Quadrant(), Sensor: s.Name(), Kind: string(class), Entity: owner,
			Subject: sensor.Subject(series), Unit: series.Unit,
		}
		selector := sensor.Selector(series)
		for _, pt := range series.Points {
			v := pt.Value
			p.Value(k, v, record.Item{Time: sensor.Time(pt.Time), Text: selector, Value: &v})
		}
	}
}

// Owner returns the entity that a series speaks about, the most special that its
// labels name, and notes how the named entities are joined.
func Owner(s *sensor.Series, p *sensor.Profile) record.Entity {
	names := sensor.Owners(s.Labels)
	entity := func(k record.EntityKind) record.Entity {
		if names[k] == "" {
			return record.Entity{}
		}
		e := record.Entity{Kind: k, Name: names[k]}
		if k == record.EntityGPU {
			e.Of = names[record.EntityNode]
		}
		return e
	}
	gpu, pod := entity(record.EntityGPU), entity(record.EntityPod)
	service, node, model := entity(record.EntityService), entity(record.EntityNode), entity(record.EntityModel)
	join := func(kind record.EdgeKind, from, to record.Entity) {
		if !from.IsZero() && !to.IsZero() {
			p.Edges[record.Edge{Kind: kind, From: from, To: to}]++
		}
	}
	join(record.EdgeServes, pod, service)
	join(record.EdgeRunsOn, pod, node)
	join(record.EdgeRunsOn, pod, gpu)
	join(record.EdgeRunsOn, gpu, node)
	if pod.IsZero() {
		join(record.EdgeServes, service, model)
	} else {
		join(record.EdgeServes, pod, model)
	}
	if isNodeMetric(s.Name) && !node.IsZero() {
		return node
	}
	for _, e := range []record.Entity{gpu, pod, service, model, node} {
		if !e.IsZero() {
			return e
		}
	}
	return record.Entity{}
}

// isNodeMetric reports whether a metric measures a machine though its labels may
// name a pod, as agents do that run in one.
func isNodeMetric(name string) bool {
	for _, prefix := range []string{"k8s.node.", "k8s_node_", "node_", "system.", "system_", "host.", "host_"} {
		if len(name) > len(prefix) && name[:len(prefix)] == prefix {
			return true
		}
	}
	return false
}
