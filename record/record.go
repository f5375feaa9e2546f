// Package record holds the vocabulary of inquest: what a record is, how its
// fields are named, and how OpenTelemetry data becomes records.
//
// A record is one log record, one span, one exemplar, one finding or one
// verdict. It is flat: a time, a few stream fields that say who spoke, and
// fields. Names of attributes are kept as the sender wrote them; names that
// inquest adds are the constants of this package.
package record

// Field is one named value of a record. Names and values are valid UTF-8. A
// field whose value is empty counts as absent.
type Field struct {
	Name  string
	Value string
}

// Row is one record as the stores take it.
type Row struct {
	// Time is in nanoseconds since the Unix epoch: of a log record its
	// timestamp, of a span its start.
	Time int64
	// Stream names who spoke. Rows with equal Stream are kept together on disk,
	// so it holds what is constant for a process (see [StreamFields]) and never
	// a request's own values. Sorted by name, no name twice.
	Stream []Field
	// Fields are the other fields, in no order; no name twice, none that is
	// also in Stream.
	Fields []Field
}

// Size returns the bytes of all names and values, as [MaxRowSize] counts them.
func (r Row) Size() int {
	n := 0
	for _, f := range r.Stream {
		n += len(f.Name) + len(f.Value)
	}
	for _, f := range r.Fields {
		n += len(f.Name) + len(f.Value)
	}
	return n
}

// Type tells the kinds of records apart. It is the stream field [FieldType].
type Type string

// The types of records.
const (
	TypeLog      Type = "log"
	TypeSpan     Type = "span"
	TypeExemplar Type = "exemplar"
	TypeFinding  Type = "finding"
	TypeVerdict  Type = "verdict"
	// TypeDeadLetter is what could not be stored as it came, with the reason.
	TypeDeadLetter Type = "deadletter"
	// TypeDeadLetterPart is a further part of a large dead letter.
	TypeDeadLetterPart Type = "deadletter_part"
	// TypeDeadLetterDone says that a dead letter is no longer open.
	TypeDeadLetterDone Type = "deadletter_done"
)

// Fields of dead letters.
const (
	// FieldLetterID is "<journal entry>-<number within it>", once stored.
	FieldLetterID       = "deadletter.id"
	FieldLetterNo       = "deadletter.no"       // number within the journal entry
	FieldLetterReason   = "deadletter.reason"   // short stable code, such as "schema.required"
	FieldLetterRule     = "deadletter.rule"     // JSON pointer into the schema, or a limit's name
	FieldLetterSource   = "deadletter.source"   // the way it came, such as "otlp/grpc"
	FieldLetterKind     = "deadletter.kind"     // event, log, span or point
	FieldLetterRecords  = "deadletter.records"  // how many records it holds, decimal
	FieldLetterTime     = "deadletter.time"     // the record's own time, RFC 3339
	FieldLetterEncoding = "deadletter.encoding" // how the payload is written
	FieldLetterPayload  = "deadletter.payload"  // the whole record as it came, or a part of it
	FieldLetterParts    = "deadletter.parts"    // number of parts where there is more than one
	FieldLetterPart     = "deadletter.part"     // number of a further part, from 1
	FieldLetterOutcome  = "deadletter.outcome"  // of one that is done: redriven or discarded
)

// FieldFinding holds a stored [Finding] in JSON.
const FieldFinding = "finding.json"

