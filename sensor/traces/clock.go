package traces

import (
	"math"

	"inquest/record"
	"inquest/sensor"
)

// KindClockOffset is how far a clock is from the others, in ms.
const KindClockOffset = "clock_offset"

// leastClockError bounds the error of an offset from below, in ms: clocks that are
// kept in step by the network move by as much, and it breaks nothing.
const leastClockError = 10

// ClockOffset measures the clocks by which spans and log records were corrected.
// What lies within its error is no offset. A clock that was off before just as
// much explains no change, so it is told in the verdict's clocks alone.
type ClockOffset struct{}

// Name implements [sensor.Sensor].
func (ClockOffset) Name() string { return "traces/clock_offset" }

// Quadrant implements [sensor.Sensor].
func (ClockOffset) Quadrant() record.Quadrant { return record.QuadrantTraces }

// Measure implements [sensor.Sensor].
func (s ClockOffset) Measure(w *sensor.Window, p *sensor.Profile) {
	pods := false
	for _, c := range w.Clocks.In(w.Range) {
		if !c.Tied {
			continue
		}
		v, off := 0.0, float64(leastClockError)
		if c.Applied() {
			v, off = float64(c.Offset)/1e6, math.Max(leastClockError, float64(c.Error)/1e6)
		}
		// An estimate is a range: its values are spread over it, and so no baseline
		// is steadier than estimates are.
		sample := p.Sample(key(s, KindClockOffset, c.Entity, "", "ms"))
		for _, part := range [...]float64{0, -1, -0.5, 0.5, 1} {
			sample.Add(v+part*off, record.Item{Time: sensor.Time(w.Range.From), Text: c.Entity.String()})
		}
		pods = pods || c.Entity.Kind == record.EntityPod
	}
	if !pods {
		return
	}
	// A pod is a part of its service, not one more thing that can be at fault.
	for _, t := range w.Traces {
		for _, v := range t.Visits {
			if v.Host == "" && v.Pod != "" {
				p.Edges[record.Edge{Kind: record.EdgeServes, From: sensor.Pod(v.Pod), To: sensor.Service(v.Service)}]++
			}
		}
	}
}
