package attributes

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"inquest/record"
	"inquest/sensor"
)

// KindChange is that another version carries requests than before.
const KindChange = "change"

// subjectVersion is the subject of the version of a service.
const subjectVersion = "service.version"

// namesCap bounds the attributes of one service that one rule with * reads.
const namesCap = 32

// All returns the sensors of this package, with the table that comes with inquest.
func All() []sensor.Sensor { return []sensor.Sensor{Spans{Default()}, Logs{Default()}} }

// Spans reads the attributes of spans.
type Spans struct{ Table *Table }

// Name implements [sensor.Sensor].
func (Spans) Name() string { return "traces" + sensor.AttributeSensor }

// Quadrant implements [sensor.Sensor].
func (Spans) Quadrant() record.Quadrant { return record.QuadrantTraces }

// Measure implements [sensor.Sensor].
func (s Spans) Measure(w *sensor.Window, p *sensor.Profile) {
	m := newMeter(s.Table, s, p)
	for _, t := range w.Traces {
		for _, v := range t.Visits {
			at := m.of(v.Service)
			at.visits++
			m.unit++
			if v.Entry.Version != "" {
				m.item = spanItem(v.Entry)
				at.version(m, v.Entry.Version)
			}
			for _, n := range v.Nodes {
				if len(n.Attributes) == 0 {
					continue
				}
				m.item = spanItem(n)
				m.read(at, n.Attributes)
			}
		}
	}
	m.finish()
}

func spanItem(n *sensor.Node) record.Item {
	return record.Item{Time: sensor.Time(n.Start), TraceID: n.TraceID, SpanID: n.SpanID, Text: n.Name}
}

// Logs reads the attributes of log records. What counts as one are the records of
// one service for one request, else each record.
type Logs struct{ Table *Table }

// Name implements [sensor.Sensor].
func (Logs) Name() string { return "logs" + sensor.AttributeSensor }

// Quadrant implements [sensor.Sensor].
func (Logs) Quadrant() record.Quadrant { return record.QuadrantLogs }

// Measure implements [sensor.Sensor].
func (s Logs) Measure(w *sensor.Window, p *sensor.Profile) {
	m := newMeter(s.Table, s, p)
	for _, t := range w.Traces {
		for _, v := range t.Visits {
			if len(v.Logs) == 0 {
				continue
			}
			at := m.of(v.Service)
			at.visits++
			m.unit++
			m.item = logItem(&v.Logs[0])
			if version := v.Logs[0].Version; version != "" {
				at.version(m, version)
			}
			for i := range v.Logs {
				if l := &v.Logs[i]; len(l.Attributes) > 0 {
					m.item = logItem(l)
					m.read(at, l.Attributes)
				}
			}
		}
	}
	for i := range w.Loose {
		l := &w.Loose[i]
		if l.Service == "" {
			continue
		}
		at := m.of(l.Service)
		at.visits++
		m.unit++
		m.item = logItem(l)
		if l.Version != "" {
			at.version(m, l.Version)
		}
		if len(l.Attributes) > 0 {
			m.read(at, l.Attributes)
		}
	}
	m.finish()
}

// logItem leaves out the text: it is long, and the query leads to it.
func logItem(l *sensor.Log) record.Item {
	return record.Item{Time: sensor.Time(l.Time), TraceID: l.TraceID, SpanID: l.SpanID, Text: l.Body[:min(len(l.Body), textBytes(l.Body))]}
}

// textBytes is where a text is cut: not inside a character.
func textBytes(s string) int {
	const most = 200
	if len(s) <= most {
		return len(s)
	}
	n := most
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return n
}

// meter adds what rules read to a profile.
type meter struct {
	table    *Table
	sensor   sensor.Sensor
	profile  *sensor.Profile
	services map[string]*service
	unit     int // number of the unit at hand
	item     record.Item
	names    []string
}

// service is what is measured of one service; measures are looked up once.
type service struct {
	name     string
	visits   float64
	measures []*measure          // by rule
	begins   map[string]*measure // by name, of rules with *
	versions *sensor.Mix
}

type measure struct {
	sample *sensor.Sample
	hits   *sensor.Hits
	mix    *sensor.Mix
	unit   int // in which the mark was seen last
}

func newMeter(t *Table, s sensor.Sensor, p *sensor.Profile) *meter {
	return &meter{table: t, sensor: s, profile: p, services: map[string]*service{}}
}

func (m *meter) of(name string) *service {
	s := m.services[name]
	if s == nil {
		s = &service{name: name, measures: make([]*measure, len(m.table.rules))}
		m.services[name] = s
	}
	return s
}

func (m *meter) key(s *service, kind, subject, unit string) sensor.Key {
	return sensor.Key{
		Quadrant: m.sensor.Quadrant(), Sensor: m.sensor.Name(), Kind: kind,
		Entity: sensor.Service(s.name), Subject: subject, Unit: unit,
	}
}

