package catalog

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"inquest/record"
	"inquest/schema"
	"inquest/sensor/kinds"
)

const schemaFile = "../schema/fault.schema.json"

// TestSchemaKinds keeps the lists of kinds in the schema as those of the sensors.
func TestSchemaKinds(t *testing.T) {
	text := string(schema.Fault())
	for _, list := range []string{"logs", "metrics", "traces", "resources", "ways"} {
		names := []string{}
		for _, k := range kinds.All() {
			if (string(k.Quadrant) == list || list == "ways" && k.Ways) && !slices.Contains(names, k.Name) {
				names = append(names, k.Name)
			}
		}
		enum, err := json.Marshal(names)
		if err != nil {
			t.Fatal(err)
		}
		line := regexp.MustCompile(`(?m)^    "` + list + `": \{"enum": \[.*\]\}`)
		if !line.MatchString(text) {
			t.Fatalf("%s has no line for %s", schemaFile, list)
		}
		text = line.ReplaceAllLiteralString(text, `    "`+list+`": {"enum": `+strings.ReplaceAll(string(enum), ",", ", ")+`}`)
	}
	same(t, schemaFile, string(schema.Fault()), text)
}

func faultSchema(t *testing.T) (*jsonschema.Schema, map[string]any) {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema.Fault()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(schema.FaultID, doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(schema.FaultID)
	if err != nil {
		t.Fatal(err)
	}
	return s, doc.(map[string]any)
}

// TestSchemaFields compares the fields of the schema with those that are read.
func TestSchemaFields(t *testing.T) {
	_, doc := faultSchema(t)
	f := func(node any, name string) {
		t.Helper()
		have := []string{}
		for field, p := range node.(map[string]any)["properties"].(map[string]any) {
			have = append(have, field)
			if d, _ := p.(map[string]any)["description"].(string); d == "" {
				t.Errorf("%s has no description", field)
			}
		}
		want := fieldsOf(name)
		slices.Sort(have)
		slices.Sort(want)
		if !slices.Equal(have, want) {
			t.Errorf("%s: the schema has %q, the program reads %q", name, have, want)
		}
	}
	expectation := doc["$defs"].(map[string]any)["expectation"]
	f(doc, "Fault")
	f(expectation, "Expectation")
	enum := func(node any, want string) {
		t.Helper()
		var have []string
		for _, v := range node.(map[string]any)["enum"].([]any) {
			have = append(have, v.(string))
		}
		if got := strings.Join(have, ", "); got != want {
			t.Errorf("the schema has %s, the program %s", got, want)
		}
	}
	properties := expectation.(map[string]any)["properties"].(map[string]any)
	enum(properties["quadrant"], words(record.Quadrants))
	enum(properties["where"], words(Places))
	enum(doc["properties"].(map[string]any)["at"].(map[string]any)["items"], words(Entities))
}

// TestSchemaAgrees holds the schema against the built-in faults, and against what
// [Parse] refuses.
func TestSchemaAgrees(t *testing.T) {
	s, _ := faultSchema(t)
	valid := func(text []byte) error {
		var v any
		if err := yaml.Unmarshal(text, &v); err != nil {
			return err
		}
		return s.Validate(v)
	}
	c, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range c.Faults {
		if err := valid(f.Source()); err != nil {
			t.Errorf("%s: %v", f.ID, err)
		}
	}
	if len(c.Faults) < 50 {
		t.Errorf("%d faults", len(c.Faults))
	}
	for _, x := range [][2]string{
		{"", ""},
		{"id: x", "id: X Y"},
		{"title: X", "title: ''"},
		{"remedy: r", "remedies: r"},
		{"[service]", "[]"},
		{"[service]", "[operation]"},
		{"quadrant: logs", "quadrant: smell"},
		{"[error_logs]", "[]"},
		{"[error_logs]", "[error_log]"},
		{"[error_logs]", "[self_time]"},
		{"quadrant: logs, kinds: [error_logs], where: self", "quadrant: traces, kinds: [gap], where: in"},
		{"quadrant: logs, kinds: [error_logs], where: self", "quadrant: traces, kinds: [self_time], where: in"},
		{"where: self", "where: there"},
		{"direction: up", "direction: sideways"},
		{"seen: 0.5", "seen: 1"},
		{"seen: 0.5", "seen: 0.5, at_least: 2"},
		{"seen: 0.5", "seen: 0.5, symptom: true"},
		{"seen: 0.5", "seen: 0.5, absent: true, essential: true"},
		{"seen: 0.5", "seen: 0.5, absent: false, essential: true"},
		{"text: t", "text: ''"},
	} {
		text := []byte(strings.Replace(good, x[0], x[1], 1))
		_, parsed := Parse(text)
		if err := valid(text); (err == nil) != (parsed == nil) {
			t.Errorf("%q: the schema says %v, the program %v", x[1], err, parsed)
		}
	}
}
