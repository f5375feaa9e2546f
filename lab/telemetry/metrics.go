package telemetry

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Type is how points of a series are to be read.
type Type int

// The types of metrics.
const (
	Gauge     Type = iota
	Counter        // grows from the start of its process
	Histogram      // likewise
)

// Series is one metric of a source with one set of labels.
type Series struct {
	Source *Source
	Name   string
	Unit   string // in UCUM
	Type   Type
	Labels Attributes
	Points []Point
	Start  time.Duration // of counting
	Bounds []float64     // of a histogram's buckets, ascending, the last one open

	count uint64
	sum   float64
	hits  []uint64
	read  func() float64
	base  float64 // what read gave when the process began
}

// Point is what a series showed at a time.
type Point struct {
	Time  time.Duration
	Value float64 // a histogram's sum
	Count uint64  // of a histogram
	Hits  []uint64
}

// Meter makes series of a source.
type Meter struct {
	// Down is a process that does not run: a scrape finds nothing.
	Down bool

	rec    *Recorder
	source *Source
	series []*Series
}

// Meter returns a meter of a source that starts now.
func (r *Recorder) Meter(source *Source) *Meter { return &Meter{rec: r, source: source} }

func (m *Meter) add(s *Series, labels []any) *Series {
	s.Source = m.source
	s.Labels = Attributes(nil).With(labels...)
	m.series = append(m.series, s)
	m.rec.Series = append(m.rec.Series, s)
	return s
}

// Gauge reads a value at each scrape; labels are name, value, name, value.
func (m *Meter) Gauge(name, unit string, read func() float64, labels ...any) *Series {
	return m.add(&Series{Name: name, Unit: unit, Type: Gauge, read: read}, labels)
}

// Counter is raised with [Series.Add].
func (m *Meter) Counter(name, unit string, labels ...any) *Series {
	return m.add(&Series{Name: name, Unit: unit, Type: Counter}, labels)
}

// CounterFunc reads a value that only grows at each scrape.
func (m *Meter) CounterFunc(name, unit string, read func() float64, labels ...any) *Series {
	return m.add(&Series{Name: name, Unit: unit, Type: Counter, read: read}, labels)
}

// Histogram counts what [Series.Observe] is given in buckets.
func (m *Meter) Histogram(name, unit string, bounds []float64, labels ...any) *Series {
	return m.add(&Series{Name: name, Unit: unit, Type: Histogram, Bounds: bounds, hits: make([]uint64, len(bounds)+1)}, labels)
}

// Add raises a counter.
func (s *Series) Add(v float64) { s.sum += v }

// Total is what a counter counted, or the sum of a histogram.
func (s *Series) Total() float64 { return s.sum }

// Observe counts a value.
func (s *Series) Observe(v float64) {
	i, _ := slices.BinarySearch(s.Bounds, v)
	s.hits[i]++
	s.count++
	s.sum += v
}

// Scrape notes what all series of the meter show at the world's time.
func (m *Meter) Scrape(now time.Duration) {
	if m.Down || m.source.Lost != nil && m.source.Lost(now) {
		return
	}
	t := m.source.time(now)
	for _, s := range m.series {
		p := Point{Time: t, Value: s.sum, Count: s.count}
		switch {
		case s.read != nil:
			p.Value = s.read() - s.base
		case s.Type == Histogram:
			p.Hits = slices.Clone(s.hits)
		}
		s.Points = append(s.Points, p)
	}
}

// Restart begins all counts of the meter anew, as a new process does.
func (m *Meter) Restart(now time.Duration) {
	for _, s := range m.series {
		s.Start, s.sum, s.count = m.source.time(now), 0, 0
		clear(s.hits)
		if s.read != nil && s.Type == Counter {
			s.base = s.read()
		}
	}
}

// Key names a series for people and for sorting.
func (s *Series) Key() string {
	var b strings.Builder
	b.WriteString(s.Name)
	for _, a := range append(append(Attributes(nil), s.Source.Resource...), s.Labels...) {
		fmt.Fprintf(&b, " %s=%v", a.Name, a.Value)
	}
	return b.String()
}
