package logs

import (
	"inquest/record"
	"inquest/sensor"
)

const (
	// KindDecisionRate is the share of requests in which a service decided to take
	// another way than the usual one: cache, fallback, retry, degrade, switch.
	KindDecisionRate = "decision_rate"
	// KindDecisionMix is which of the decisions it takes, why, and what for.
	KindDecisionMix = "decision_mix"
)

// Decisions reads decision logs: records with decision.type, as programs write them
// or as admission recognised them, and AI events of decisions. Shares are of the
// service's requests that have records, else of its records.
type Decisions struct{}

// Name implements [sensor.Sensor].
func (Decisions) Name() string { return "logs/decisions" }

// Quadrant implements [sensor.Sensor].
func (Decisions) Quadrant() record.Quadrant { return record.QuadrantLogs }

// Measure implements [sensor.Sensor].
func (s Decisions) Measure(w *sensor.Window, p *sensor.Profile) {
	for _, t := range w.Traces {
		for _, v := range t.Visits {
			told := map[string]bool(nil)
			for i := range v.Logs {
				l := &v.Logs[i]
				kind, ok := decided(l)
				if !ok {
					continue
				}
				if told == nil {
					told = map[string]bool{}
				}
				s.note(p, l, kind, !told[kind])
				told[kind] = true
			}
		}
	}
	for i := range w.Loose {
		if l := &w.Loose[i]; l.Service != "" {
			if kind, ok := decided(l); ok {
				s.note(p, l, kind, true)
			}
		}
	}
}

// decided returns the type of the decision that a record tells.
func decided(l *sensor.Log) (string, bool) {
	if len(l.Attributes) == 0 {
		return "", false
	}
	kind := sensor.Attribute(l.Attributes, "decision.type")
	if kind == "" {
		kind = l.Attributes["decision_type"]
	}
	return kind, kind != ""
}

// note counts a decision; first is false of a further one in the same request.
func (s Decisions) note(p *sensor.Profile, l *sensor.Log, kind string, first bool) {
	k := sensor.Key{Quadrant: s.Quadrant(), Sensor: s.Name(), Kind: KindDecisionRate, Entity: sensor.Service(l.Service), Subject: kind, Unit: "1"}
	item := Item(l)
	if first {
		p.Mark(k, true, item)
	}
	k.Kind = KindDecisionMix
	k.Subject = "decision.type"
	p.Mix(k).Add(kind, item)
	for _, a := range [...]string{"decision.reason", "decision.to"} {
		if v := sensor.Attribute(l.Attributes, a); v != "" {
			k.Subject = kind + " " + a
			p.Mix(k).Add(sensor.Template(v), item) // a reason may hold a size or a time
		}
	}
}
