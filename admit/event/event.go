// Package event admits AI events: it recognises the log records that are one,
// checks them against a JSON Schema, and brings those that pass into the form in
// which they are stored.
//
// An event comes as the JSON body of a log record, as attributes named
// "ai.<path>", or as a line of JSON; docs/ai-events.md describes all three. What
// it lacks and the log record has is filled in. The authority on what is valid is
// the schema as github.com/santhosh-tekuri/jsonschema reads it; a fast path that
// is compiled from the same schema accepts most good events without it and
// refuses none.
package event

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
)

// Prefix begins the event name of an AI event and the names of its attributes.
const Prefix = "ai."

// AttributeRequestID is the attribute that holds the request id of any record.
const AttributeRequestID = "request.id"

// Attributes that keep what the log record said otherwise than its event. They
// are set only where both spoke and differed.
const (
	AttributeOtherTraceID   = "record.trace_id"
	AttributeOtherSpanID    = "record.span_id"
	AttributeOtherEventName = "record.event_name"
)

const (
	attributeService = "service.name"
)

// Recognise tells whether lr is an AI event, valid or not: its event name begins
// with "ai.", or an attribute's name does, or its body is a JSON object (a text
// that begins with "{", after white space if any, or an OTLP map) with a member schema_version, business,
// computation or input_hash, or with both system and req_id. It does not
// allocate.
func Recognise(lr plog.LogRecord) bool {
	return strings.HasPrefix(lr.EventName(), Prefix) || hasAttributes(lr.Attributes()) || hasMarker(lr.Body())
}

func hasAttributes(attrs pcommon.Map) bool {
	for name := range attrs.All() {
		if strings.HasPrefix(name, Prefix) {
			return true
		}
	}
	return false
}

// isObject tells whether a body is meant as a JSON object.
func isObject(body pcommon.Value) bool {
	switch body.Type() {
	case pcommon.ValueTypeMap:
		return true
	case pcommon.ValueTypeStr:
		return beginsObject(body.Str())
	default:
		return false
	}
}

// beginsObject tells whether a text begins as a JSON object does.
func beginsObject(s string) bool {
	for i := range len(s) {
		switch s[i] {
		case ' ', '\t', '\r', '\n':
		default:
			return s[i] == '{'
		}
	}
	return false
}

func hasMarker(body pcommon.Value) bool {
	switch body.Type() {
	case pcommon.ValueTypeMap:
		found := 0
		for name := range body.Map().All() {
			if found |= markerOf(name); found >= wholeMarker {
				return true
			}
		}
	case pcommon.ValueTypeStr:
		s := body.Str()
		return beginsObject(s) && mayHaveMarker(s) && textHasMarker(s)
	}
	return false
}

// Weights of members: a sum of wholeMarker or more makes an event.
const (
	requestMarker = 1
	systemMarker  = 2
	wholeMarker   = requestMarker | systemMarker
)

func markerOf(name string) int {
	switch name {
	case "schema_version", "business", "computation", "input_hash":
		return wholeMarker
	case "system":
		return systemMarker
	case "req_id":
		return requestMarker
	}
	return 0
}

// mayHaveMarker tells quickly of most JSON logs that they are no events.
func mayHaveMarker(s string) bool {
	return strings.Contains(s, `"computation"`) || strings.Contains(s, `"business"`) ||
		strings.Contains(s, `"req_id"`) || strings.Contains(s, `"input_hash"`) ||
		strings.Contains(s, `"schema_version"`)
}

// textHasMarker looks through the names of the members of the object at the
// start of s, as far as s is JSON.
func textHasMarker(s string) bool {
	found, depth := 0, 0
	name := false // the next string at depth 1 is a name
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '{', '[':
			depth++
			name = depth == 1
		case '}', ']':
			if depth--; depth == 0 {
				return false
			}
		case ',':
			name = depth == 1
		case '"':
			end := stringEnd(s, i+1)
			if end < 0 {
				return false
			}
			if name {
				if found |= markerOf(s[i+1 : end]); found >= wholeMarker {
					return true
				}
				name = false
			}
			i = end
		}
	}
	return false
}

// stringEnd returns where the JSON string that has its first character at i has
// its closing quote, or -1.
func stringEnd(s string, i int) int {
	for ; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return -1
}
