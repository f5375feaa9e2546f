package apitype

import "time"

// Trace is one trace, its spans in the order of a waterfall: each span comes
// before its children, siblings by start.
type Trace struct {
	TraceID string    `json:"trace_id"`
	Start   time.Time `json:"start"`
	// DurationNS is from the first start to the last end of any span.
	DurationNS int64    `json:"duration_ns"`
	Services   []string `json:"services"`
	Spans      []Span   `json:"spans"`
	// MissingParents are ids that spans name as their parent and that are not
	// stored: a service that does not report, a broken context, or late data.
	MissingParents []string `json:"missing_parents"`
	// Cut is true when the trace has more spans than the limit.
	Cut bool `json:"cut"`
	// Logs are the trace's log records, oldest first. Those that carry no trace
	// id, but that the evidence binds to the trace, have the field "binding" and
	// the ids that were inferred. They are absent within a [Drilldown], which has
	// them itself.
	Logs    []map[string]string `json:"logs,omitempty"`
	LogsCut bool                `json:"logs_cut,omitempty"` // there are more
}

// Span is one span of a [Trace].
type Span struct {
	SpanID       string `json:"span_id"`
	ParentSpanID string `json:"parent_span_id,omitempty"`
	// Depth is 0 for a root and for a span whose parent is missing.
	Depth int `json:"depth"`
	// Orphan is true when the span names a parent that is not stored.
	Orphan   bool     `json:"orphan,omitempty"`
	Children []string `json:"children"`

	Service string    `json:"service"`
	Name    string    `json:"name"`
	Kind    string    `json:"kind,omitempty"`
	Start   time.Time `json:"start"`
	// OffsetNS is the start counted from the start of the trace.
	OffsetNS   int64 `json:"offset_ns"`
	DurationNS int64 `json:"duration_ns"`
	// SelfNS is the part of the duration that no child covers.
	SelfNS        int64  `json:"self_ns"`
	Status        string `json:"status,omitempty"`
	StatusMessage string `json:"status_message,omitempty"`

	Attributes map[string]string `json:"attributes"`
	Resource   map[string]string `json:"resource"`
	Events     []SpanEvent       `json:"events,omitempty"`
	Links      []SpanLink        `json:"links,omitempty"`
}

// SpanEvent is something that happened during a span.
type SpanEvent struct {
	TimeNS     int64          `json:"time_ns"`
	Name       string         `json:"name"`
	Attributes map[string]any `json:"attributes,omitempty"`
}

// SpanLink points at a span of another trace.
type SpanLink struct {
	TraceID    string         `json:"trace_id"`
	SpanID     string         `json:"span_id"`
	Attributes map[string]any `json:"attributes,omitempty"`
}
