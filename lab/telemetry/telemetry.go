// Package telemetry is what a simulated system tells of itself: spans, log
// records and metrics, as its instrumentation would make them, with the faults
// that real instrumentation has. It knows virtual time only; what it gathers is
// turned into OTLP, or into the form that sensors read.
package telemetry

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"slices"
	"time"
)

// Attributes of spans, log records, points and resources. Their order is kept.
type Attributes []Attribute

// Attribute is one name and value: a string, bool, int64 or float64.
type Attribute struct {
	Name  string
	Value any
}

// With returns the attributes and some more, as name, value, name, value.
func (a Attributes) With(pairs ...any) Attributes {
	out := append(Attributes(nil), a...)
	for i := 0; i+1 < len(pairs); i += 2 {
		v := pairs[i+1]
		if n, ok := v.(int); ok {
			v = int64(n)
		}
		out = append(out, Attribute{pairs[i].(string), v})
	}
	return out
}

// Get returns a value, nil when there is none of that name.
func (a Attributes) Get(name string) any {
	for i := range a {
		if a[i].Name == name {
			return a[i].Value
		}
	}
	return nil
}

// Source is a process that tells of itself.
type Source struct {
	Resource Attributes
	// Clock is how far the clock of its host is ahead, at a virtual time; nil for
	// a clock that is right.
	Clock func(time.Duration) time.Duration
	// Lost tells whether what was told at that time never left the process, as
	// when it was killed before it sent what it had gathered; nil for never.
	Lost func(time.Duration) bool
}

// Service is the name of its service.
func (s *Source) Service() string {
	name, _ := s.Resource.Get("service.name").(string)
	return name
}

// time is what the source's clock shows.
func (s *Source) time(t time.Duration) time.Duration {
	if s.Clock == nil {
		return t
	}
	return t + s.Clock(t)
}

// TraceID and SpanID are identifiers of OpenTelemetry; zero is none.
type (
	TraceID [16]byte
	SpanID  [8]byte
)

// String returns lower-case hexadecimal digits, or nothing for no id.
func (id TraceID) String() string {
	if id == (TraceID{}) {
		return ""
	}
	return hex.EncodeToString(id[:])
}

// String returns lower-case hexadecimal digits, or nothing for no id.
func (id SpanID) String() string {
	if id == (SpanID{}) {
		return ""
	}
	return hex.EncodeToString(id[:])
}

// Kind says which side of a call a span is.
type Kind string

// The kinds of spans.
const (
	Internal Kind = "internal"
	Server   Kind = "server"
	Client   Kind = "client"
	Producer Kind = "producer"
	Consumer Kind = "consumer"
)

// Span is one that has ended.
type Span struct {
	Source     *Source
	Trace      TraceID
	ID, Parent SpanID
	Name       string
	Kind       Kind
	// Start and End are as the source's clock shows them.
	Start, End time.Duration
	// Failed marks an error, Message says which.
	Failed     bool
	Message    string
	Attributes Attributes
	Events     []Event
}

// Event is one of a span.
type Event struct {
	Time       time.Duration
	Name       string
	Attributes Attributes
}

// Severity is OpenTelemetry's severity number.
type Severity int

// Severities.
const (
	Debug Severity = 5
	Info  Severity = 9
	Warn  Severity = 13
	Error Severity = 17
	Fatal Severity = 21
)

// String returns the name that most libraries use.
func (s Severity) String() string {
	switch {
	case s >= Fatal:
		return "FATAL"
	case s >= Error:
		return "ERROR"
	case s >= Warn:
		return "WARN"
	case s >= Info:
		return "INFO"
	}
	return "DEBUG"
}

// Log is one log record.
type Log struct {
	Source     *Source
	Time       time.Duration
	Severity   Severity
	Body       string
	EventName  string
	Trace      TraceID
	Span       SpanID
	Attributes Attributes
}

// Recorder gathers what the sources tell. One goroutine uses it.
type Recorder struct {
	Spans  []Span
	Logs   []Log
	Series []*Series

	// SampleTraces is the share of traces that are kept whole; 1 when zero.
	SampleTraces float64

	rng *rand.Rand
}

// New returns a recorder whose identifiers come from rng.
func New(rng *rand.Rand) *Recorder {
	return &Recorder{rng: rng}
}

// NewTrace returns the identifier of a new trace.
func (r *Recorder) NewTrace() (id TraceID) {
	binary.BigEndian.PutUint64(id[:8], r.rng.Uint64())
	binary.BigEndian.PutUint64(id[8:], r.rng.Uint64()|1)
	return id
}

// NewSpan returns the identifier of a new span.
func (r *Recorder) NewSpan() (id SpanID) {
	binary.BigEndian.PutUint64(id[:], r.rng.Uint64()|1)
	return id
}

// keeps tells whether the spans of a trace are kept. It depends on the identifier
// alone, as samplers by ratio do, so that all services agree.
func (r *Recorder) keeps(id TraceID) bool {
	if r.SampleTraces <= 0 || r.SampleTraces >= 1 {
		return true
	}
	return float64(binary.BigEndian.Uint64(id[8:])>>11)/(1<<53) < r.SampleTraces
}

// Span takes a span whose times are the world's. It reports whether it was kept.
func (r *Recorder) Span(s Span) bool {
	if s.Source.Lost != nil && s.Source.Lost(s.End) || !r.keeps(s.Trace) {
		return false
	}
	s.Start, s.End = s.Source.time(s.Start), s.Source.time(s.End)
	for i := range s.Events {
		s.Events[i].Time = s.Source.time(s.Events[i].Time)
	}
	r.Spans = append(r.Spans, s)
	return true
}

// Log takes a log record whose time is the world's.
func (r *Recorder) Log(l Log) {
	if l.Source.Lost != nil && l.Source.Lost(l.Time) {
		return
	}
	l.Time = l.Source.time(l.Time)
	r.Logs = append(r.Logs, l)
}

// DropSince forgets the spans and log records that a source told from a time on,
// as when it dies before it has sent them.
func (r *Recorder) DropSince(source *Source, t time.Duration) {
	t = source.time(t)
	r.Spans = slices.DeleteFunc(r.Spans, func(s Span) bool { return s.Source == source && s.End >= t })
	r.Logs = slices.DeleteFunc(r.Logs, func(l Log) bool { return l.Source == source && l.Time >= t })
}
