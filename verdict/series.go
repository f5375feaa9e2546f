package verdict

import (
	"inquest/sensor"
	"inquest/sensor/metrics"
	"inquest/sensor/resources"
)

// overSeries returns what only the whole of the series shows, not its slices:
// trends, waves, silence, changed information. There is none where the series were
// not gathered at once.
func overSeries(ev *evidence) []sensor.Compared {
	if ev.windowSeries == nil {
		return nil
	}
	base := make([]sensor.Range, len(ev.baseSeries))
	for i, p := range ev.baseSeries {
		base[i] = p.Range
	}
	return append(resources.Judge(ev.windowSeries, base, ev.window), metrics.Judge(ev.windowSeries, base, ev.window)...)
}
