package record

import (
	"math"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"inquest/record/alias"
)

// Converter turns OpenTelemetry data into rows. The same data, also after
// encoding and decoding, gives the same rows in the same order. The zero value
// is ready and derives nothing; see [NewConverter]. A Converter is used by one goroutine; the rows that a method
// returns are valid until the next call.
type Converter struct {
	rows   []Row
	fields []Field // of all rows
	texts  texts
	seq    string

	resource, scope owner
	derive          *alias.Deriver // nil: nothing is derived

	// The row under construction.
	start    int // its first field in fields
	taken    int // attributes among its fields
	holes    bool
	names    names
	overflow []Field
	room     int // bytes left for derived fields
}

// maxKeptFields bounds the memory that a Converter holds on to between calls.
const maxKeptFields = 1 << 18

func (c *Converter) reset(seq uint64) {
	if cap(c.fields) > maxKeptFields {
		c.fields, c.rows = nil, nil
	}
	c.rows, c.fields = c.rows[:0], c.fields[:0]
	c.seq = strconv.FormatUint(seq, 10)
}

// Logs returns one row for each log record of ld, in order. seq is the number
// of the journal entry, received is when the batch arrived, in ns; it is the
// time of a record that has none.
func (c *Converter) Logs(ld plog.Logs, seq uint64, received int64) []Row {
	c.reset(seq)
	for _, rl := range ld.ResourceLogs().All() {
		c.setResource(TypeLog, rl.Resource().Attributes())
		for _, sl := range rl.ScopeLogs().All() {
			c.setScope(sl.Scope())
			for _, lr := range sl.LogRecords().All() {
				c.begin()
				c.log(lr)
				c.attributes(lr.Attributes())
				c.finish(LogTime(lr, received))
			}
		}
	}
	return c.rows
}

// LogTime is the time of a log record in ns: when it happened, else when it was
// observed, else when it was received.
func LogTime(lr plog.LogRecord, received int64) int64 {
	switch {
	case lr.Timestamp() != 0:
		return nanos(lr.Timestamp())
	case lr.ObservedTimestamp() != 0:
		return nanos(lr.ObservedTimestamp())
	default:
		return received
	}
}

// nanos returns a timestamp in ns; one past the year 2262 is the last that there is.
func nanos(t pcommon.Timestamp) int64 {
	return int64(min(uint64(t), math.MaxInt64))
}

// maxObservedLag is how far observation and event may be apart, in ns, without
// the former being stored.
const maxObservedLag = 1e9

func (c *Converter) log(lr plog.LogRecord) {
	c.own(FieldBody, c.texts.value(lr.Body()))
	traceID, spanID := lr.TraceID(), lr.SpanID()
	c.own(FieldTraceID, c.texts.id(traceID[:]))
	c.own(FieldSpanID, c.texts.id(spanID[:]))
	c.number(FieldFlags, int64(lr.Flags()))
	c.own(FieldSeverity, severity(lr))
	c.number(FieldSeverityNumber, int64(lr.SeverityNumber()))
	c.own(FieldEventName, valid(lr.EventName()))
	c.number(FieldDroppedAttributes, int64(lr.DroppedAttributesCount()))
	if lr.Timestamp() != 0 && lr.ObservedTimestamp() != 0 {
		lag := nanos(lr.ObservedTimestamp()) - nanos(lr.Timestamp())
		if lag > maxObservedLag || lag < -maxObservedLag {
			c.number(FieldObservedTime, nanos(lr.ObservedTimestamp()))
		}
	}
}

func severity(lr plog.LogRecord) string {
	if s := lr.SeverityText(); s != "" {
		return valid(s)
	}
	if n := lr.SeverityNumber(); n > 0 && int(n) < len(severityNames) {
		return severityNames[n]
	}
	return ""
}

// severityNames are OpenTelemetry's short names of the severity numbers.
var severityNames = func() (names [25]string) {
	for n := 1; n < len(names); n++ {
		names[n] = strings.ToUpper(plog.SeverityNumber(n).String())
	}
	return names
}()

// number adds a field that inquest names, unless it is 0.
func (c *Converter) number(name string, n int64) {
	if n != 0 {
		c.own(name, c.texts.int(n))
	}
}
