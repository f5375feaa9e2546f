// Package traces holds the sensors that read spans.
package traces

import (
	"strconv"

	"inquest/record"
	"inquest/sensor"
)

// All returns the sensors of this package.
func All() []sensor.Sensor {
	return []sensor.Sensor{
		SelfTime{},
		Gap{},
		Dependency{},
		Errors{},
		Latency{},
		Traffic{},
		ClockOffset{},
		Phases{},
		Ghost{},
		CallCount{},
		Stalls{},
		Pauses{},
		Context{},
		Tokens{},
	}
}

func item(n *sensor.Node) record.Item {
	return record.Item{
		Time: sensor.Time(n.Start), TraceID: n.TraceID, SpanID: n.SpanID,
		Text: n.Service + " " + n.Name + " " + strconv.FormatFloat(float64(n.Duration)/1e6, 'f', 3, 64) + " ms",
	}
}

func key(s sensor.Sensor, kind string, e record.Entity, subject, unit string) sensor.Key {
	return sensor.Key{Quadrant: record.QuadrantTraces, Sensor: s.Name(), Kind: kind, Entity: e, Subject: subject, Unit: unit}
}
