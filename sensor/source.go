// Package sensor turns stored telemetry into findings. This package holds the
// way in ([Source]), the gathered form ([Slice]) and the comparison with the
// baseline; the sensors are in the packages below it, one file each.
package sensor

import (
	"context"
	"time"

	"inquest/record"
)

// Span is one span as sensors see it. Strings that repeat should be shared by
// the source; a slice keeps them.
type Span struct {
	TraceID string
	SpanID  string
	Parent  string // empty for a root
	Service string
	// Version is that of the service (service.version), empty when not told.
	Version string
	Pod     string
	Node    string
	Name    string
	// Kind is server, client, producer, consumer, internal or empty.
	Kind  string
	Start int64 // ns since the Unix epoch
	// Duration is in ns, never negative.
	Duration int64
	Error    bool
	// Attributes are those that sensors read (see [Attributes]); may be nil.
	Attributes map[string]string
}

// End is the time at which the span ended, ns.
func (s *Span) End() int64 { return s.Start + s.Duration }

// Log is one log record as sensors see it.
type Log struct {
	Time     int64 // ns since the Unix epoch
	Service  string
	Version  string // of the service, empty when not told
	Pod      string
	Node     string
	Severity int // OpenTelemetry severity number 1..24, 0 unknown
	Body     string
	TraceID  string
	SpanID   string
	// Code is the statement's place in the code, such as "Class#line" or
	// "file.go:line", where the record tells it.
	Code string
	// Attributes are those of [Attributes]; may be nil.
	Attributes map[string]string
}

// Series is one metric series with its points in a range, by ascending time.
type Series struct {
	Name   string
	Labels map[string]string
	// Unit is in UCUM as OpenTelemetry has it ("s", "By", "%"), or empty.
	Unit string
	// Counter is true when the values accumulate, Gauge when the source says that
	// they do not, whatever the name may suggest.
	Counter, Gauge bool
	Points         []Point

	// Class is what the series measures where its name does not tell, Limit the
	// value at which that is used up, and Query the PromQL of a series that was
	// derived from others. They are mostly empty.
	Class Class
	Limit float64
	Query string

	about *About
}

// Point is one sample.
type Point struct {
	Time  int64 // ns since the Unix epoch
	Value float64
}

// Coverage says what a source has of one quadrant.
type Coverage struct {
	// Source names it for people, such as "records" or "prometheus".
	Source   string
	Quadrant record.Quadrant
	// Ranges are the stretches for which there is data, ascending and apart;
	// nil means that the source cannot tell and is taken to be there always.
	Ranges []Range
	// Unavailable is why the source could not be asked, empty when it could.
	Unavailable string
}

// Range is a stretch of time in ns, From inclusive, To exclusive.
type Range struct{ From, To int64 }

// Contains reports whether t lies in r.
func (r Range) Contains(t int64) bool { return t >= r.From && t < r.To }

// Time converts a time in ns.
func Time(ns int64) time.Time { return time.Unix(0, ns).UTC() }

// Noted is a finding that was made while telemetry was recorded, by a check that
// needs no baseline, such as that of which model version is served.
type Noted struct {
	Finding record.Finding
	Service string // that it concerns, where the finding's entity is another
}

// Noter is a [Source] that has such findings. A source need not be one.
type Noter interface {
	// Noted gives the findings that were told in the range, the oldest first.
	Noted(ctx context.Context, r Range, fn func(Noted) error) error
}

// Source gives telemetry of a stretch of time, From inclusive, To exclusive. A
// method calls fn for each item in any order, never concurrently; what fn gets
// is valid after it returns. An error of fn ends the call and is returned as it
// is. Methods of one Source may be called concurrently.
//
// An error of Spans, Logs or Samples means that this source could not be
// examined: the engine goes on with the others and says so in the verdict.
type Source interface {
	// Spans gives the spans that start in the range.
	Spans(ctx context.Context, r Range, fn func(Span) error) error
	// Logs gives the log records of the range.
	Logs(ctx context.Context, r Range, fn func(Log) error) error
	// Samples gives the metric series that have a point in the range, with these
	// points, each series once.
	Samples(ctx context.Context, r Range, fn func(Series) error) error
	// Describe says for which stretches between r.From and r.To there is data,
	// one Coverage or more for each of logs, traces and metrics.
	Describe(ctx context.Context, r Range) ([]Coverage, error)
}
