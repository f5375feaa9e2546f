// Package logs holds the sensors that read log records.
package logs

import (
	"time"

	"inquest/record"
	"inquest/sensor"
)

// All returns the sensors of this package.
func All() []sensor.Sensor {
	return []sensor.Sensor{Templates{}, Streams{Table: Default()}, Decisions{}, Access{}}
}

// KindLogRate is how often records of one template come. It is measured on
// records that belong to no request; inside requests, events are compared per
// visit (see package flow), which traffic cannot disturb.
const KindLogRate = "log_rate"

// KindErrorLogs is the same for templates of severity error and above.
const KindErrorLogs = "error_logs"

// burst is the time in which records of one template count as one: one event
// often writes many, and what matters is how often it happens.
const burst = int64(10 * time.Second)

// Templates counts log records by template.
type Templates struct{}

// Name implements [sensor.Sensor].
func (Templates) Name() string { return "logs/templates" }

// Quadrant implements [sensor.Sensor].
func (Templates) Quadrant() record.Quadrant { return record.QuadrantLogs }

// Measure implements [sensor.Sensor].
func (s Templates) Measure(w *sensor.Window, p *sensor.Profile) {
	last := map[sensor.Key]int64{}
	for i := range w.Loose { // by time
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
		if t, ok := last[k]; ok && l.Time-t < burst {
			continue
		}
		last[k] = l.Time
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