func (m *meter) finish() {
	for name, s := range m.services {
		m.profile.Units[sensor.Unit{Quadrant: m.sensor.Quadrant(), Entity: sensor.Service(name)}] += s.visits
	}
}

func (s *service) version(m *meter, v string) {
	if s.versions == nil {
		s.versions = m.profile.Mix(m.key(s, KindChange, subjectVersion, "1"))
	}
	s.versions.Add(v, m.item)
}

// read measures the attributes of one span or log record.
func (m *meter) read(s *service, attrs map[string]string) {
	m.names = m.names[:0]
	for name, value := range attrs {
		rules := m.table.exact[name]
		if rules == nil {
			m.names = append(m.names, name)
			continue
		}
		if bare, event := strings.CutPrefix(name, sensor.EventPrefix); event && attrs[bare] != "" {
			continue // told twice
		}
		for _, r := range rules {
			x := s.measures[r.index]
			if x == nil {
				x = m.open(s, r, r.Name)
				s.measures[r.index] = x
			}
			m.apply(x, r, value, attrs)
		}
	}
	if len(m.names) > 0 && len(m.table.begins) > 0 {
		m.readMany(s, attrs)
	}
}

// readMany measures the attributes of rules with *. Names are sorted, for the cap
// to leave out the same ones each time.
func (m *meter) readMany(s *service, attrs map[string]string) {
	slices.Sort(m.names)
	for _, r := range m.table.begins {
		begin := r.Name[:len(r.Name)-1]
		for _, name := range m.names {
			bare := strings.TrimPrefix(name, sensor.EventPrefix)
			if !strings.HasPrefix(bare, begin) || bare != name && attrs[bare] != "" {
				continue
			}
			x := s.begins[bare]
			if x == nil {
				if len(s.begins) >= namesCap {
					continue
				}
				if s.begins == nil {
					s.begins = map[string]*measure{}
				}
				x = m.open(s, r, bare)
				s.begins[bare] = x
			}
			m.apply(x, r, attrs[name], attrs)
		}
	}
}

// open makes the measure of one attribute.
func (m *meter) open(s *service, r *rule, subject string) *measure {
	k := m.key(s, r.Kind, subject, r.Unit)
	x := &measure{}
	switch r.Read {
	case readNumber, readRatio:
		x.sample = m.profile.Sample(k)
	case readValue:
		x.mix = m.profile.Mix(k)
	case readFlag, readList:
		m.profile.Mark(k, false, m.item)
		x.hits = m.profile.Marks[k]
	default:
		x.hits = m.profile.Trials(k)
	}
	return x
}

func (m *meter) apply(x *measure, r *rule, value string, attrs map[string]string) {
	switch r.Read {
	case readNumber:
		if v, ok := number(value); ok {
			x.sample.Add(v, m.item)
		}
	case readRatio:
		v, ok := number(value)
		of, has := number(sensor.Attribute(attrs, r.Of))
		if ok && has && of > 0 {
			x.sample.Add(v/of, m.item)
		}
	case readValue:
		if strings.HasPrefix(value, "[") {
			for _, v := range elements(value) {
				x.mix.Add(v, m.item)
			}
			return
		}
		x.mix.Add(value, m.item)
	case readFlag:
		m.mark(x, isTrue(value))
	case readList:
		m.mark(x, isFull(value))
	case readMiss:
		x.hits.Add(!isTrue(value), m.item)
	case readReaches:
		v, ok := number(value)
		if of, has := number(sensor.Attribute(attrs, r.Of)); ok && has && of > 0 {
			x.hits.Add(v >= of, m.item)
		}
	}
}

// mark counts a unit once, however often it is marked.
func (m *meter) mark(x *measure, hit bool) {
	if hit && x.unit != m.unit {
		x.unit = m.unit
		x.hits.Add(true, m.item)
	}
}

func number(s string) (float64, bool) {
	if s == "" || s[0] > '9' && s[0] != 'I' && s[0] != 'N' {
		return 0, false
	}
	v, err := strconv.ParseFloat(s, 64)
	return v, err == nil
}

func isTrue(s string) bool { return s == "true" || s == "True" || s == "1" }

// isFull reports whether a list has an element, or a number is above nought.
func isFull(s string) bool {
	if strings.HasPrefix(s, "[") {
		return strings.TrimSpace(s[1:max(1, len(s)-1)]) != ""
	}
	if v, ok := number(s); ok {
		return v > 0
	}
	return s != "" && s != "null" && s != "{}" && s != "false"
}

// elements returns the elements of a list that are not objects or lists; the
// text as it is when it is no JSON.
func elements(s string) []string {
	var list []any
	if json.Unmarshal([]byte(s), &list) != nil {
		return []string{s}
	}
	var out []string
	for _, e := range list {
		switch v := e.(type) {
		case string:
			out = append(out, v)
		case float64:
			out = append(out, strconv.FormatFloat(v, 'g', -1, 64))
		case bool:
			out = append(out, strconv.FormatBool(v))
		}
	}
	return out
}
