// Package incident makes the telemetry of a small AI-serving system in which
// something breaks, and sends it with the OpenTelemetry SDKs.
//
// The system answers questions over documents: a gateway, an orchestrator, an
// embedding service, a vector database and three pods of a model server. Time is
// virtual: fifteen minutes of telemetry with explicit timestamps come out in a
// second. Ten minutes are healthy, five are not. The model server is simulated
// step by step (continuous batching, key-value cache, preemption), so that
// queues and latencies follow from the load and are not drawn.
//
// The same [Options] give the same telemetry, byte for byte.
package incident

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"
)

// Fault is what breaks.
type Fault string

// The faults.
const (
	// FaultNone breaks nothing; the usual noise goes on.
	FaultNone Fault = "none"
	// FaultCPU lets a sidecar of one model server's pod take the processor.
	FaultCPU Fault = "cpu"
	// FaultKVCache lets one tenant send prompts so long that the key-value cache
	// of every model server runs full.
	FaultKVCache Fault = "kvcache"
	// FaultVectorDB lets the vector database answer slowly while it rebuilds its
	// index.
	FaultVectorDB Fault = "vectordb"
	// FaultBadDeploy rolls out a version of the orchestrator that fails on a part
	// of the requests.
	FaultBadDeploy Fault = "bad-deploy"
)

// Faults lists all.
var Faults = []Fault{FaultNone, FaultCPU, FaultKVCache, FaultVectorDB, FaultBadDeploy}

// ParseFault reads the name of a fault.
func ParseFault(s string) (Fault, error) {
	if slices.Contains(Faults, Fault(s)) {
		return Fault(s), nil
	}
	names := make([]string, len(Faults))
	for i, f := range Faults {
		names[i] = string(f)
	}
	return "", fmt.Errorf("%q is no fault: it is one of %s", s, strings.Join(names, ", "))
}

// How long the two parts last, and how often metrics are read.
const (
	Healthy        = 10 * time.Minute
	Broken         = 5 * time.Minute
	ScrapeInterval = 15 * time.Second
)

// Options choose an incident.
type Options struct {
	// End is the last moment; the onset is [Broken] before it.
	End   time.Time
	Fault Fault
	Seed  uint64
	// Rate is the mean number of questions per second; 0 means 2.5.
	Rate float64
}

// Span is one span to be made.
type Span struct {
	Pod        *Pod
	Name       string
	Kind       trace.SpanKind
	TraceID    trace.TraceID
	ID, Parent trace.SpanID // Parent is zero for a root
	Start, End time.Time
	Attributes []attribute.KeyValue
	// Error is the description of the status, empty when the span is well.
	Error string
	// Exception is recorded as an event of the span, if there was one.
	Exception *Exception
}

// Exception is what code threw.
type Exception struct{ Type, Message, Stack string }

// Log is one log record to be made.
type Log struct {
	Pod        *Pod
	Time       time.Time
	Severity   log.Severity
	Body       string
	TraceID    trace.TraceID // zero outside of requests
	SpanID     trace.SpanID
	Attributes []attribute.KeyValue
}

// Telemetry is all that the system sends.
type Telemetry struct {
	Start, Onset, End time.Time
	// Spans are in the order in which they end, Logs in the order of time.
	Spans []Span
	Logs  []Log
	// Scrapes are the readings of all metrics, one list for each moment.
	Scrapes [][]*metricdata.ResourceMetrics
	// Questions is the number of requests at the gateway, Failed how many of them
	// were answered with an error.
	Questions, Failed int
}

// Generate makes the telemetry of an incident.
func Generate(o Options) *Telemetry {
	if o.Rate <= 0 {
		o.Rate = 2.5
	}
	s := newSimulation(o)
	s.arrive()
	s.serveModels()
	for _, r := range s.requests {
		s.trace(r)
	}
	s.background()
	s.measureResources()

	t := &Telemetry{
		Start: s.at(0), Onset: s.at(s.onset), End: s.at(s.end),
		Spans: s.spans, Logs: s.logs, Scrapes: s.metrics.scrapes(s),
		Questions: len(s.requests),
	}
	for _, r := range s.requests {
		if r.status >= 400 {
			t.Failed++
		}
	}
	// What has not happened by the end has not been sent by then.
	t.Spans = slices.DeleteFunc(t.Spans, func(x Span) bool { return x.End.After(t.End) })
	t.Logs = slices.DeleteFunc(t.Logs, func(x Log) bool { return x.Time.After(t.End) })
	slices.SortStableFunc(t.Spans, func(a, b Span) int { return cmp.Or(a.End.Compare(b.End), b.Start.Compare(a.Start)) })
	slices.SortStableFunc(t.Logs, func(a, b Log) int { return a.Time.Compare(b.Time) })
	return t
}
