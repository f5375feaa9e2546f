package admit

import (
	"fmt"
	"math"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"inquest/record"
)

// Bounds are the earliest and the latest time that a store takes. Zero means
// unbounded.
type Bounds struct {
	Earliest, Latest time.Time
}

// MaxDepth is how deep maps and lists may lie in one another in the value of an
// attribute or a log's body.
const MaxDepth = 32

// admission is the work on one request.
type admission struct {
	policy           *Policy // nil: none
	inputs           []Input
	earliest, latest int64 // ns
	received         int64
	rep              *Report
	noun             string // what a record is called, such as "span"
	refused, noted   [kinds]tally
	// Of the last refusal, for its dead letter.
	kind                         LetterKind
	lastCode, lastRule, lastText string
	group                        pmetric.Metric // refused points of one metric that share a letter
}

// kind tells reasons apart. The report gets one line for each, which tells the
// first value met.
type kind int

const (
	tooEarly kind = iota
	tooLate
	tooLarge
	tooDeep
	noTime
	noName
	noType
	noPoints
	noTemporality
	noValue
	badLabel
	badBuckets
	noID
	badEvent
	endsBeforeStart
	tooManyAttributes
	exemplarLeftOut
	kinds // how many there are
)

// codes are the kinds as dead letters are counted by them.
var codes = [kinds]string{
	tooEarly: "time.early", tooLate: "time.late", tooLarge: "size", tooDeep: "depth",
	noTime: "time.missing", noName: "metric.name", noType: "metric.type", noPoints: "metric.points",
	noTemporality: "metric.temporality", noValue: "metric.value", badLabel: "metric.label", badBuckets: "metric.buckets", noID: "id.missing",
}

// rules name the limits that records are over.
var rules = [kinds]string{
	tooEarly: "retention", tooLate: "retention", tooLarge: "record.MaxRowSize", tooDeep: "admit.MaxDepth",
}

type tally struct {
	n    int
	text string
}

func (a *admission) begin(noun string, b Bounds, received int64, rep *Report) {
	a.noun, a.received, a.rep = noun, received, rep
	a.earliest, a.latest = nanos(b.Earliest, math.MinInt64), nanos(b.Latest, math.MaxInt64)
}

// nanos returns t in ns since the Unix epoch, or unbounded where t is zero or
// cannot be told so.
func nanos(t time.Time, unbounded int64) int64 {
	switch {
	case t.IsZero():
		return unbounded
	case t.Year() < 1678:
		return math.MinInt64
	case t.Year() > 2261:
		return math.MaxInt64
	default:
		return t.UnixNano()
	}
}

// reject counts n refused records; text says why.
func (a *admission) reject(k kind, n int, text func() string) {
	if a.rep == nil {
		a.refused[k].n += n
		return
	}
	a.lastCode, a.lastRule, a.lastText = codes[k], rules[k], text()
	a.refused[k].add(n, a.rep, func() string { return a.lastText })
}

// warn counts n records that are kept, but not as their sender may expect.
func (a *admission) warn(k kind, n int, text func() string) {
	a.noted[k].add(n, a.rep, text)
}

func (t *tally) add(n int, rep *Report, text func() string) {
	if t.n == 0 && n > 0 && rep != nil {
		t.text = text()
	}
	t.n += n
}

// end hands what was counted to the report.
func (a *admission) end() {
	for k := range kinds {
		if t := a.refused[k]; t.n > 0 {
			a.rep.Reject(t.n, t.text)
		}
		if t := a.noted[k]; t.n > 0 {
			a.rep.warn(t.n, t.text)
		}
	}
}

// inTime tells whether a record of that time can be stored, and rejects it otherwise.
func (a *admission) inTime(t int64) bool {
	if a.earliest <= t && t <= a.latest {
		return true
	}
	a.outOfTime(t)
	return false
}

func (a *admission) outOfTime(t int64) {
	if t < a.earliest {
		a.reject(tooEarly, 1, func() string {
			return fmt.Sprintf("%s of %s is older than %s, the earliest that is stored: check the sender's clock and that its times are in nanoseconds, or raise the retention",
				a.noun, timeText(t), timeText(a.earliest))
		})
		return
	}
	a.reject(tooLate, 1, func() string {
		return fmt.Sprintf("%s of %s is later than %s, the latest that is stored: check the sender's clock and that its times are in nanoseconds",
			a.noun, timeText(t), timeText(a.latest))
	})
}

func timeText(ns int64) string {
	if ns == math.MaxInt64 {
		return "a time past the year 2262"
	}
	return time.Unix(0, ns).UTC().Format(time.RFC3339Nano)
}

func (a *admission) deep(n int, where string) {
	a.reject(tooDeep, n, func() string {
		return fmt.Sprintf("%s holds a value nested deeper than %d levels in %s: flatten it or send it as JSON text", a.noun, MaxDepth, where)
	})
}

func (a *admission) large(n, size int) {
	a.reject(tooLarge, n, func() string {
		return fmt.Sprintf("%s of %d bytes is above the limit of %d bytes for one record: shorten its body and attributes, or send large content in parts",
			a.noun, size, record.MaxRowSize)
	})
}

func (a *admission) manyAttributes(count int) {
	a.warn(tooManyAttributes, 1, func() string {
		return fmt.Sprintf("%s has %d attributes with those of its resource and scope: those after %d are kept in the field %s and cannot be searched by name",
			a.noun, count, record.MaxAttributes, record.FieldOverflow)
	})
}
