package logs

import (
	"math/bits"

	"inquest/record"
	"inquest/sensor"
)

// Streams measures what the logs of entities speak of and when they pause. What it
// finds is told by [Judge].
type Streams struct{ Table *Table }

// Name implements [sensor.Sensor].
func (Streams) Name() string { return "logs/streams" }

// Quadrant implements [sensor.Sensor].
func (Streams) Quadrant() record.Quadrant { return record.QuadrantLogs }

// Measure implements [sensor.Sensor].
func (s Streams) Measure(w *sensor.Window, p *sensor.Profile) {
	m := &streams{
		reader: newReader(s.Table), profile: p, known: map[source]*logger{}, clocks: map[record.Entity]*presence{},
		told: map[toldKey]*told{}, step: max((w.Range.To-w.Range.From)/presenceSteps, 1e6),
	}
	for _, t := range w.Traces {
		for _, v := range t.Visits {
			if len(v.Logs) == 0 {
				continue
			}
			m.request++
			for i := range v.Logs {
				m.record(&v.Logs[i], m.request, false)
			}
		}
	}
	for i := range w.Loose {
		l := &w.Loose[i]
		m.record(l, m.requestOf(l), true)
	}
	for e, c := range m.clocks {
		c.finish(p.Stream(e), w.Range.From, m.step)
	}
}

// streams is the state of one measurement.
type streams struct {
	reader  *reader
	profile *sensor.Profile
	known   map[source]*logger
	clocks  map[record.Entity]*presence
	told    map[toldKey]*told
	request int32 // number of the last request
	step    int64 // ns
}

// logger is one source of log records.
type logger struct {
	entity record.Entity
	stream *sensor.Stream
	// requests of records whose traces were not gathered, by trace
	requests map[string]int32
	clocks   []*presence // its own, and that of its pod
}

type toldKey struct {
	entity record.Entity
	topic  int
}

// told is when an entity spoke of a topic last.
type told struct {
	topic   *sensor.Topic
	request int32
	at      int64 // start of the last burst
	seen    map[int32]bool
}

func (m *streams) logger(l *sensor.Log) *logger {
	k := sourceOf(l)
	x := m.known[k]
	if x != nil {
		return x
	}
	x = &logger{entity: k.entity()}
	m.known[k] = x
	if x.entity.IsZero() {
		return x
	}
	x.stream = m.profile.Stream(x.entity)
	x.clocks = append(x.clocks, m.clock(x.entity))
	if k.service != "" && k.pod != "" {
		pod := sensor.Pod(k.pod)
		x.clocks = append(x.clocks, m.clock(pod))
		m.profile.Stream(pod).Service = k.service
	}
	return x
}

// requestOf numbers the requests of records that belong to no gathered trace; 0 is
// no request at all.
func (m *streams) requestOf(l *sensor.Log) int32 {
	if l.TraceID == "" {
		return 0
	}
	x := m.logger(l)
	n, ok := x.requests[l.TraceID]
	if !ok {
		if x.requests == nil {
			x.requests = map[string]int32{}
		}
		m.request++
		n = m.request
		x.requests[l.TraceID] = n
		if x.stream != nil {
			x.stream.Requests++
		}
	}
	return n
}

func (m *streams) record(l *sensor.Log, request int32, loose bool) {
	x := m.logger(l)
	if x.stream == nil {
		return
	}
	if own := x.clocks[0]; !loose && request != own.request {
		own.request = request
		x.stream.Requests++
	}
	_, event := object(l.Attributes)
	if !event { // an event says nothing of the life of who forwards it
		for _, c := range x.clocks {
			c.mark(l.Time, m.profile.Range.From, m.step)
		}
	}
	r := m.reader
	r.begin()
	r.read(l.Body)
	if len(l.Attributes) > 0 {
		m.attributes(l.Attributes)
	}
	if len(r.topics) == 0 {
		return
	}
	e := subject(l, r.kernel, x.entity)
	for _, topic := range r.topics {
		m.tell(e, topic, l, request, loose)
	}
}

// attributes reads those of a record that speak of topics.
func (m *streams) attributes(attrs map[string]string) {
	r := m.reader
	for _, a := range [...]string{"exception.type", "error.type"} {
		if v := attrs[a]; v != "" {
			r.read(v)
		}
	}
	if v := attrs[attributeReason]; v != "" {
		for _, topic := range r.table.reasons[v] {
			r.add(topic)
		}
	}
	for _, a := range [...]string{"http.response.status_code", "http.status_code"} {
		if v := attrs[a]; v != "" {
			for _, topic := range r.table.statuses[v] {
				r.add(topic)
			}
		}
	}
}

func (m *streams) tell(e record.Entity, topic int, l *sensor.Log, request int32, loose bool) {
	k := toldKey{e, topic}
	t := m.told[k]
	if t == nil {
		t = &told{topic: m.profile.Stream(e).Topic(m.reader.table.names[topic]), at: l.Time - burst}
		m.told[k] = t
	}
	switch {
	case request == 0 && l.Time-t.at >= burst:
		t.at = l.Time
		t.topic.Bursts++
	case request == 0 || request == t.request || t.seen[request]:
		return
	default:
		t.request = request
		t.topic.Requests++
		if loose { // the records of one request may lie apart
			if t.seen == nil {
				t.seen = map[int32]bool{}
			}
			t.seen[request] = true
		}
	}
	t.topic.Note(Item(l))
}

// presenceSteps is the number of steps into which a slice is cut to see in which
// of them an entity wrote anything; a step is 1 ms at least.
const presenceSteps = 1 << 14

// presence is when an entity wrote, in steps.
type presence struct {
	bits        [presenceSteps/64 + 1]uint64
	records     int
	first, last int64
	request     int32 // of the last record
}

func (m *streams) clock(e record.Entity) *presence {
	c := m.clocks[e]
	if c == nil {
		c = &presence{}
		m.clocks[e] = c
	}
	return c
}

func (c *presence) mark(t, from, step int64) {
	if c.records == 0 || t < c.first {
		c.first = t
	}
	if c.records == 0 || t > c.last {
		c.last = t
	}
	c.records++
	n := min(max((t-from)/step, 0), presenceSteps)
	c.bits[n/64] |= 1 << (n % 64)
}

// finish adds what was seen to a stream. Steps without a record make a gap; its
// ends are known to within a step.
func (c *presence) finish(s *sensor.Stream, from, step int64) {
	if c.records == 0 {
		return
	}
	s.Records, s.First, s.Last = c.records, c.first, c.last
	var gaps []sensor.Range
	before := -1
	for i, word := range c.bits {
		for word != 0 {
			n := i*64 + bits.TrailingZeros64(word)
			word &= word - 1
			if before >= 0 && n > before+1 {
				gaps = append(gaps, sensor.Range{From: from + int64(before+1)*step, To: from + int64(n)*step})
			}
			before = n
		}
	}
	s.Gaps = sensor.Longest(gaps)
}
