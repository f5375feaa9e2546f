package sensor

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"inquest/record"
	"inquest/stats"
)

// Key names a measure.
type Key struct {
	Quadrant record.Quadrant
	Sensor   string
	Kind     string
	Entity   record.Entity
	Subject  string
	Peer     record.Entity // the other end, zero when there is none
	Unit     string
}

// Compare orders keys.
func (k Key) Compare(o Key) int {
	return cmp.Or(
		strings.Compare(string(k.Quadrant), string(o.Quadrant)), strings.Compare(k.Sensor, o.Sensor),
		strings.Compare(k.Kind, o.Kind), k.Entity.Compare(o.Entity),
		strings.Compare(k.Subject, o.Subject), k.Peer.Compare(o.Peer), strings.Compare(k.Unit, o.Unit),
	)
}

// sampleCap bounds the values kept of one measure in one slice. The median of
// 256 values is within 8 % of a standard deviation of the median of all.
const sampleCap = 256

// Sample is the values of one measure in one slice.
type Sample struct {
	Values []float64
	Times  []int64 // of the values, ns
	N      int
	// Top is where the largest value was seen.
	Top   record.Item
	top   float64
	step  int // every step-th value is kept
	Total float64

	described bool // the three below hold for Values as they are
	at        [len(quantiles)]float64
	scale     float64
}

// describe returns the quantiles of the values and their spread.
func (s *Sample) describe() (at [len(quantiles)]float64, scale float64) {
	if !s.described {
		for i, q := range quantiles {
			s.at[i] = stats.Quantile(s.Values, q)
		}
		s.scale = stats.Summarize(s.Values).Scale
		s.described = true
	}
	return s.at, s.scale
}

// Add takes one value.
func (s *Sample) Add(v float64, item record.Item) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return
	}
	s.described = false
	if s.step == 0 {
		s.step = 1
	}
	if s.N%s.step == 0 {
		if len(s.Values) == sampleCap {
			n := 0
			for i := 0; i < len(s.Values); i += 2 {
				s.Values[n], s.Times[n] = s.Values[i], s.Times[i]
				n++
			}
			s.Values, s.Times, s.step = s.Values[:n], s.Times[:n], s.step*2
		}
		if s.N%s.step == 0 {
			s.Values = append(s.Values, v)
			s.Times = append(s.Times, item.Time.UnixNano())
		}
	}
	s.N++
	s.Total += v
	if s.N == 1 || v > s.top {
		s.top, s.Top = v, item
	}
}

// Hits is the hits and trials of one measure in one slice.
type Hits struct {
	stats.Share
	Items []record.Item // the first few hits
}

// itemCap bounds the examples kept of one measure in one slice.
const itemCap = 3

// Add takes one trial.
func (h *Hits) Add(hit bool, item record.Item) {
	h.N++
	if hit {
		h.K++
		if len(h.Items) < itemCap {
			h.Items = append(h.Items, item)
		}
	}
}

// Profile is what sensors measured in one slice of time.
type Profile struct {
	Range  Range
	Values map[Key]*Sample
	Shares map[Key]*Hits
	// Rates are counts of events in the slice; a key that is absent counted none.
	Rates map[Key]*Hits
	// Mixes are choices among values, Marks what some units have and most lack; see
	// [Profile.Mix] and [Profile.Mark]. Units counts what could have them.
	Mixes map[Key]*Mix
	Marks map[Key]*Hits
	Units map[Unit]float64
	// Flows are the requests in compact form.
	Flows []FlowTrace
	// Edges are the calls that were seen, with their number.
	Edges map[record.Edge]int
	// Segments are the visits by what they have in common.
	Segments []Segment
	// Streams are the logs of entities; see package logs.
	Streams map[record.Entity]*Stream
	// Clocks are the states of the clocks in the slice, by entity.
	Clocks []ClockState
	// Seconds is the length of time that was really covered.
	Seconds float64

	Spans, Logs, Points int
	// Measured are those of the points that measure something, by the quadrant of
	// what they measure: what a sensor derives from them is not counted.
	Measured map[record.Quadrant]int
}

// NewProfile returns an empty profile.
func NewProfile(r Range) *Profile {
	return &Profile{
		Range: r, Values: map[Key]*Sample{}, Shares: map[Key]*Hits{}, Rates: map[Key]*Hits{},
		Mixes: map[Key]*Mix{}, Marks: map[Key]*Hits{}, Units: map[Unit]float64{},
		Streams: map[record.Entity]*Stream{}, Measured: map[record.Quadrant]int{},
		Edges: map[record.Edge]int{}, Seconds: float64(r.To-r.From) / 1e9,
	}
}

