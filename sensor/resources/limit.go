package resources

import (
	"inquest/record"
	"inquest/sensor"
	"inquest/sensor/metrics"
)

// KindAtLimit is the share of the time that a resource is used up.
const KindAtLimit = "at_limit"

// atLimit is the utilisation from which a resource counts as used up: in a queue
// with random arrivals, the wait at 0.9 is nine times the service time and grows
// without bound beyond.
const atLimit = 0.9

// Limit measures how often a resource that is given as a share of its limit is
// at it. Unlike usage, this is not relative to the baseline's level alone: a
// resource that is always at its limit explains nothing new, one that reaches it
// does.
type Limit struct{}

// Name implements [sensor.Sensor].
func (Limit) Name() string { return "resources/limit" }

// Quadrant implements [sensor.Sensor].
func (Limit) Quadrant() record.Quadrant { return record.QuadrantResources }

// Measure implements [sensor.Sensor].
func (s Limit) Measure(w *sensor.Window, p *sensor.Profile) {
	for i := range w.Series {
		series := &w.Series[i]
		limit, ok := sensor.IsUtilisation(series.Name, series.Unit)
		if !ok {
			continue
		}
		class := sensor.Classify(series.Name, series.Unit)
		switch class {
		case sensor.ClassCPU, sensor.ClassMemory, sensor.ClassGPU, sensor.ClassGPUMemory, sensor.ClassDisk,
			sensor.ClassConnections, sensor.ClassCacheUse:
		default:
			continue
		}
		owner := metrics.Owner(series, p)
		if owner.IsZero() {
			continue
		}
		k := sensor.Key{
			Quadrant: s.Quadrant(), Sensor: s.Name(), Kind: string(class) + "_" + KindAtLimit, Entity: owner,
			Subject: sensor.Subject(series), Unit: "1",
		}
		selector := sensor.Selector(series)
		for _, pt := range series.Points {
			v := pt.Value
			p.Share(k, v >= atLimit*limit, record.Item{Time: sensor.Time(pt.Time), Text: selector, Value: &v})
		}
	}
}
