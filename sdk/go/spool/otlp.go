package spool

import (
	"encoding/json"
	"errors"
	"fmt"
)

// The OTLP/JSON form of an ExportLogsServiceRequest and its answer.
// https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding
type (
	otlpRequest struct {
		ResourceLogs [1]otlpResource `json:"resourceLogs"`
	}
	otlpResource struct {
		Resource  json.RawMessage `json:"resource,omitempty"`
		ScopeLogs [1]otlpScope    `json:"scopeLogs"`
	}
	otlpScope struct {
		Scope      json.RawMessage   `json:"scope,omitempty"`
		LogRecords []json.RawMessage `json:"logRecords"`
	}
	otlpResponse struct {
		PartialSuccess struct {
			RejectedLogRecords json.Number `json:"rejectedLogRecords"`
			ErrorMessage       string      `json:"errorMessage"`
		} `json:"partialSuccess"`
	}
)

// attributeID names the attribute by which a record that was sent twice can be
// recognised: the file's stem and the line's offset.
const attributeID = "event.id"

// eventID is the same however often the line at offset is sent, and no other line
// has it.
func eventID(stem string, offset int64) string { return fmt.Sprintf("%s:%d", stem, offset) }

// item is a record that is ready to be sent.
type item struct {
	line
	record json.RawMessage
}

// decodeRecord checks a line and gives its record the id of the line.
func decodeRecord(l line, stem string) (item, error) {
	if l.long {
		return item{}, errors.New("the line is too long")
	}
	payload, err := decodeLine(l.raw)
	if err != nil {
		return item{}, err
	}
	var record map[string]json.RawMessage
	if err := json.Unmarshal(payload, &record); err != nil {
		return item{}, fmt.Errorf("the record is not a JSON object: %w", err)
	}
	var attributes []json.RawMessage
	if a := record["attributes"]; len(a) > 0 {
		if err := json.Unmarshal(a, &attributes); err != nil {
			return item{}, fmt.Errorf("the record's attributes are not a list: %w", err)
		}
	}
	id := fmt.Sprintf(`{"key":%q,"value":{"stringValue":%q}}`, attributeID, eventID(stem, l.offset))
	attributes = append(attributes, json.RawMessage(id))
	if record == nil { // the JSON null
		return item{}, errors.New("the record is null")
	}
	if record["attributes"], err = json.Marshal(attributes); err != nil {
		return item{}, err
	}
	out, err := json.Marshal(record)
	return item{l, out}, err
}

// encode makes the request that carries items of one file.
func encode(h Header, items []item) ([]byte, error) {
	var r otlpRequest
	r.ResourceLogs[0].Resource = h.Resource
	scope := &r.ResourceLogs[0].ScopeLogs[0]
	scope.Scope = h.Scope
	for _, i := range items {
		scope.LogRecords = append(scope.LogRecords, i.record)
	}
	return json.Marshal(r)
}
