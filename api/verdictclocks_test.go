package api

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"inquest/record"
	"inquest/verdict"
)

// A verdict's clocks are what the OpenAPI file says.
func TestClocksInOpenAPI(t *testing.T) {
	schema := schemaAt(t, "#/components/schemas/Investigation/properties/verdict")
	f := func(v any, want bool) {
		t.Helper()
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(doc); (err == nil) != want {
			t.Errorf("%s: %v", raw, err)
		}
	}
	node := record.Entity{Kind: record.EntityNode, Name: "n1"}
	f(verdict.Verdict{Clocks: []verdict.Clock{
		{Entity: node, OffsetMs: -1500, ErrorMs: 0.4}, {Entity: node, Note: "not corrected"},
	}}, true)
	f(verdict.Verdict{}, true)
	f(map[string]any{"clocks": []any{map[string]any{"entity": node}}}, false)
	f(map[string]any{"clocks": []any{map[string]any{"entity": node, "offset_ms": 1, "error_ms": 2, "since": "ever"}}}, false)
}
