package resources

import (
	"inquest/record"
	"inquest/sensor"
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
		about := series.About()
		if about.Limit == 0 || !limited[about.Class] || about.Owner.IsZero() {
			continue
		}
		hits := p.Trials(sensor.Key{
			Quadrant: s.Quadrant(), Sensor: s.Name(), Kind: string(about.Class) + "_" + KindAtLimit, Entity: about.Owner,
			Subject: about.Subject, Unit: "1",
		})
		values := make([]float64, len(series.Points))
		for k, pt := range series.Points {
			values[k] = pt.Value
			hits.Add(pt.Value >= atLimit*about.Limit, record.Item{Time: sensor.Time(pt.Time), Text: about.Selector, Value: &values[k]})
		}
	}
}

// limited are the classes of what can be used up.
var limited = map[sensor.Class]bool{
	sensor.ClassCPU: true, sensor.ClassMemory: true, sensor.ClassGPU: true, sensor.ClassGPUMemory: true,
	sensor.ClassDisk: true, sensor.ClassDiskUse: true, sensor.ClassConnections: true, sensor.ClassPool: true,
	sensor.ClassCacheUse: true, sensor.ClassFiles: true, sensor.ClassQueue: true, sensor.ClassAdapter: true,
}
