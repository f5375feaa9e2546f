// Package logs holds the sensors that read log records.
package logs

import (
	"inquest/record"
	"inquest/sensor"
)

// All returns the sensors of this package.
func All() []sensor.Sensor { return []sensor.Sensor{Templates{}} }

// KindLogRate is the number of records of one template. It is measured on
// records that belong to no request; inside requests, events are compared per
// visit (see package flow), which traffic cannot disturb.
const KindLogRate = "log_rate"

// KindErrorLogs is the same for templates of severity error and above.
const KindErrorLogs = "error_logs"

// Templates counts log records by template.
type Templates struct{}

// Name implements [sensor.Sensor].
func (Templates) Name() string { return "logs/templates" }

// Quadrant implements [sensor.Sensor].
func (Templates) Quadrant() record.Quadrant { return record.QuadrantLogs }

// Measure implements [sensor.Sensor].
func (s Templates) Measure(w *sensor.Window, p *sensor.Profile) {
	for i := range w.Loose {
		l := &w.Loose[i]
		kind := KindLogRate
		if l.Severity >= sensor.Severe {
			kind = KindErrorLogs
		}
		name := l.Service
		entity := sensor.Service(name)
		if name == "" {
			entity = sensor.NodeEntity(l.Node)
		}
		k := sensor.Key{
			Quadrant: record.QuadrantLogs, Sensor: s.Name(), Kind: kind, Entity: entity,
			Subject: sensor.Statement(l), Unit: "{record}",
		}
		p.Count(k, Item(l))
	}
}

// Item refers to a log record.
func Item(l *sensor.Log) record.Item {
	text := l.Body
	if len(text) > 300 {
		text = text[:300]
		for len(text) > 0 && text[len(text)-1]&0xC0 == 0x80 {
			text = text[:len(text)-1] // do not cut inside a character
		}
		if n := len(text); n > 0 && text[n-1] >= 0xC0 {
			text = text[:n-1]
		}
	}
	return record.Item{Time: sensor.Time(l.Time), TraceID: l.TraceID, SpanID: l.SpanID, Text: text}
}
