package traces

import (
	"inquest/record"
	"inquest/sensor"
)

// measured tells the measures of one sensor apart.
type measured struct{ kind, service, subject string }

// samples finds the samples of a sensor by what tells them apart, which is faster
// than by their whole keys.
type samples struct {
	sensor  sensor.Sensor
	profile *sensor.Profile
	unit    string
	known   map[measured]*sensor.Sample
}

func newSamples(s sensor.Sensor, p *sensor.Profile, unit string) *samples {
	return &samples{s, p, unit, map[measured]*sensor.Sample{}}
}

func (s *samples) add(m measured, v float64, n *sensor.Node) {
	x := s.known[m]
	if x == nil {
		x = s.profile.Sample(key(s.sensor, m.kind, sensor.Service(m.service), m.subject, s.unit))
		s.known[m] = x
	}
	x.Add(v, short(n))
}

// short is [item] without numbers in its text, which take long to write.
func short(n *sensor.Node) record.Item {
	return record.Item{Time: sensor.Time(n.Start), TraceID: n.TraceID, SpanID: n.SpanID, Text: n.Name}
}

// names shortens the names of operations, each once.
type names map[string]string

func (o names) of(name string) string {
	s, ok := o[name]
	if !ok {
		s = sensor.OperationName(name)
		o[name] = s
	}
	return s
}

// trials finds the shares of a sensor, as [samples] does.
type trials struct {
	sensor  sensor.Sensor
	profile *sensor.Profile
	known   map[measured]*sensor.Hits
}

func newTrials(s sensor.Sensor, p *sensor.Profile) *trials {
	return &trials{s, p, map[measured]*sensor.Hits{}}
}

func (s *trials) add(m measured, hit bool, n *sensor.Node) {
	x := s.known[m]
	if x == nil {
		x = s.profile.Trials(key(s.sensor, m.kind, sensor.Service(m.service), m.subject, "1"))
		s.known[m] = x
	}
	if !hit {
		x.N++
		return
	}
	x.Add(true, short(n))
}
