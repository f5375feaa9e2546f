package inquest

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/trace"
)

// Resource returns attrs and service.name as OTLP/JSON, for [spool.Options].
func Resource(service string, attrs map[string]string) json.RawMessage {
	list := []otlpAttr{strAttr("service.name", service)}
	for _, k := range slices.Sorted(maps.Keys(attrs)) {
		list = append(list, strAttr(k, attrs[k]))
	}
	b, err := oneLine(map[string]any{"attributes": list})
	if err != nil {
		return json.RawMessage("{}") // strings always have a JSON form
	}
	return b
}

// severities maps a level to OpenTelemetry's number.
var severities = map[Level]log.Severity{
	LevelTrace: log.SeverityTrace, LevelDebug: log.SeverityDebug, LevelInfo: log.SeverityInfo,
	LevelWarn: log.SeverityWarn, LevelError: log.SeverityError, LevelFatal: log.SeverityFatal,
}

// The OTLP/JSON form of a log record, as it lies in the spool.
type (
	otlpRecord struct {
		Time           string     `json:"timeUnixNano"`
		Observed       string     `json:"observedTimeUnixNano"`
		SeverityNumber int        `json:"severityNumber,omitempty"`
		SeverityText   string     `json:"severityText,omitempty"`
		Body           otlpString `json:"body"`
		Attributes     []otlpAttr `json:"attributes,omitempty"`
		EventName      string     `json:"eventName"`
		TraceID        string     `json:"traceId,omitempty"`
		SpanID         string     `json:"spanId,omitempty"`
		Flags          int        `json:"flags,omitempty"`
	}
	otlpAttr struct {
		Key   string     `json:"key"`
		Value otlpString `json:"value"`
	}
	otlpString struct {
		Value string `json:"stringValue"`
	}
)

func strAttr(k, v string) otlpAttr { return otlpAttr{k, otlpString{v}} }

// spoolRecord writes the log record that carries the event's text.
func spoolRecord(e *Event, text []byte, flags trace.TraceFlags) ([]byte, error) {
	nanos := strconv.FormatInt(e.Timestamp.UnixNano(), 10)
	r := otlpRecord{
		Time: nanos, Observed: nanos, Body: otlpString{string(text)}, EventName: "ai." + e.Event,
		SeverityNumber: int(severities[e.Level]), SeverityText: string(e.Level),
		TraceID: e.TraceID, SpanID: e.SpanID, Flags: int(flags),
	}
	if e.RequestID != "" {
		r.Attributes = []otlpAttr{strAttr(KeyRequestID, e.RequestID)}
	}
	return oneLine(r)
}
