package event

import (
	"math/big"
	"reflect"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// types is a set of JSON types. The empty set means all.
type types uint8

const (
	typeNull types = 1 << iota
	typeBool
	typeInt
	typeNumber
	typeString
	typeList
	typeObject
)

func (t types) has(any types) bool { return t == 0 || t&any != 0 }

// node is a part of the schema as the fast path reads it. Where a part has rules
// that it does not know, the node is opaque and the library decides.
type node struct {
	name   string
	attr   string // name of the attribute, where all above it are named too
	role   role
	opaque bool
	types  types

	// Text.
	enum           []string
	excluded       string
	hasExcluded    bool
	minLen, maxLen int // characters; maxLen < 0 is unbounded
	match          func(string) bool
	dateTime       bool

	least, most bound

	// Lists.
	item               *node
	minItems, maxItems int // maxItems < 0 is unbounded

	// Objects.
	id       int // of an object whose whole way from the root is named
	parent   *node
	bit      uint64 // in the parent's set of members
	members  [][]*node
	count    int
	needs    []string // names of required members
	required uint64   // their bits
	closed   bool     // no other members
	rest     *node    // form of other members; nil for any
	mapOf    bool     // other members are no objects, so their names may have dots
}

// anything is a part without rules.
var anything = &node{maxLen: -1, maxItems: -1}

const (
	maxMembers = 62
	others     = uint64(1) << 63 // that an object has members without a node
	maxNesting = 12              // how deep the plan goes
	maxNodes   = 4096            // how large it gets
)

func (n *node) member(name string) *node {
	if len(name) < len(n.members) {
		for _, m := range n.members[len(name)] {
			if m.name == name {
				return m
			}
		}
	}
	return nil
}

// add gives n a member.
func (n *node) add(m *node, name string) {
	m.name = name
	// Such a name cannot be told from a path.
	m.opaque = m.opaque || name == "" || strings.Contains(name, ".")
	n.count++
	n.opaque = n.opaque || n.count > maxMembers
	for len(n.members) <= len(name) {
		n.members = append(n.members, nil)
	}
	n.members[len(name)] = append(n.members[len(name)], m)
}

// left tells whether a schema has rules besides those that were cleared from it.
// A keyword that a later version of the library knows counts as a rule, too.
func left(s jsonschema.Schema) bool {
	s.DraftVersion, s.Location, s.ID, s.Anchor, s.DynamicAnchor = 0, "", "", "", ""
	s.RecursiveAnchor = false
	s.Title, s.Description, s.Comment, s.Default, s.Examples = "", "", "", nil, nil
	s.ReadOnly, s.WriteOnly, s.Deprecated = false, false, false
	v := reflect.ValueOf(s)
	for i := range v.NumField() {
		if f := v.Field(i); v.Type().Field(i).IsExported() && !f.IsZero() {
			if (f.Kind() == reflect.Map || f.Kind() == reflect.Slice) && f.Len() == 0 {
				continue
			}
			return true
		}
	}
	return false
}

// planner compiles a schema into nodes.
type planner struct{ nodes int }

// of compiles s, which lies depth steps below the root.
func (p *planner) of(s *jsonschema.Schema, depth int) *node {
	n := &node{maxLen: -1, maxItems: -1}
	p.nodes++
	if depth > maxNesting || p.nodes > maxNodes {
		n.opaque = true
		return n
	}
	if s.Bool != nil {
		n.opaque = !*s.Bool
		return n
	}
	rest := *s
	n.planText(s, &rest)
	n.planNumber(s, &rest)
	p.list(n, s, &rest, depth)
	p.object(n, s, &rest, depth)
	if s.Types != nil {
		for _, name := range s.Types.ToStrings() {
			n.types |= typeNamed[name]
		}
		rest.Types = nil
	}
	if s.Ref != nil {
		n.merge(p.of(s.Ref, depth+1))
	}
	for _, part := range s.AllOf {
		n.merge(p.of(part, depth+1))
	}
	rest.Ref, rest.AllOf = nil, nil
	n.opaque = n.opaque || left(rest)
	return n
}

var typeNamed = map[string]types{
	"null": typeNull, "boolean": typeBool, "integer": typeInt, "number": typeNumber,
	"string": typeString, "array": typeList, "object": typeObject,
}

func (n *node) planText(s, rest *jsonschema.Schema) {
	if s.Enum != nil && s.Const == nil {
		n.enum = stringsOf(s.Enum.Values)
		n.opaque = n.opaque || n.enum == nil
		rest.Enum = nil
	}
	if s.Const != nil && s.Enum == nil {
		n.enum = stringsOf([]any{*s.Const})
		n.opaque = n.opaque || n.enum == nil
		rest.Const = nil
	}
	if s.Not != nil && s.Not.Const != nil {
		bare := *s.Not
		bare.Const = nil
		if text, ok := (*s.Not.Const).(string); ok && !left(bare) {
			n.excluded, n.hasExcluded, rest.Not = text, true, nil
		}
	}
	if s.MinLength != nil {
		n.minLen, rest.MinLength = *s.MinLength, nil
	}
	if s.MaxLength != nil {
		n.maxLen, rest.MaxLength = *s.MaxLength, nil
	}
	if s.Pattern != nil {
		n.match, rest.Pattern = matcher(s.Pattern), nil
	}
	if s.Format != nil && s.Format.Name == "date-time" {
		n.dateTime, rest.Format = true, nil
	}
}

// stringsOf returns values if all are text, else nil.
func stringsOf(values []any) []string {
	texts := make([]string, len(values))
	for i, v := range values {
		text, ok := v.(string)
		if !ok {
			return nil
		}
		texts[i] = text
	}
	return texts
}

func (n *node) planNumber(s, rest *jsonschema.Schema) {
	n.least.tighten(s.Minimum, false)
	n.most.tighten(s.Maximum, false)
	if s.ExclusiveMinimum != nil && s.Minimum == nil {
		n.least.tighten(s.ExclusiveMinimum, true)
		rest.ExclusiveMinimum = nil
	}
	if s.ExclusiveMaximum != nil && s.Maximum == nil {
		n.most.tighten(s.ExclusiveMaximum, true)
		rest.ExclusiveMaximum = nil
	}
	rest.Minimum, rest.Maximum = nil, nil
}

func (p *planner) list(n *node, s, rest *jsonschema.Schema, depth int) {
	if s.MinItems != nil {
		n.minItems, rest.MinItems = *s.MinItems, nil
	}
	if s.MaxItems != nil {
		n.maxItems, rest.MaxItems = *s.MaxItems, nil
	}
	if s.Items2020 != nil {
		n.item, rest.Items2020 = p.of(s.Items2020, depth+1), nil
	}
}

func (p *planner) object(n *node, s, rest *jsonschema.Schema, depth int) {
	for name, member := range s.Properties {
		n.add(p.of(member, depth+1), name)
	}
	n.needs = s.Required
	switch other := s.AdditionalProperties.(type) {
	case bool:
		n.closed = !other
	case *jsonschema.Schema:
		n.rest = p.of(other, depth+1)
		n.mapOf = n.rest.types != 0 && n.rest.types&typeObject == 0
	}
	rest.Properties, rest.Required, rest.AdditionalProperties = nil, nil, nil
}

// merge makes n ask for all that other asks for, too. Where the two speak about
// one thing n becomes opaque, except for members, which are merged.
func (n *node) merge(other *node) {
	n.opaque = n.opaque || other.opaque || n.closed || other.closed || n.rest != nil || other.rest != nil
	if n.isBare() && n.count == 0 && len(n.needs) == 0 {
		*n = *other
		return
	}
	if n.types == 0 {
		n.types = other.types
	}
	n.opaque = n.opaque || other.types != 0 && n.types != other.types || !other.isBare()
	n.needs = append(slices.Clone(n.needs), other.needs...)
	for _, same := range other.members {
		for _, m := range same {
			if mine := n.member(m.name); mine != nil {
				mine.merge(m)
			} else {
				n.add(m, m.name)
			}
		}
	}
}

// isBare tells that n has no rules but on its type, if it is an object, and on
// its members.
func (n *node) isBare() bool {
	return (n.types == 0 || n.types == typeObject) && n.enum == nil && !n.hasExcluded && n.minLen == 0 && n.maxLen < 0 &&
		n.match == nil && !n.dateTime && !n.least.set && !n.most.set && n.item == nil && n.minItems == 0 && n.maxItems < 0
}

// settle gives the members of n their places, once all are known.
func (n *node) settle() {
	for _, name := range n.needs {
		if n.member(name) == nil {
			n.undescribed(name)
		}
	}
	bit := uint64(1)
	for _, same := range n.members {
		for _, m := range same {
			m.parent, m.bit = n, bit
			bit <<= 1
			m.settle()
		}
	}
	for _, name := range n.needs {
		n.required |= n.member(name).bit
	}
}

// undescribed adds a member of which the schema says nothing but how other
// members look.
func (n *node) undescribed(name string) {
	m := *anything
	m.opaque = n.closed || n.rest != nil
	n.add(&m, name)
}

// bound is an end of a range of numbers.
type bound struct {
	set, exclusive bool
	value          float64
	exact          bool // value is the bound itself, and whole
}

func (b *bound) tighten(r *big.Rat, exclusive bool) {
	if r == nil {
		return
	}
	f, exact := r.Float64()
	*b = bound{set: true, exclusive: exclusive, value: f, exact: exact && isWhole(f)}
}

// plan is the schema as the fast path uses it.
type plan struct {
	root    *node
	byName  [][]*node // leaves by the length of their attribute's name
	objects []*node   // by id, each after the one it lies in
	roles   [numRoles]*node
}

func newPlan(s *jsonschema.Schema) *plan {
	p := &plan{root: new(planner).of(s, 0)}
	if p.root.types.has(typeObject) {
		p.root.types = typeObject // an event is always one
	}
	for r := noRole + 1; r < numRoles; r++ {
		p.describe(r)
	}
	p.root.settle()
	p.place(p.root, "", p.root.opaque)
	return p
}

// describe finds the node of a member that the package reads, and adds it where
// the schema has none.
func (p *plan) describe(r role) {
	n, name := p.root, rolePaths[r]
	if parent, below, nested := strings.Cut(name, "."); nested {
		if n, name = n.member(parent), below; n == nil || n.types != typeObject {
			p.root.opaque = true
			return
		}
	}
	if n.member(name) == nil {
		n.undescribed(name)
	}
	p.roles[r] = n.member(name)
	p.roles[r].role = r
}

// place gives attributes their names and objects their ids. Nothing below an
// opaque node can be found by name.
func (p *plan) place(n *node, path string, hidden bool) {
	n.attr = Prefix + path
	hidden = hidden || n.opaque
	if n.types != typeObject {
		if !hidden && path != "" {
			for len(p.byName) <= len(n.attr) {
				p.byName = append(p.byName, nil)
			}
			p.byName[len(n.attr)] = append(p.byName[len(n.attr)], n)
		}
		hidden = true
	} else if !hidden {
		n.id = len(p.objects)
		p.objects = append(p.objects, n)
	}
	for _, same := range n.members {
		for _, m := range same {
			p.place(m, strings.TrimPrefix(path+"."+m.name, "."), hidden)
		}
	}
}

// leaf returns the node of an attribute by its whole name, or nil.
func (p *plan) leaf(attr string) *node {
	if len(attr) < len(p.byName) {
		for _, n := range p.byName[len(attr)] {
			if n.attr == attr {
				return n
			}
		}
	}
	return nil
}
