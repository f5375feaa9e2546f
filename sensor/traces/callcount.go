package traces

import (
	"slices"
	"strconv"

	"inquest/record"
	"inquest/sensor"
)

// KindCallCount is the number of calls that one visit makes to a peer. It rises
// with retries and with calls in loops.
const KindCallCount = "call_count"

// attributeResend counts how often a call was sent again within one span.
const attributeResend = "http.request.resend_count"

// CallCount counts calls per visit, by peer. A visit that does not call a peer of
// its operation counts nought.
type CallCount struct{}

// Name implements [sensor.Sensor].
func (CallCount) Name() string { return "traces/call_count" }

// Quadrant implements [sensor.Sensor].
func (CallCount) Quadrant() record.Quadrant { return record.QuadrantTraces }

// callKey is an operation of a service and whom it calls.
type callKey struct {
	service, operation string
	peer               record.Entity
}

// Measure implements [sensor.Sensor].
func (s CallCount) Measure(w *sensor.Window, p *sensor.Profile) {
	services := map[string]bool{}
	for _, t := range w.Traces {
		for _, v := range t.Visits {
			services[v.Service] = true
		}
	}
	type operation struct{ service, name string }
	peers := map[operation][]record.Entity{}
	counts := map[callKey]*sensor.Sample{}
	asked := map[callKey]*sensor.Hits{}
	var called []record.Entity
	var calls []float64
	each := func(fn func(op operation, v *sensor.Visit)) {
		ops := names{}
		for _, t := range w.Traces {
			for _, v := range t.Visits {
				called, calls = countCalls(v, services, called[:0], calls[:0])
				fn(operation{v.Service, ops.of(v.Entry.Name)}, v)
			}
		}
	}
	each(func(op operation, _ *sensor.Visit) {
		for _, e := range called {
			if list := peers[op]; !slices.Contains(list, e) {
				peers[op] = append(list, e)
			}
		}
	})
	each(func(op operation, v *sensor.Visit) {
		for _, e := range peers[op] {
			n := 0.0
			if i := slices.Index(called, e); i >= 0 {
				n = calls[i]
			}
			k := callKey{op.service, op.name, e}
			sample := counts[k]
			if sample == nil {
				full := key(s, KindCallCount, e, op.name, "{call}")
				full.Peer = sensor.Service(op.service)
				sample = p.Sample(full)
				counts[k] = sample
				// How many ask at all is a measure of its own: where two of three
				// visits call once, the median does not tell whether all do.
				full.Subject, full.Unit = op.name+" asks at all", "1"
				asked[k] = p.Hits(full)
			}
			sample.Add(n, short(v.Entry))
			asked[k].Add(n > 0, short(v.Entry))
		}
	})
}

// countCalls adds whom a visit calls, and how often, to the two lists.
func countCalls(v *sensor.Visit, services map[string]bool, peers []record.Entity, counts []float64) ([]record.Entity, []float64) {
	add := func(e record.Entity, n float64) {
		i := slices.Index(peers, e)
		if i < 0 {
			i = len(peers)
			peers, counts = append(peers, e), append(counts, 0)
		}
		counts[i] += n
	}
	for _, n := range v.Nodes {
		again := 0.0
		if a := n.Attributes[attributeResend]; a != "" {
			again, _ = strconv.ParseFloat(a, 64)
		}
		for _, c := range n.Children {
			if c.Visit != v {
				add(sensor.Service(c.Service), 1+again)
				again = 0
			}
		}
		if dep, ok := sensor.DependencyOf(n); ok && (n.Kind == "client" || n.Kind == "producer") {
			if services[dep.Name] { // it did not get there, or its spans are lost
				dep = sensor.Service(dep.Name)
			}
			add(dep, 1+again)
		}
	}
	return peers, counts
}
