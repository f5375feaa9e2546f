package record

import (
	"strconv"
	"time"
)

// Source says who sent a record.
type Source struct {
	Service   string // service.name
	Namespace string // service.namespace
	Instance  string // service.instance.id
	Pod       string // k8s.pod.name
	Node      string // k8s.node.name
	Host      string // host.name
}

// Head is what records of all types have in common.
type Head struct {
	Source
	Time         time.Time // UTC
	Seq          uint64    // number of the journal entry; 0 when absent
	TraceID      string    // 32 lower-case hexadecimal digits, or empty
	SpanID       string    // 16 lower-case hexadecimal digits, or empty
	ScopeName    string
	ScopeVersion string
	// Attributes are all other fields by name: the record's own attributes under
	// the names that their sender gave, those of its resource and scope under
	// the names that they are stored by. nil when there are none. Canonical
	// names of attributes that were sent under other ones are among them.
	Attributes map[string]string
	// Derived are the names among Attributes that nobody sent.
	Derived []string
}

// Log is a log record as it is read back from a store.
type Log struct {
	Head
	Body           string
	Severity       string
	SeverityNumber int // 1..24; 0 when unspecified
	EventName      string
	Flags          uint32
	Observed       time.Time // zero unless more than 1 s away from Time
}

// Span is a span as it is read back from a store. Time is its start.
type Span struct {
	Head
	ParentSpanID  string // empty for a root
	Name          string
	Kind          string        // server, client, producer, consumer, internal or empty
	Status        string        // ok, error or empty
	StatusMessage string        //
	Duration      time.Duration // negative when the span ends before it starts
	Ended         bool          // false when the sender told no end, or no start
	TraceState    string
	Flags         uint32
	Events        []Event
	Links         []Link
}

// End is when the span ended.
func (s *Span) End() time.Time { return s.Time.Add(s.Duration) }

// Event is something that happened during a span.
type Event struct {
	TimeNS     int64          `json:"time_ns"` // since the Unix epoch; 0 when not told
	Name       string         `json:"name"`
	Attributes map[string]any `json:"attributes,omitempty"` // numbers are [encoding/json.Number]
}

// Link leads to another span.
type Link struct {
	TraceID    string         `json:"trace_id"`
	SpanID     string         `json:"span_id"`
	TraceState string         `json:"trace_state,omitempty"`
	Attributes map[string]any `json:"attributes,omitempty"` // numbers are [encoding/json.Number]
}

// Exemplar is one measurement behind a metric point, as it is read back from a store.
type Exemplar struct {
	Head
	Name     string            // the metric's OpenTelemetry name
	Value    float64           //
	Labels   map[string]string // the point's attributes
	HasValue bool              // false when the sender gave no value
}

// ParseLog reads a stored log record. It fails where fields of inquest's making
// cannot be read: the row is of another type or was not written by inquest.
func ParseLog(fields []Field) (Log, error) {
	var l Log
	p := parser{head: &l.Head, want: TypeLog, own: func(p *parser, name, value string) bool {
		switch name {
		case FieldBody:
			l.Body = value
		case FieldSeverity:
			l.Severity = value
		case FieldSeverityNumber:
			l.SeverityNumber = int(p.integer(name, value, 1, 1<<31-1))
		case FieldEventName:
			l.EventName = value
		case FieldFlags:
			l.Flags = uint32(p.integer(name, value, 0, 1<<32-1))
		case FieldObservedTime:
			l.Observed = time.Unix(0, p.integer(name, value, 0, 1<<63-1)).UTC()
		default:
			return false
		}
		return true
	}}
	return l, p.parse(fields)
}

// ParseSpan reads a stored span; see [ParseLog].
func ParseSpan(fields []Field) (Span, error) {
	var s Span
	p := parser{head: &s.Head, want: TypeSpan, own: func(p *parser, name, value string) bool {
		switch name {
		case FieldParentSpanID:
			s.ParentSpanID = p.id(name, value, 16)
		case FieldName:
			s.Name = value
		case FieldSpanKind:
			s.Kind = value
		case FieldStatus:
			s.Status = value
		case FieldStatusMessage:
			s.StatusMessage = value
		case FieldDuration:
			s.Duration, s.Ended = time.Duration(p.integer(name, value, -1<<63, 1<<63-1)), true
		case FieldTraceState:
			s.TraceState = value
		case FieldFlags:
			s.Flags = uint32(p.integer(name, value, 0, 1<<32-1))
		case FieldEvents:
			p.json(name, value, &s.Events)
		case FieldLinks:
			p.json(name, value, &s.Links)
		default:
			return false
		}
		return true
	}}
	return s, p.parse(fields)
}

// ParseExemplar reads a stored exemplar; see [ParseLog].
func ParseExemplar(fields []Field) (Exemplar, error) {
	var e Exemplar
	p := parser{head: &e.Head, want: TypeExemplar, own: func(p *parser, name, value string) bool {
		switch name {
		case FieldName:
			e.Name = value
		case FieldValue:
			v, err := strconv.ParseFloat(value, 64)
			if err != nil {
				p.fail(name, value, "a number")
			}
			e.Value, e.HasValue = v, true
		case FieldLabels:
			p.json(name, value, &e.Labels)
		default:
			return false
		}
		return true
	}}
	return e, p.parse(fields)
}