// Value adds a value to a measure.
func (p *Profile) Value(k Key, v float64, item record.Item) {
	s := p.Values[k]
	if s == nil {
		s = &Sample{}
		p.Values[k] = s
	}
	s.Add(v, item)
}

// Sample returns the values of a measure, to add many at once.
func (p *Profile) Sample(k Key) *Sample {
	s := p.Values[k]
	if s == nil {
		s = &Sample{}
		p.Values[k] = s
	}
	return s
}

// Trials returns the hits of a measure, to add many at once.
func (p *Profile) Trials(k Key) *Hits {
	h := p.Shares[k]
	if h == nil {
		h = &Hits{}
		p.Shares[k] = h
	}
	return h
}

// Hits returns the trials of a share, to be added to.
func (p *Profile) Hits(k Key) *Hits {
	h := p.Shares[k]
	if h == nil {
		h = &Hits{}
		p.Shares[k] = h
	}
	return h
}

// Share adds a trial to a measure.
func (p *Profile) Share(k Key, hit bool, item record.Item) { p.Hits(k).Add(hit, item) }

// Count adds one event to a rate.
func (p *Profile) Count(k Key, item record.Item) {
	h := p.Rates[k]
	if h == nil {
		h = &Hits{}
		p.Rates[k] = h
	}
	h.Add(true, item)
}

// TakeSeries notes how many points of series the slice has.
func (p *Profile) TakeSeries(w *Window) {
	p.Points = w.Points
	for i := range w.Series {
		s := &w.Series[i]
		if class := s.About().Class; class.Measured() {
			p.Measured[class.Quadrant()] += len(s.Points)
		}
	}
}

// Merge returns the profile of neighbouring slices taken together.
func Merge(parts []*Profile) *Profile {
	if len(parts) == 1 {
		return parts[0]
	}
	out := NewProfile(Range{parts[0].Range.From, parts[len(parts)-1].Range.To})
	out.Seconds = 0
	for _, p := range parts {
		out.Seconds += p.Seconds
		out.Spans, out.Logs, out.Points = out.Spans+p.Spans, out.Logs+p.Logs, out.Points+p.Points
		for q, n := range p.Measured {
			out.Measured[q] += n
		}
		out.Flows = append(out.Flows, p.Flows...)
		if p.Clocks != nil {
			out.Clocks = p.Clocks
		}
		for e, n := range p.Edges {
			out.Edges[e] += n
		}
		for k, s := range p.Values {
			for i, v := range s.Values {
				out.Value(k, v, record.Item{Time: Time(s.Times[i])})
			}
			if t := out.Values[k]; t.N > 0 && s.top >= t.top {
				t.top, t.Top = s.top, s.Top
			}
		}
		addHits(out.Shares, p.Shares)
		addHits(out.Rates, p.Rates)
		mergeMixes(out, p)
		joinStreams(out, p)
		out.Segments = append(out.Segments, p.Segments...)
	}
	return out
}

func addHits(to, from map[Key]*Hits) {
	for k, h := range from {
		t := to[k]
		if t == nil {
			t = &Hits{}
			to[k] = t
		}
		t.K, t.N = t.K+h.K, t.N+h.N
		t.Items = append(t.Items, h.Items[:min(len(h.Items), itemCap-len(t.Items))]...)
	}
}

// Sensor measures a quadrant.
type Sensor interface {
	// Name is unique.
	Name() string
	Quadrant() record.Quadrant
	// Measure adds what it sees in w to p; baseline and incident alike.
	Measure(w *Window, p *Profile)
}

// Sorted returns the keys of a map of measures in order.
func Sorted[V any](m map[Key]V) []Key {
	keys := make([]Key, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, Key.Compare)
	return keys
}

// Service returns the entity of a service.
func Service(name string) record.Entity {
	return record.Entity{Kind: record.EntityService, Name: name}
}

// Pod returns the entity of a pod.
func Pod(name string) record.Entity { return record.Entity{Kind: record.EntityPod, Name: name} }

// NodeEntity returns the entity of a machine.
func NodeEntity(name string) record.Entity {
	return record.Entity{Kind: record.EntityNode, Name: name}
}

// Dependency returns the entity of something that sends no telemetry itself.
func Dependency(name string) record.Entity {
	return record.Entity{Kind: record.EntityDependency, Name: name}
}
