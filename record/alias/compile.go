package alias

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
)

// Limits on names in a file.
const (
	maxCanonical = 128 // bytes, as the stores take
	maxSource    = 256
)

// canonicalName is what a canonical name looks like: words joined by dots.
var canonicalName = regexp.MustCompile(`^[a-z][a-z0-9_]*(\.[a-z0-9_]+)+$`)

// taken are the first words of names that inquest or its stores give, or that
// say who sent a record.
var taken = []string{"record", "journal", "scope", "resource", "attribute", "deadletter", "alias", "service", "k8s", "host"}

// CheckCanonical says why name cannot be a canonical one, if so.
func CheckCanonical(name string) error {
	if !canonicalName.MatchString(name) || len(name) > maxCanonical {
		return fmt.Errorf("%q cannot be a canonical name: write small letters, digits and underscores in words joined by dots, at most %d", name, maxCanonical)
	}
	first, _, _ := strings.Cut(name, ".")
	if slices.Contains(taken, first) {
		return fmt.Errorf("%q cannot be a canonical name: names that begin with %q are taken", name, first+".")
	}
	return nil
}

// compiler makes a table of a file.
type compiler struct {
	t        *Table
	dialects map[string]*dialect
	errs     []error
	heads    map[string]int // groups of indexed names
}

func (c *compiler) bad(at position, format string, args ...any) {
	c.errs = append(c.errs, at.errorf(format, args...))
}

func compile(f *file) (*Table, error) {
	c := &compiler{
		t:        &Table{exact: map[string]*names{}, metrics: map[string][]*metricSource{}, dialects: f.Dialects},
		dialects: map[string]*dialect{},
		heads:    map[string]int{},
	}
	for k := range f.Dialects {
		d := &f.Dialects[k]
		if d.Name == "" || c.dialects[d.Name] != nil {
			c.bad(d.at, "dialect %q has no name or one that another has", d.Name)
		}
		c.dialects[d.Name] = d
	}
	c.attributes(f.Attributes)
	c.metrics(f.Metrics)
	if len(c.errs) > 0 {
		return nil, fmt.Errorf("cannot use aliases: %w", errors.Join(c.errs...))
	}
	return c.t, nil
}

func (c *compiler) attributes(list []*attribute) {
	seen := map[string]bool{}
	rank := 0
	for _, a := range list {
		if err := CheckCanonical(a.Name); err != nil {
			c.bad(a.at, "%v", err)
			continue
		}
		if seen[a.Name] {
			c.bad(a.at, "%s comes twice: make it one entry", a.Name)
			continue
		}
		seen[a.Name] = true
		if a.Off {
			continue
		}
		switch a.Type {
		case String, Int, Double, Bool, Strings, Objects, Messages:
		default:
			c.bad(a.at, "%s: type %q is none of string, int, double, bool, strings, objects, messages", a.Name, a.Type)
			continue
		}
		if len(a.From) == 0 || a.Limit < 0 {
			c.bad(a.at, "%s: from must name a source or more, and limit be a number of bytes", a.Name)
		}
		c.t.attributeList = append(c.t.attributeList, a)
		for _, s := range a.From {
			s.canonical, s.rank = a, rank
			rank++
			if err := c.source(s); err != nil {
				c.bad(s.at, "%s from %q: %v", a.Name, s.Name, err)
			}
		}
	}
	c.cycles()
	// A plain name may be one of an indexed name's, too.
	for name, n := range c.t.exact {
		for k := range c.t.indexed {
			if more, at := c.t.indexed[k].find(name); more != nil {
				n.at = at
				n.sources = append(n.sources, more.sources...)
				n.targets = append(n.targets, more.targets...)
			}
		}
	}
}

