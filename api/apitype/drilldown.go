package apitype

import (
	"encoding/json"
	"time"
)

// Ways in which a [Drilldown] found its trace.
const (
	// HowExemplar: an exemplar of the series names the trace.
	HowExemplar = "exemplar"
	// HowSlowestSpan: no exemplar was there; the slowest span of the series'
	// service (and operation, when the series names one) in the window.
	HowSlowestSpan = "slowest_span"
	// HowNone: there is no trace.
	HowNone = "none"
)

// Drilldown leads from a point of a metric to a trace and to the trace's logs.
type Drilldown struct {
	Query string    `json:"query"`
	Time  time.Time `json:"time"`
	From  time.Time `json:"from"`
	To    time.Time `json:"to"`
	// How says in which way the trace was found, Explanation in words.
	How         string `json:"how"`
	Explanation string `json:"explanation"`
	// Series are the values of the query at Time, in Prometheus' encoding.
	Series    json.RawMessage `json:"series"`
	Exemplars []Exemplar      `json:"exemplars"`
	Trace     *Trace          `json:"trace"`
	// Logs are the log records of the trace, oldest first.
	Logs    []map[string]string `json:"logs"`
	LogsCut bool                `json:"logs_cut"`
}

// Exemplar is one measurement that was kept with its trace.
type Exemplar struct {
	Metric  string            `json:"metric"`
	Labels  map[string]string `json:"labels"`
	Value   float64           `json:"value"`
	Time    time.Time         `json:"time"`
	TraceID string            `json:"trace_id,omitempty"`
	SpanID  string            `json:"span_id,omitempty"`
}
