package logs

import (
	"bytes"
	_ "embed" // the table
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

//go:embed topics.yaml
var embedded []byte

// entry is one topic as the table has it; topics.yaml explains the fields.
type entry struct {
	Topic    string      `yaml:"topic"`
	Phrases  []string    `yaml:"phrases"`
	Groups   [][]string  `yaml:"groups"`
	Kernel   []string    `yaml:"kernel"`
	Patterns []patterned `yaml:"patterns"`
	Reasons  []string    `yaml:"reasons"`
	Statuses []string    `yaml:"statuses"`
}

type patterned struct {
	Phrase string `yaml:"phrase"`
	Match  string `yaml:"match"`
}

// rule is one way in which a record can have a topic: all its phrases stand in it,
// and its expression matches where there is one.
type rule struct {
	topic   int
	phrases []int32
	match   *regexp.Regexp
	kernel  bool
}

// Table is what log records can speak of. It is not changed after [Parse] and may
// be used concurrently.
type Table struct {
	names    []string // of topics; those of changes follow
	topics   int      // how many of the names are topics
	entries  []entry
	finder   *finder
	rules    []rule
	of       [][]int32        // rules that begin with a phrase, by phrase
	reasons  map[string][]int // topics, by reason of an event
	statuses map[string][]int // topics, by status
}

// Default returns the table that comes with inquest.
var Default = sync.OnceValue(func() *Table {
	t, err := Parse(embedded)
	if err != nil {
		panic(err) // it is tested
	}
	return t
})

var topicName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// Parse reads a table in YAML of the form of topics.yaml. Fields that it does not
// know, empty entries and expressions that do not compile are errors.
func Parse(text []byte) (*Table, error) {
	var file struct {
		Version int     `yaml:"version"`
		Topics  []entry `yaml:"topics"`
		Changes []entry `yaml:"changes"`
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&file); err != nil {
		return nil, fmt.Errorf("cannot read the table of topics: %w", err)
	}
	if file.Version != 1 {
		return nil, fmt.Errorf("table of topics: version is %d, not 1", file.Version)
	}
	t := &Table{
		topics: len(file.Topics), entries: slices.Concat(file.Topics, file.Changes),
		reasons: map[string][]int{}, statuses: map[string][]int{},
	}
	b := builder{table: t, numbers: map[string]int32{}}
	for i := range t.entries {
		e := &t.entries[i]
		name := e.Topic
		if i >= t.topics {
			name = changePrefix + name
		}
		if !topicName.MatchString(e.Topic) || slices.Contains(t.names, name) {
			return nil, fmt.Errorf("table of topics: name %q is used twice or is not of small letters, digits and _", e.Topic)
		}
		t.names = append(t.names, name)
		if err := b.add(i, e); err != nil {
			return nil, fmt.Errorf("table of topics: %s: %w", name, err)
		}
	}
	var err error
	if t.finder, err = newFinder(b.phrases); err != nil {
		return nil, fmt.Errorf("table of topics: %w", err)
	}
	t.of = make([][]int32, len(b.phrases))
	for i, r := range t.rules {
		t.of[r.phrases[0]] = append(t.of[r.phrases[0]], int32(i))
	}
	return t, nil
}

// changePrefix begins the names of changes among topics.
const changePrefix = "change/"

// builder numbers the phrases of a table.
type builder struct {
	table   *Table
	numbers map[string]int32
	phrases []string
}

func (b *builder) add(topic int, e *entry) error {
	t := b.table
	before := len(t.rules)
	for _, p := range e.Phrases {
		if err := b.rule(rule{topic: topic}, p); err != nil {
			return err
		}
	}
	for _, p := range e.Kernel {
		if err := b.rule(rule{topic: topic, kernel: true}, p); err != nil {
			return err
		}
	}
	for _, g := range e.Groups {
		if len(g) == 0 {
			return fmt.Errorf("a group is empty")
		}
		if err := b.rule(rule{topic: topic}, g...); err != nil {
			return err
		}
	}
	for _, p := range e.Patterns {
		m, err := regexp.Compile(p.Match)
		if err != nil {
			return fmt.Errorf("cannot use expression %q: %w", p.Match, err)
		}
		if err := b.rule(rule{topic: topic, match: m}, p.Phrase); err != nil {
			return err
		}
	}
	for _, r := range e.Reasons {
		t.reasons[r] = append(t.reasons[r], topic)
	}
	for _, s := range e.Statuses {
		t.statuses[s] = append(t.statuses[s], topic)
	}
	if before == len(t.rules) && len(e.Reasons)+len(e.Statuses) == 0 {
		return fmt.Errorf("there is nothing to look for")
	}
	return nil
}

func (b *builder) rule(r rule, phrases ...string) error {
	for _, p := range phrases {
		if p != strings.ToLower(p) || strings.TrimSpace(p) != p || strings.Contains(strings.TrimSuffix(p, "*"), "*") || len(p) < 3 {
			return fmt.Errorf("phrase %q: use three small letters or more, and * at the end only", p)
		}
		n, ok := b.numbers[p]
		if !ok {
			n = int32(len(b.phrases))
			b.numbers[p] = n
			b.phrases = append(b.phrases, p)
		}
		r.phrases = append(r.phrases, n)
	}
	b.table.rules = append(b.table.rules, r)
	return nil
}

// query returns a LogsQL filter for records of a topic, empty where only a reason
// or status tells them.
func (t *Table) query(topic int) string {
	e := &t.entries[topic]
	var parts []string
	for _, p := range slices.Concat(e.Phrases, e.Kernel) {
		p, open := strings.CutSuffix(p, "*")
		q := fmt.Sprintf("i(%q)", p)
		if open {
			q = fmt.Sprintf("i(%q*)", p)
		}
		parts = append(parts, q)
	}
	for _, g := range e.Groups {
		var all []string
		for _, p := range g {
			all = append(all, fmt.Sprintf("i(%q*)", strings.TrimSuffix(p, "*")))
		}
		parts = append(parts, "("+strings.Join(all, " ")+")")
	}
	for _, p := range e.Patterns {
		parts = append(parts, fmt.Sprintf("~%q", p.Match))
	}
	for _, r := range e.Reasons {
		parts = append(parts, fmt.Sprintf("%q:=%q", attributeReason, r))
	}
	for _, s := range e.Statuses {
		parts = append(parts, fmt.Sprintf("%q:=%q", "http.response.status_code", s))
	}
	return "(" + strings.Join(parts, " or ") + ")"
}

// Examples returns up to n of what a topic is told by: phrases, groups, kernel lines,
// reasons and statuses. The topic is named as in kinds, without [KindMessage].
func (t *Table) Examples(topic string, n int) []string {
	i := slices.Index(t.names, topic)
	if i < 0 {
		return nil
	}
	e := &t.entries[i]
	out := slices.Concat(e.Phrases, e.Kernel)
	for _, g := range e.Groups {
		out = append(out, strings.Join(g, " … "))
	}
	out = slices.Concat(out, e.Reasons, e.Statuses)
	return out[:min(n, len(out))]
}
