// Package attributes holds the sensors that read the attributes of spans and of
// log records: tokens, versions, devices, features, quality. Which attribute is
// read as what stands in a table, kinds.yaml.
package attributes

import (
	"bytes"
	_ "embed" // the table
	"fmt"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"inquest/sensor"
)

//go:embed kinds.yaml
var embedded []byte

// The ways to read an attribute; kinds.yaml explains them.
const (
	readNumber  = "number"
	readRatio   = "ratio"
	readValue   = "value"
	readFlag    = "flag"
	readList    = "list"
	readMiss    = "miss"
	readReaches = "reaches"
)

// rule says how one attribute is read.
type rule struct {
	Name string `yaml:"name"`
	Kind string `yaml:"kind"`
	Read string `yaml:"read"`
	Of   string `yaml:"of"`
	Unit string `yaml:"unit"`

	index int
}

// Table says which attributes are read and how. It is not changed after [Parse].
type Table struct {
	rules  []*rule
	exact  map[string][]*rule // by the names that are looked for
	begins []*rule            // with a name that ends in *
}

// Default returns the table that comes with inquest.
var Default = sync.OnceValue(func() *Table {
	t, err := Parse(embedded)
	if err != nil {
		panic(err) // it is tested
	}
	return t
})

// Parse reads a table in YAML of the form of kinds.yaml. Attributes must be among
// [sensor.Attributes], for others are not read from stores.
func Parse(text []byte) (*Table, error) {
	var file struct {
		Version    int     `yaml:"version"`
		Attributes []*rule `yaml:"attributes"`
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&file); err != nil {
		return nil, fmt.Errorf("cannot read the table of attributes: %w", err)
	}
	if file.Version != 1 {
		return nil, fmt.Errorf("table of attributes: version is %d, not 1", file.Version)
	}
	t := &Table{exact: map[string][]*rule{}}
	for _, r := range file.Attributes {
		if err := r.check(); err != nil {
			return nil, fmt.Errorf("table of attributes: %q: %w", r.Name, err)
		}
		r.index = len(t.rules)
		t.rules = append(t.rules, r)
		if strings.HasSuffix(r.Name, "*") {
			t.begins = append(t.begins, r)
			continue
		}
		t.exact[r.Name] = append(t.exact[r.Name], r)
		if event := sensor.EventPrefix + r.Name; sensor.Wanted(event) {
			t.exact[event] = append(t.exact[event], r)
		}
	}
	return t, nil
}

func (r *rule) check() error {
	switch r.Read {
	case readNumber, readValue, readFlag, readList, readMiss:
		if r.Of != "" {
			return fmt.Errorf("read: %s takes no of", r.Read)
		}
	case readRatio, readReaches:
		if !sensor.Wanted(r.Of) {
			return fmt.Errorf("of is %q, which is not read", r.Of)
		}
	default:
		return fmt.Errorf("read is %q, not one of number, ratio, value, flag, list, miss, reaches", r.Read)
	}
	begin, many := strings.CutSuffix(r.Name, "*")
	switch {
	case r.Kind == "":
		return fmt.Errorf("kind is missing")
	case many && r.Read != readNumber:
		return fmt.Errorf("a name that ends in * can be read as number only")
	case !many && !sensor.Wanted(r.Name), many && !sensor.Wanted(begin+"x"):
		return fmt.Errorf("the attribute is not read from stores")
	}
	if r.Unit == "" && r.Read != readNumber {
		r.Unit = "1"
	}
	return nil
}
