package admit

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"inquest/record"
)

// Letter is a dead letter: one record that could not be stored as it came, kept
// whole with the reason.
type Letter struct {
	// Reason is a short stable code, such as "schema.required"; letters are
	// counted by it.
	Reason string
	// Rule is the broken rule: a JSON pointer into the event schema or the name
	// of a limit. It may be empty.
	Rule string
	// Detail says to a person what is wrong and what to do.
	Detail string
	Kind   LetterKind
	// Records is how many records the letter holds: one, except where many lie
	// below one large resource and are kept together.
	Records int
	// Service is the service.name of the record's resource or event, or empty.
	Service string
	// Time is the record's own time in ns since the Unix epoch, 0 where it has none.
	Time int64
	// Payload is the whole record as it came, in the given Encoding.
	Payload  string
	Encoding Encoding
}

// LetterKind says what sort of record a letter holds.
type LetterKind string

// The kinds of letters.
const (
	LetterEvent LetterKind = "event"
	LetterLog   LetterKind = "log"
	LetterSpan  LetterKind = "span"
	LetterPoint LetterKind = "point"
)

// Encoding says how a letter's payload is written.
type Encoding string

// The encodings.
const (
	// EncodingOTLP is an OTLP/JSON request that holds the one record, with its
	// resource and scope.
	EncodingOTLP Encoding = "otlp/json"
	// EncodingText is what came, as text; bytes that are not UTF-8 are U+FFFD.
	EncodingText Encoding = "text"
	// EncodingBase64 is what came, in base64: a piece of a request that does not
	// decode.
	EncodingBase64 Encoding = "base64"
)

// maxPart is how much of a payload one row holds, in bytes. Larger ones are
// spread over several rows.
const maxPart = 512 << 10

// Rows returns the rows that keep l; the number of the journal entry is put in
// front of no when they are stored. received is when the record came, in ns,
// source the way that it took.
func (l *Letter) Rows(no int, received int64, source string) []record.Row {
	// Rows go through JSON, which knows UTF-8 only.
	parts := split(strings.ToValidUTF8(l.Payload, "\uFFFD"))
	detail := strings.ToValidUTF8(l.Detail, "\uFFFD")
	stream := func(t record.Type) []record.Field {
		s := []record.Field{{Name: record.FieldType, Value: string(t)}}
		if l.Service != "" {
			s = append(s, record.Field{Name: "service.name", Value: strings.ToValidUTF8(l.Service, "\uFFFD")})
		}
		return s
	}
	number := strconv.Itoa(no)
	first := record.Row{Time: received, Stream: stream(record.TypeDeadLetter), Fields: []record.Field{
		{Name: record.FieldBody, Value: detail},
		{Name: record.FieldLetterNo, Value: number},
		{Name: record.FieldLetterReason, Value: l.Reason},
		{Name: record.FieldLetterRule, Value: l.Rule},
		{Name: record.FieldLetterSource, Value: source},
		{Name: record.FieldLetterKind, Value: string(l.Kind)},
		{Name: record.FieldLetterRecords, Value: strconv.Itoa(max(1, l.Records))},
		{Name: record.FieldLetterEncoding, Value: string(l.Encoding)},
		{Name: record.FieldLetterPayload, Value: parts[0]},
	}}
	if l.Time != 0 {
		first.Fields = append(first.Fields, record.Field{Name: record.FieldLetterTime, Value: time.Unix(0, l.Time).UTC().Format(time.RFC3339Nano)})
	}
	rows := []record.Row{first}
	if len(parts) == 1 {
		return rows
	}
	rows[0].Fields = append(rows[0].Fields, record.Field{Name: record.FieldLetterParts, Value: strconv.Itoa(len(parts))})
	for i, part := range parts[1:] {
		rows = append(rows, record.Row{Time: received, Stream: stream(record.TypeDeadLetterPart), Fields: []record.Field{
			{Name: record.FieldLetterNo, Value: number},
			{Name: record.FieldLetterPart, Value: strconv.Itoa(i + 1)},
			{Name: record.FieldLetterPayload, Value: part},
		}})
	}
	return rows
}

// split cuts text into parts of at most maxPart bytes, between characters. There
// is one part at least.
func split(text string) []string {
	var parts []string
	for len(text) > maxPart {
		n := maxPart
		for n > maxPart-utf8.UTFMax && !utf8.RuneStart(text[n]) {
			n--
		}
		parts, text = append(parts, text[:n]), text[n:]
	}
	return append(parts, text)
}
