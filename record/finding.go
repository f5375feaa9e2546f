package record

import "time"

// Quadrant is one of the four independent views of a system.
type Quadrant string

// The quadrants, in the order in which reports show them.
const (
	QuadrantLogs      Quadrant = "logs"
	QuadrantMetrics   Quadrant = "metrics"
	QuadrantTraces    Quadrant = "traces"
	QuadrantResources Quadrant = "resources"
)

// Quadrants lists the quadrants in their order.
var Quadrants = []Quadrant{QuadrantLogs, QuadrantMetrics, QuadrantTraces, QuadrantResources}

// Direction says which way a measure went.
type Direction string

// The directions.
const (
	DirectionUp       Direction = "up"
	DirectionDown     Direction = "down"
	DirectionAppeared Direction = "appeared" // was never seen in the baseline
	DirectionVanished Direction = "vanished" // was regularly seen in the baseline, now missing
)

// Finding is one piece of evidence: a measure of one entity that is not as the
// baseline would have it.
type Finding struct {
	// ID names the finding within its verdict, such as "f3".
	ID       string   `json:"id"`
	Quadrant Quadrant `json:"quadrant"`
	Sensor   string   `json:"sensor"`
	// Entity is what the measure speaks about.
	Entity Entity `json:"entity"`
	// Kind is what was measured, such as "self_time"; the catalogue speaks in
	// these words.
	Kind string `json:"kind"`
	// Subject narrows Kind down: an operation, a log template, a metric's name.
	Subject string `json:"subject,omitempty"`
	// Peer is the other end, where the measure is of the way between two entities.
	Peer *Entity `json:"peer,omitempty"`

	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// Onset is when the measure changed, to within OnsetError; nil when that
	// cannot be told.
	Onset             *time.Time `json:"onset,omitempty"`
	OnsetErrorSeconds float64    `json:"onset_error_seconds,omitempty"`

	Direction Direction `json:"direction"`
	Observed  float64   `json:"observed"`
	Expected  float64   `json:"expected"`
	Unit      string    `json:"unit,omitempty"`
	// Effect is the distance of Observed from Expected in robust standard
	// deviations of the baseline, always positive.
	Effect float64 `json:"effect"`
	// Strength is how often the baseline shows as much by itself: an empirical
	// two-sided p-value between 0 and 1, small is strong. Findings of different
	// quadrants compare by it.
	Strength float64 `json:"strength"`
	// Requests is the share of the examined requests that show it, 0 when the
	// measure does not count requests.
	Requests float64 `json:"requests,omitempty"`

	// Text says it in a sentence.
	Text string `json:"text"`
	// Evidence leads back to the raw data.
	Evidence []Reference `json:"evidence,omitempty"`
}

// Languages of [Reference.Language].
const (
	LanguageLogsQL = "logsql"
	LanguagePromQL = "promql"
)

// Reference leads to raw evidence: a query and some of what it returns.
type Reference struct {
	Language string    `json:"language"`
	Query    string    `json:"query"`
	From     time.Time `json:"from"`
	To       time.Time `json:"to"`
	// Items are samples of the raw evidence, a few at most.
	Items []Item `json:"items,omitempty"`
}

// Item is one log record, span or point.
type Item struct {
	Time    time.Time `json:"time"`
	TraceID string    `json:"trace_id,omitempty"`
	SpanID  string    `json:"span_id,omitempty"`
	Text    string    `json:"text,omitempty"`
	Value   *float64  `json:"value,omitempty"`
}
