package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

func compiled(t *testing.T) (*jsonschema.Schema, map[string]any) {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(AIEvent()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource(AIEventID, doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(AIEventID)
	if err != nil {
		t.Fatal(err)
	}
	return s, doc.(map[string]any)
}

func TestIdentity(t *testing.T) {
	_, doc := compiled(t)
	if doc["$id"] != AIEventID || doc["$schema"] != "https://json-schema.org/draft/2020-12/schema" {
		t.Errorf("$id %v, $schema %v", doc["$id"], doc["$schema"])
	}
	version := doc["properties"].(map[string]any)["schema_version"].(map[string]any)
	if version["const"] != Version {
		t.Errorf("schema_version is %v, want %s", version["const"], Version)
	}
}

// TestEachPropertyIsExplained visits every property and every example.
func TestEachPropertyIsExplained(t *testing.T) {
	s, doc := compiled(t)
	var visit func(at string, raw map[string]any, s *jsonschema.Schema)
	visit = func(at string, raw map[string]any, s *jsonschema.Schema) {
		for _, name := range []string{"title", "description", "unit"} {
			if text, _ := raw[name].(string); text == "" && at != "" {
				t.Errorf("%s has no %s", at, name)
			}
		}
		examples, _ := raw["examples"].([]any)
		for _, e := range examples {
			if err := s.Validate(e); err != nil {
				t.Errorf("%s: example %v: %v", at, e, err)
			}
		}
		properties, _ := raw["properties"].(map[string]any)
		if len(properties) == 0 && raw["$ref"] == nil && len(examples) == 0 {
			t.Errorf("%s has no example", at)
		}
		for name, p := range properties {
			visit(at+"/properties/"+name, p.(map[string]any), s.Properties[name])
		}
		required, _ := raw["required"].([]any)
		for _, name := range required {
			if properties[name.(string)] == nil {
				t.Errorf("%s requires %v, which it does not describe", at, name)
			}
		}
	}
	visit("", doc, s)
	stats := doc["$defs"].(map[string]any)["stats"].(map[string]any)
	visit("/$defs/stats", stats, s.Properties["computation"].Properties["input_stats"].Ref)
}

// TestEachRequiredMember takes the required members out of the example, one by one.
func TestEachRequiredMember(t *testing.T) {
	s, doc := compiled(t)
	example := doc["examples"].([]any)[0].(map[string]any)
	f := func(path, wantRule string) {
		t.Helper()
		text, _ := json.Marshal(example)
		e, _ := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		names := strings.Split(path, ".")
		last := len(names) - 1
		m := e.(map[string]any)
		for _, name := range names[:last] {
			m = m[name].(map[string]any)
		}
		if _, ok := m[names[last]]; !ok {
			t.Fatalf("%s is not in the example", path)
		}
		delete(m, names[last])
		err := s.Validate(e)
		if err == nil || !strings.Contains(fmt.Sprintf("%#v", err), wantRule) {
			t.Errorf("without %s: %#v, want %s", path, err, wantRule)
		}
	}
	for _, name := range s.Required {
		f(name, "[S#/required]")
	}
	for _, name := range []string{"business", "system", "computation"} {
		for _, member := range s.Properties[name].Required {
			f(name+"."+member, "[S#/properties/"+name+"/required]")
		}
	}
	for _, name := range []string{"shape", "dtype", "has_nan", "min_val", "max_val"} {
		f("computation.input_stats."+name, "[S#/$defs/stats/required]")
		f("computation.output_stats."+name, "[S#/$defs/stats/required]")
	}
	if !slices.Contains(s.Required, "req_id") {
		t.Error("req_id is not required")
	}
}
