package decision

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

//go:embed decisions.yaml
var builtin []byte

// Limits of a table.
const (
	maxTableSize  = 1 << 20 // bytes of YAML
	maxPatterns   = 1000
	maxExpression = 4000 // bytes of a regular expression
)

// Table is what is known of decisions, as YAML holds it; decisions.yaml
// explains each part.
type Table struct {
	Version    int             `yaml:"version"`
	Disable    []string        `yaml:"disable"`
	Patterns   []Pattern       `yaml:"patterns"`
	Attributes []AttributeRule `yaml:"attributes"`
	Spans      []SpanRule      `yaml:"spans"`
}

// Pattern is a way in which a log body tells of a decision.
type Pattern struct {
	ID   string `yaml:"id"`
	Type Type   `yaml:"type"`
	// Words are groups; the body must have a word of each, in any place and in
	// either case. They keep most lines away from the expression.
	Words [][]string `yaml:"words"`
	// Match is a regular expression (RE2). Its groups named reason, from and to
	// are taken over.
	Match string `yaml:"match"`
	// Unless is a regular expression; a sentence that it matches tells of no
	// decision.
	Unless string `yaml:"unless"`
	// Reason is used when the body tells none; for the cache it is the outcome.
	Reason string `yaml:"reason"`
}

// AttributeRule says what attributes tell of a decision.
type AttributeRule struct {
	ID    string   `yaml:"id"`
	Names []string `yaml:"names"`
	// Type is the decision that the attribute tells; empty where Is is set.
	Type Type `yaml:"type"`
	// Values maps the attribute's values, in lower case, to the reason. Values
	// that it lacks tell of no decision.
	Values map[string]string `yaml:"values"`
	// Above takes any number above it instead.
	Above *float64 `yaml:"above"`
	// Is says that the attribute holds a part of the decision: type, reason,
	// from or to.
	Is string `yaml:"is"`
}

// SpanRule says what words in a span's name tell of a decision.
type SpanRule struct {
	ID   string `yaml:"id"`
	Type Type   `yaml:"type"`
	// All must be among the words of the name, none of Unless may be.
	All    []string `yaml:"all"`
	Unless []string `yaml:"unless"`
}

// ParseTable reads a table and checks it.
func ParseTable(data []byte) (*Table, error) {
	if len(data) > maxTableSize {
		return nil, fmt.Errorf("cannot read the table of decisions: it has %d bytes, at most %d are read", len(data), maxTableSize)
	}
	var t Table
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	if err := d.Decode(&t); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("cannot read the table of decisions: %w", err)
	}
	if err := t.check(); err != nil {
		return nil, fmt.Errorf("cannot use the table of decisions: %w", err)
	}
	return &t, nil
}

// Builtin returns the table that inquest comes with.
func Builtin() (*Table, error) { return ParseTable(builtin) }

// LoadTable returns the built-in table with the tables of files merged into it,
// the later ones before the earlier.
func LoadTable(files ...string) (*Table, error) {
	t, err := Builtin()
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("cannot read the table of decisions: %w", err)
		}
		own, err := ParseTable(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		t = t.Merge(own)
	}
	return t, nil
}

// Merge returns t with the rules of own before its own ones. A rule of own
// replaces the one of t with the same id; rules that own disables go.
func (t *Table) Merge(own *Table) *Table {
	gone := map[string]bool{}
	for _, id := range own.Disable {
		gone[id] = true
	}
	for _, id := range own.ids() {
		gone[id] = true
	}
	out := &Table{
		Version:    t.Version,
		Patterns:   slices.Clone(own.Patterns),
		Attributes: slices.Clone(own.Attributes),
		Spans:      slices.Clone(own.Spans),
	}
	for _, p := range t.Patterns {
		if !gone[p.ID] {
			out.Patterns = append(out.Patterns, p)
		}
	}
	for _, a := range t.Attributes {
		if !gone[a.ID] {
			out.Attributes = append(out.Attributes, a)
		}
	}
	for _, s := range t.Spans {
		if !gone[s.ID] {
			out.Spans = append(out.Spans, s)
		}
	}
	return out
}

func (t *Table) ids() []string {
	var ids []string
	for _, p := range t.Patterns {
		ids = append(ids, p.ID)
	}
	for _, a := range t.Attributes {
		ids = append(ids, a.ID)
	}
	for _, s := range t.Spans {
		ids = append(ids, s.ID)
	}
	return ids
}

func (t *Table) check() error {
	if t.Version != 1 {
		return fmt.Errorf("version is %d: write \"version: 1\"", t.Version)
	}
	ids := t.ids()
	if len(ids) > maxPatterns {
		return fmt.Errorf("it has %d rules, at most %d are allowed", len(ids), maxPatterns)
	}
	seen := map[string]bool{}
	for _, id := range ids {
		if id == "" || seen[id] {
			return fmt.Errorf("each rule needs an id of its own, and %q is missing or there twice", id)
		}
		seen[id] = true
	}
	for _, p := range t.Patterns {
		if err := p.check(); err != nil {
			return fmt.Errorf("pattern %s: %w", p.ID, err)
		}
	}
	for _, a := range t.Attributes {
		if err := a.check(); err != nil {
			return fmt.Errorf("attribute rule %s: %w", a.ID, err)
		}
	}
	for _, s := range t.Spans {
		if !slices.Contains(Types, s.Type) || len(s.All) == 0 {
			return fmt.Errorf("span rule %s: it needs a type of %v and words in \"all\"", s.ID, Types)
		}
	}
	return nil
}

func (p *Pattern) check() error {
	if !slices.Contains(Types, p.Type) {
		return fmt.Errorf("type %q is none of %v", p.Type, Types)
	}
	if len(p.Words) == 0 {
		return errors.New("it needs words, each group with at least one, that the body must have")
	}
	for _, group := range p.Words {
		if len(group) == 0 || slices.Contains(group, "") {
			return errors.New("each group of words needs at least one, and none may be empty")
		}
	}
	for _, e := range []string{p.Match, p.Unless} {
		if len(e) > maxExpression {
			return fmt.Errorf("an expression has %d bytes, at most %d are allowed", len(e), maxExpression)
		}
	}
	re, err := regexp.Compile(p.Match)
	if err != nil {
		return err
	}
	if p.Match == "" || re.MatchString("") {
		return errors.New("match would match anything")
	}
	_, err = regexp.Compile(p.Unless)
	return err
}

func (a *AttributeRule) check() error {
	if len(a.Names) == 0 || slices.Contains(a.Names, "") {
		return errors.New("it needs names, none empty")
	}
	if a.Is != "" {
		if !slices.Contains([]string{"type", "reason", "from", "to"}, a.Is) {
			return fmt.Errorf("\"is\" can be type, reason, from or to, not %q", a.Is)
		}
		return nil
	}
	if !slices.Contains(Types, a.Type) {
		return fmt.Errorf("type %q is none of %v", a.Type, Types)
	}
	if (a.Above == nil) == (len(a.Values) == 0) {
		return errors.New("it needs either values or above")
	}
	for v := range a.Values {
		if v != strings.ToLower(v) {
			return fmt.Errorf("value %q must be in lower case", v)
		}
	}
	return nil
}
