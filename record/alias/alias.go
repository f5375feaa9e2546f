// Package alias knows the names that AI-serving stacks give to one and the same
// thing, and derives the canonical one: OpenTelemetry's GenAI conventions of
// all generations, OpenInference, OpenLLMetry, and the metrics of vLLM, SGLang,
// TGI, Triton and DCGM.
//
// The names are in aliases.yaml, which is part of the program; a user's file of
// the same form is merged on top. What is derived is added beside what was
// sent, never in its place: see [Deriver] for attributes and [Table.Canonical]
// for metrics. docs/aliases.md shows the whole table.
package alias

import (
	_ "embed"
	"fmt"
	"os"
)

//go:embed aliases.yaml
var embedded []byte

// embeddedName is how errors call the embedded file.
const embeddedName = "aliases.yaml"

// MaxFile bounds a user's file, in bytes.
const MaxFile = 1 << 20

// Type is what a canonical attribute or metric holds.
type Type string

// Types of attributes.
const (
	String Type = "string"
	Int    Type = "int"
	Double Type = "double"
	Bool   Type = "bool"
	// Strings is a JSON array of strings.
	Strings Type = "strings"
	// Objects is a JSON array of objects.
	Objects Type = "objects"
	// Messages is a JSON array of messages as OpenTelemetry's GenAI conventions
	// shape them: role, parts, finish_reason.
	Messages Type = "messages"
)

// Types of metrics.
const (
	Gauge     Type = "gauge"
	Counter   Type = "counter"
	Histogram Type = "histogram"
)

// Target is a canonical name that a dialect's name leads to.
type Target struct {
	Name    string // canonical
	Dialect string
	Type    Type
	Unit    string // UCUM, as OpenTelemetry writes it; empty when there is none
}

// Table is a set of aliases. It never changes after it is made, so all methods
// may be called concurrently. A nil Table knows no names.
type Table struct {
	filter  filter
	exact   map[string]*names
	indexed []indexGroup
	metrics map[string][]*metricSource
	// lists of the canonical names in their order, for documentation
	attributeList []*attribute
	metricList    []*metric
	dialects      []dialect
}

// names is what one attribute's name leads to.
type names struct {
	at      index // of a plain name
	sources []*source
	targets []Target
}

// Default returns the table that is part of the program.
func Default() *Table {
	t, err := Parse("", nil)
	if err != nil {
		return nil // the tests of this package keep it from happening
	}
	return t
}

// Load returns the table that is part of the program with the file at path
// merged on top, or without when path is empty.
func Load(path string) (*Table, error) {
	if path == "" {
		return Parse("", nil)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read aliases: %w", err)
	}
	if info.Size() > MaxFile {
		return nil, fmt.Errorf("cannot read aliases: %s has %d bytes; at most %d are read", path, info.Size(), MaxFile)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read aliases: %w", err)
	}
	return Parse(path, data)
}

// Parse is [Load] for a file in memory; name is what errors call it.
func Parse(name string, data []byte) (*Table, error) {
	own, err := decodeFile(embeddedName, embedded)
	if err != nil {
		return nil, err
	}
	if len(data) > MaxFile {
		return nil, fmt.Errorf("cannot read aliases: %s has %d bytes; at most %d are read", name, len(data), MaxFile)
	}
	if len(data) > 0 {
		user, err := decodeFile(name, data)
		if err != nil {
			return nil, err
		}
		own, err = merge(own, user)
		if err != nil {
			return nil, err
		}
	}
	return compile(own)
}

// Attribute returns the canonical names that an attribute's name leads to; nil
// when there is none. It allocates nothing.
func (t *Table) Attribute(name string) []Target {
	if t == nil || !t.Maybe(name) {
		return nil
	}
	n, _ := t.find(name)
	if n == nil {
		return nil
	}
	return n.targets
}

// Metric returns the canonical metrics that a metric's name leads to; nil when
// there is none. A name may lead to several, each from other points.
func (t *Table) Metric(name string) []Target {
	if t == nil {
		return nil
	}
	var out []Target
	for _, s := range t.metrics[name] {
		out = append(out, Target{s.canonical.Name, s.Dialect, s.canonical.Type, s.canonical.Unit})
	}
	return out
}

// index is where the numbers of an indexed name stand; -1 where there is none.
type index struct{ i, j int }

func (t *Table) find(name string) (*names, index) {
	if n := t.exact[name]; n != nil {
		return n, n.at
	}
	for k := range t.indexed {
		if n, at := t.indexed[k].find(name); n != nil {
			return n, at
		}
	}
	return nil, index{}
}

// Maybe is false for nearly all names that have no alias. It costs a few
// nanoseconds, which is what the attributes of ordinary records pay.
func (t *Table) Maybe(name string) bool {
	return len(name) >= minName && t.filter.lengths[name[0]]>>min(len(name), 63)&1 != 0 && t.filter.has(name)
}

// minName is the length of the shortest name that can have an alias.
const minName = 4

// filter holds bits of the names that have an alias: of their lengths by first
// byte, of whole names by length and both ends, of the heads of indexed names.
type filter struct {
	lengths [256]uint64
	whole   [64]uint64
	head    [16]uint64
}

func (f *filter) has(name string) bool {
	b := wholeBit(name)
	if f.whole[b/64]>>(b%64)&1 != 0 {
		return true
	}
	b = headBit(name)
	return f.head[b/64]>>(b%64)&1 != 0
}

func (f *filter) addName(name string) {
	f.lengths[name[0]] |= 1 << min(len(name), 63)
	b := wholeBit(name)
	f.whole[b/64] |= 1 << (b % 64)
}

// addHead adds all names that begin with head.
func (f *filter) addHead(head string) {
	f.lengths[head[0]] |= ^uint64(0) << min(len(head), 63)
	b := headBit(head)
	f.head[b/64] |= 1 << (b % 64)
}

func wholeBit(name string) uint32 {
	first, last := load(name), load(name[len(name)-minName:])
	return (first ^ last*0x85ebca6b ^ uint32(len(name))*0xc2b2ae35) * 0x9e3779b1 >> 20
}

// headBit looks at the first eight bytes, or at four of a short name.
func headBit(name string) uint32 {
	h := load(name)
	if len(name) >= 2*minName {
		h ^= load(name[minName:]) * 0x85ebca6b
	}
	return h * 0x9e3779b1 >> 22
}

func load(s string) uint32 {
	_ = s[3]
	return uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
}
