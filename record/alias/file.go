package alias

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"

	"go.yaml.in/yaml/v3"
)

// file is a file of aliases.
type file struct {
	Version    int          `yaml:"version"`
	Dialects   []dialect    `yaml:"dialects"`
	Attributes []*attribute `yaml:"attributes"`
	Metrics    []*metric    `yaml:"metrics"`
}

// dialect is one way of naming things.
type dialect struct {
	at          position
	Name        string `yaml:"name"`
	Description string `yaml:"description"`
	// Labels renames labels of all metrics of the dialect.
	Labels map[string]string `yaml:"labels"`
	// Prefixes are put in front of metric names by some who pass them on.
	Prefixes []string `yaml:"prefixes"`
}

// attribute is a canonical attribute.
type attribute struct {
	at          position
	Name        string `yaml:"name"`
	Type        Type   `yaml:"type"`
	Unit        string `yaml:"unit"`
	Description string `yaml:"description"`
	// Limit is the longest value that is derived, in bytes; 0 means no limit.
	Limit int `yaml:"limit"`
	// Never lists values that say that there is none, whatever their case.
	Never []string `yaml:"never"`
	// Off takes the attribute out of the table, Without some of its sources.
	Off     bool      `yaml:"off"`
	Without []string  `yaml:"without"`
	From    []*source `yaml:"from"`
}

// source is a dialect's name of a canonical attribute, and what to do to its value.
type source struct {
	at        position
	canonical *attribute
	rank      int // order among all sources of the table; the smallest goes first

	Name    string `yaml:"name"`
	Dialect string `yaml:"dialect"`
	// When names attributes that the record must have, with their values; an
	// empty value stands for any.
	When map[string]string `yaml:"when"`
	// Member is the way to the value inside of a JSON object.
	Member string `yaml:"member"`
	// Extract is a regular expression; its first group that
	// holds something is the value where it matches.
	Extract string `yaml:"extract"`
	// Values renames values, whatever their case. Others says what happens to
	// one that is not listed: keep (the default) or drop.
	Values map[string]string `yaml:"values"`
	Others string            `yaml:"others"`
	// Unit is the source's unit where it is not the canonical one; Scale is the
	// factor where units do not say it.
	Unit  string  `yaml:"unit"`
	Scale float64 `yaml:"scale"`
	// Set says which part of an element an indexed name holds.
	Set string `yaml:"set"`

	extract *regexp.Regexp
	part    part
	scale   float64
}

// metric is a canonical metric.
type metric struct {
	at          position
	Name        string          `yaml:"name"`
	Type        Type            `yaml:"type"`
	Unit        string          `yaml:"unit"`
	Description string          `yaml:"description"`
	Off         bool            `yaml:"off"`
	Without     []string        `yaml:"without"`
	From        []*metricSource `yaml:"from"`
}

// metricSource is a dialect's name of a canonical metric.
type metricSource struct {
	at        position
	canonical *metric
	rank      int

	Name    string  `yaml:"name"`
	Dialect string  `yaml:"dialect"`
	Unit    string  `yaml:"unit"`
	Scale   float64 `yaml:"scale"`
	// Only keeps the points that have one of the values in the label.
	Only map[string][]string `yaml:"only"`
	// Labels renames labels, in addition to those of the dialect.
	Labels map[string]string `yaml:"labels"`
	// Set adds labels.
	Set map[string]string `yaml:"set"`
	// Blank is the value from which upwards a point says that there is none.
	Blank float64 `yaml:"blank"`

	scale  float64
	rename map[string]string // Labels and those of the dialect
	// group has the sources that tell the same: of one canonical metric, for the
	// same points, with the same labels set. Only one of a group counts.
	group string
}

// position is a place in a file.
type position struct {
	file string
	line int
}

func (p position) errorf(format string, args ...any) error {
	return fmt.Errorf("%s:%d: "+format, append([]any{p.file, p.line}, args...)...)
}

// decodeFile reads a file; keys that it does not know are errors.
func decodeFile(name string, data []byte) (*file, error) {
	fail := func(err error) (*file, error) {
		return nil, fmt.Errorf("cannot read aliases of %s: %w", name, err)
	}
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	f := &file{}
	if err := d.Decode(f); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("the file is empty")
		}
		return fail(err)
	}
	if err := d.Decode(new(file)); !errors.Is(err, io.EOF) {
		return fail(errors.New("a second document begins: keep one"))
	}
	if f.Version != 1 {
		return fail(fmt.Errorf("version is %d: this program reads version: 1", f.Version))
	}
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil {
		return fail(err)
	}
	locate(f, name, root.Content[0])
	return f, nil
}

// locate notes the line of each entry, for errors.
func locate(f *file, name string, root *yaml.Node) {
	at := func(n *yaml.Node) position { return position{name, resolve(n).Line} }
	for k, n := range items(root, "dialects") {
		f.Dialects[k].at = at(n)
	}
	for k, n := range items(root, "attributes") {
		a := f.Attributes[k]
		if a == nil {
			a = &attribute{}
			f.Attributes[k] = a
		}
		a.at = at(n)
		for l, n := range items(n, "from") {
			if a.From[l] == nil {
				a.From[l] = &source{}
			}
			a.From[l].at = at(n)
		}
	}
	for k, n := range items(root, "metrics") {
		m := f.Metrics[k]
		if m == nil {
			m = &metric{}
			f.Metrics[k] = m
		}
		m.at = at(n)
		for l, n := range items(n, "from") {
			if m.From[l] == nil {
				m.From[l] = &metricSource{}
			}
			m.From[l].at = at(n)
		}
	}
}

// items are the elements of the list that a key of a mapping holds.
func items(n *yaml.Node, key string) []*yaml.Node {
	n = resolve(n)
	for i := 0; i+1 < len(n.Content) && n.Kind == yaml.MappingNode; i += 2 {
		if n.Content[i].Value == key {
			return resolve(n.Content[i+1]).Content
		}
	}
	return nil
}

func resolve(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}
