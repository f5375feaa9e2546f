package alias

import (
	"slices"
	"strings"
)

// Fields is a record that canonical attributes are added to.
type Fields interface {
	// Value returns what the record has under a name; empty when nothing.
	Value(name string) string
	// Add adds a canonical attribute that the record does not have. It may
	// refuse one for want of room.
	Add(name, value string)
}

// Deriver derives the canonical attributes of one record after the other:
// [Deriver.Reset], [Deriver.See] for each attribute, [Deriver.Derive]. The same
// attributes and the same table give the same canonical ones in the same order.
// It is used by one goroutine.
type Deriver struct {
	table  *Table
	own    []hit // of the record
	shared []hit // of its resource
	todo   []candidate
	fields Fields
	parsed parsed
}

// hit is an attribute whose name has an alias.
type hit struct {
	names *names
	at    index
	value string
	text  bool // the value is a string, else it is JSON
	own   bool // of the record, not of its resource
}

// candidate is one way to a canonical attribute.
type candidate struct {
	source *source
	hit    hit
}

// NewDeriver returns a Deriver of a table; nil for a nil table.
func NewDeriver(t *Table) *Deriver {
	if t == nil {
		return nil
	}
	return &Deriver{table: t}
}

// Table is the table that the Deriver works with.
func (d *Deriver) Table() *Table { return d.table }

// Reset begins a record of the same resource.
func (d *Deriver) Reset() { d.own = d.own[:0] }

// ResetShared begins a resource.
func (d *Deriver) ResetShared() { d.shared = d.shared[:0] }

// See takes note of an attribute of the record under the name that its sender
// gave. text tells that the value is a string; else it is written as JSON. Of
// two with one name the last counts.
func (d *Deriver) See(name, value string, text bool) {
	if n, at := d.table.find(name); n != nil {
		d.own = append(d.own, hit{n, at, value, text, true})
	}
}

// SeeShared takes note of an attribute of the resource; a record's own go
// before it.
func (d *Deriver) SeeShared(name, value string) {
	if !d.table.Maybe(name) {
		return
	}
	if n, at := d.table.find(name); n != nil {
		d.shared = append(d.shared, hit{n, at, value, true, false})
	}
}

// Any tells whether there is something to derive.
func (d *Deriver) Any() bool { return len(d.own)+len(d.shared) > 0 }

// Derive adds to f the canonical attributes that it lacks. Of several sources
// the one that stands first in the table counts.
func (d *Deriver) Derive(f Fields) {
	d.fields = f
	d.todo = d.todo[:0]
	for _, hits := range [][]hit{d.own, d.shared} {
		for _, h := range hits {
			for _, s := range h.names.sources {
				d.todo = append(d.todo, candidate{s, h})
			}
		}
	}
	slices.SortStableFunc(d.todo, func(a, b candidate) int { return a.source.rank - b.source.rank })
	for rest := d.todo; len(rest) > 0; {
		a := rest[0].source.canonical
		n := 1
		for n < len(rest) && rest[n].source.canonical == a {
			n++
		}
		if f.Value(a.Name) == "" {
			if v, ok := d.value(a, rest[:n]); ok {
				f.Add(a.Name, v)
			}
		}
		rest = rest[n:]
	}
	clear(d.todo)
	d.parsed.reset()
	d.fields = nil
}

// value returns the canonical value that the first usable candidate gives.
func (d *Deriver) value(a *attribute, todo []candidate) (string, bool) {
	if a.Type == Objects || a.Type == Messages {
		return d.compose(a, todo)
	}
	for len(todo) > 0 {
		c := todo[0]
		// The record's own come first, in their order; the last of them counts.
		n := 1
		for n < len(todo) && todo[n].source == c.source {
			if todo[n].hit.own {
				c = todo[n]
			}
			n++
		}
		if d.holds(c.source.When) {
			if v, ok := d.convert(c.source, c.hit); ok {
				return v, true
			}
		}
		todo = todo[n:]
	}
	return "", false
}

// holds tells whether the record has the attributes of a condition.
func (d *Deriver) holds(when map[string]string) bool {
	for name, want := range when {
		got := d.fields.Value(name)
		if got == "" || want != "" && !strings.EqualFold(got, want) {
			return false
		}
	}
	return true
}
