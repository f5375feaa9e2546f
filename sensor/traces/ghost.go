package traces

import (
	"inquest/record"
	"inquest/sensor"
)

// KindGhostTime is time of a span with children that none of them explains; the
// subject is the operation and whether it passed before, between or after them.
const KindGhostTime = "ghost_time"

// Ghost measures where in a span time passes unseen: before the first child
// (waiting to be taken up, reading the request), between children, after the last
// (writing the answer, collecting garbage). Spans of one call are left out, their
// time is the gap.
type Ghost struct{}

// Name implements [sensor.Sensor].
func (Ghost) Name() string { return "traces/ghost" }

// Quadrant implements [sensor.Sensor].
func (Ghost) Quadrant() record.Quadrant { return record.QuadrantTraces }

// Measure implements [sensor.Sensor].
func (s Ghost) Measure(w *sensor.Window, p *sensor.Profile) {
	type place struct{ service, name string }
	type parts struct{ before, between, after measured }
	known := map[place]*parts{}
	samples := newSamples(s, p, "ms")
	for _, t := range w.Traces {
		for _, n := range t.Nodes {
			if len(n.Children) == 0 || len(n.Children) == 1 && n.Children[0].Visit != n.Visit && n.Kind != "server" {
				continue
			}
			at := place{n.Service, n.Name}
			m := known[at]
			if m == nil {
				op := sensor.OperationName(n.Name)
				m = &parts{
					measured{KindGhostTime, n.Service, op + " before"},
					measured{KindGhostTime, n.Service, op + " between"},
					measured{KindGhostTime, n.Service, op + " after"},
				}
				known[at] = m
			}
			before, between, after := unexplained(n)
			samples.add(m.before, float64(before)/1e6, n)
			samples.add(m.after, float64(after)/1e6, n)
			if len(n.Children) > 1 {
				samples.add(m.between, float64(between)/1e6, n)
			}
		}
	}
}

// unexplained returns the parts of a span that no child covers, ns. Children are
// by start; they may overlap and stick out.
func unexplained(n *sensor.Node) (before, between, after int64) {
	upTo := n.Start
	for i, c := range n.Children {
		if from := min(c.Start, n.End()); from > upTo {
			if i == 0 {
				before = from - upTo
			} else {
				between += from - upTo
			}
			upTo = from
		}
		upTo = max(upTo, min(c.End(), n.End()))
	}
	return before, between, n.End() - upTo
}
