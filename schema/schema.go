// Package schema holds the JSON Schemas that inquest publishes.
package schema

import _ "embed"

// Version is the version of the AI event in AIEvent, as in its member
// schema_version and at the end of its $id.
const Version = "1.0"

// AIEventID is the $id of the schema in AIEvent.
const AIEventID = "https://inquest.dev/schema/ai-event/" + Version

// FaultID is the $id of the schema in Fault.
const FaultID = "https://inquest.dev/schema/fault/1.0"

//go:embed ai-event.schema.json
var aiEvent string

// AIEvent returns the JSON Schema (2020-12) of an AI event. The caller may
// change what it gets.
func AIEvent() []byte { return []byte(aiEvent) }

//go:embed fault.schema.json
var fault string

// Fault returns the JSON Schema (2020-12) of a file of the catalogue of faults. The
// caller may change what it gets.
func Fault() []byte { return []byte(fault) }