// source checks a source and puts it into the table.
func (c *compiler) source(s *source) error {
	a := s.canonical
	switch {
	case len(s.Name) < minName || len(s.Name) > maxSource:
		return fmt.Errorf("a source's name has %d to %d characters", minName, maxSource)
	case s.Name == a.Name && s.Member == "":
		return errors.New("it is the canonical name itself")
	case c.dialects[s.Dialect] == nil:
		return fmt.Errorf("dialect %q is not declared", s.Dialect)
	case s.Others != "" && s.Others != "keep" && s.Others != "drop":
		return fmt.Errorf("others is %q: write keep or drop", s.Others)
	case s.Others != "" && len(s.Values) == 0:
		return errors.New("others needs values")
	}
	if err := s.prepare(); err != nil {
		return err
	}
	if !isIndexed(s.Name) {
		n := c.t.exact[s.Name]
		if n == nil {
			n = &names{at: index{-1, -1}}
			c.t.exact[s.Name] = n
		}
		c.t.filter.addName(s.Name)
		return n.add(s)
	}
	p, err := parsePattern(s.Name)
	if err != nil {
		return err
	}
	k, ok := c.heads[p.head]
	if !ok {
		k = len(c.t.indexed)
		c.heads[p.head] = k
		c.t.indexed = append(c.t.indexed, indexGroup{head: p.head})
		c.t.filter.addHead(p.head)
	}
	g := &c.t.indexed[k]
	for l := range g.names {
		if g.names[l].pattern == p {
			return g.names[l].names.add(s)
		}
	}
	g.names = append(g.names, indexed{p, &names{}})
	return g.names[len(g.names)-1].names.add(s)
}

// prepare reads the ways in which a source's value is changed.
func (s *source) prepare() (err error) {
	a := s.canonical
	number := a.Type == Int || a.Type == Double
	if s.scale, err = scaleOf(s.Scale, s.Unit, a.Unit); err != nil {
		return err
	}
	if s.scale != 1 && !number {
		return fmt.Errorf("unit and scale are for int and double, not for %s", a.Type)
	}
	if s.Extract != "" {
		if s.extract, err = regexp.Compile(s.Extract); err != nil {
			return fmt.Errorf("extract: %w", err)
		}
		if s.extract.NumSubexp() == 0 {
			return errors.New("extract needs a group, in parentheses")
		}
	}
	if len(s.Values) > 0 {
		lower := map[string]string{}
		for k, v := range s.Values {
			lower[strings.ToLower(k)] = v
		}
		s.Values = lower
	}
	composed := a.Type == Objects || a.Type == Messages
	if composed && (s.Set == "" || s.Member != "" || s.Extract != "" || len(s.Values) > 0) {
		return fmt.Errorf("a source of %s needs set and takes no member, extract or values", a.Type)
	}
	if !composed && s.Set != "" {
		return fmt.Errorf("set is for objects and messages, not for %s", a.Type)
	}
	if composed {
		s.part, err = parsePart(s.Set, a.Type, isIndexed(s.Name))
	}
	return err
}

func scaleOf(scale float64, from, to string) (float64, error) {
	switch {
	case scale != 0 && from != "":
		return 0, errors.New("give unit or scale, not both")
	case scale != 0 && (scale < 0 || math.IsInf(scale, 0) || math.IsNaN(scale)):
		return 0, fmt.Errorf("scale %v is not a positive number", scale)
	case scale != 0:
		return scale, nil
	case from != "":
		return unitScale(from, to)
	}
	return 1, nil
}

// add refuses a second canonical name for the same part of the same attribute.
func (n *names) add(s *source) error {
	for _, o := range n.sources {
		if o.Member == s.Member && o.Set == s.Set && maps.Equal(o.When, s.When) {
			return fmt.Errorf("it already leads to %s (%s:%d); take it out there with without", o.canonical.Name, o.at.file, o.at.line)
		}
	}
	n.sources = append(n.sources, s)
	n.targets = append(n.targets, Target{s.canonical.Name, s.Dialect, s.canonical.Type, s.canonical.Unit})
	return nil
}

// cycles refuses canonical names that come from each other.
func (c *compiler) cycles() {
	from := map[string][]*source{}
	for _, a := range c.t.attributeList {
		from[a.Name] = a.From
	}
	const visiting, visited = 1, 2
	state := map[string]int{}
	var visit func(name string)
	visit = func(name string) {
		state[name] = visiting
		for _, s := range from[name] {
			switch {
			case from[s.Name] == nil || s.Name == name:
			case state[s.Name] == visiting:
				c.bad(s.at, "%s and %s come from each other", name, s.Name)
			case state[s.Name] == 0:
				visit(s.Name)
			}
		}
		state[name] = visited
	}
	for _, a := range c.t.attributeList {
		if state[a.Name] == 0 {
			visit(a.Name)
		}
	}
}