// Names of fields that inquest gives. All other names are the sender's
// attribute names, unchanged, except where two would meet:
//
//   - Where a record's own attribute and its resource's attribute have one name
//     and different values, the record's keeps the name and the resource's is
//     stored as "resource.<name>".
//   - [StreamFields] always hold the resource's values. A record's own attribute
//     with such a name and a different value is stored as "attribute.<name>".
//   - A record's attribute with a name of this list, or with none, is stored as
//     "attribute.<name>", a resource's as "resource.<name>".
//   - Attributes of a scope are stored as "scope.attribute.<name>".
//
// A prefix is put again where the prefixed name is taken too, so that nothing
// is overwritten. Of two attributes in one list with one name the last counts.
// Values that are maps or lists are stored as JSON with sorted keys, bytes in
// base64. What is not UTF-8 is replaced by U+FFFD.
const (
	// FieldTime is the record's time as LogsQL knows it.
	FieldTime = "_time"
	// FieldBody is a log record's body; LogsQL searches it when no field is named.
	FieldBody = "_msg"
	// FieldStream and FieldStreamID are made by the store of [Row.Stream].
	FieldStream   = "_stream"
	FieldStreamID = "_stream_id"
	// FieldType is the record's [Type]; a stream field.
	FieldType = "record.type"
	// FieldSeq is the number of the journal entry that brought the record, in
	// decimal. Every stored record has it.
	FieldSeq = "journal.seq"

	FieldTraceID      = "trace_id"       // 32 lower-case hexadecimal digits
	FieldSpanID       = "span_id"        // 16 lower-case hexadecimal digits
	FieldParentSpanID = "parent_span_id" // 16 digits; absent for a root
	FieldTraceState   = "trace_state"
	FieldFlags        = "flags" // decimal

	FieldSeverity       = "severity"        // severity text as sent, else the name of the number
	FieldSeverityNumber = "severity_number" // 1..24, decimal; absent when unspecified
	FieldEventName      = "event_name"
	FieldObservedTime   = "observed_time" // ns; only where it differs from the record's time by more than 1 s

	FieldName          = "name"           // a span's name, an exemplar's metric name
	FieldSpanKind      = "span_kind"      // server, client, producer, consumer, internal; absent when unspecified
	FieldStatus        = "status"         // ok or error; absent when unset
	FieldStatusMessage = "status_message" //
	FieldDuration      = "duration_ns"    // end − start in ns, decimal; negative when the span ends before it starts
	FieldEvents        = "events"         // JSON array: [{"time_ns":…,"name":…,"attributes":{…}}]
	FieldLinks         = "links"          // JSON array: [{"trace_id":…,"span_id":…,"attributes":{…}}]
	// FieldRequestID is the request id, under whatever name it was sent.
	FieldRequestID = "request.id"
	// Of an event whose raw input is not in the record itself.
	FieldInputSize       = "input.size"       // bytes, decimal
	FieldPayload         = "payload.sha256"   // names the content in the payload store
	FieldPayloadRedacted = "payload.redacted" // true where it is not the raw input itself
	FieldPayloadMissing  = "payload.missing"  // why the payload that was to be kept is not: "unavailable"
	FieldScopeName       = "scope.name"
	FieldScopeVersion    = "scope.version"
	FieldValue           = "value"  // an exemplar's value
	FieldLabels          = "labels" // an exemplar's series labels, JSON object of strings

	// What the sender's SDK left out, as it says itself; absent when nothing.
	FieldDroppedAttributes = "dropped_attributes_count"
	FieldDroppedEvents     = "dropped_events_count"
	FieldDroppedLinks      = "dropped_links_count"

	// FieldOverflow is a JSON object of strings: the attributes beyond the limit
	// on fields of one record and those with names above the limit. Nothing is
	// lost, but they are not indexed.
	FieldOverflow = "attributes_overflow"

	// FieldDerived names the fields that were not sent but derived of others by
	// the table of aliases, separated by commas.
	FieldDerived = "record.derived"
)

// StreamFields are the resource attributes that make up [Row.Stream], after
// [FieldType]. Each is bounded by the number of processes, not of requests. A
// value above 1 KiB is an ordinary field instead.
var StreamFields = []string{
	"service.name",
	"service.namespace",
	"k8s.pod.name",
	"k8s.node.name",
	"host.name",
	"service.instance.id",
}

// Limits of the stores on one record. A record over a limit is never cut
// silently: extra attributes go to [FieldOverflow], and a record that is too
// large as a whole is refused to its sender with the reason.
const (
	MaxFields    = 1000     // fields of one record, stream fields not counted
	MaxNameSize  = 128      // bytes of a field's name
	MaxRowSize   = 1 << 20  // bytes of all names and values of one record
	MaxBatchSize = 64 << 20 // bytes of one request after decompression
)
