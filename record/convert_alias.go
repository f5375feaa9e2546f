package record

import (
	"slices"
	"strings"

	"inquest/record/alias"
)

// NewConverter returns a Converter that adds the canonical name of each
// attribute whose name t knows; with a nil table it adds nothing, as the zero
// value does. What is added stands in [FieldDerived].
//
// The number and the order of rows, and all other fields, do not depend on the
// table, so an entry may be applied again with another one: the stores compare
// rows without what was derived (see [Sent]).
func NewConverter(t *alias.Table) *Converter {
	return &Converter{derive: alias.NewDeriver(t)}
}

// roomForOwn is how many fields a row gains after the derived ones.
const roomForOwn = 1 // [FieldDerived]

// addDerived adds the canonical attributes that the row lacks. It comes after
// all else, so it takes no room from what was sent.
func (c *Converter) addDerived() {
	size := 0
	for _, f := range c.resource.stream {
		size += len(f.Name) + len(f.Value)
	}
	for _, f := range c.fields[c.start:] {
		size += len(f.Name) + len(f.Value)
	}
	c.room = MaxRowSize - size - len(FieldDerived)
	t := &c.texts
	t.scratch = t.scratch[:0]
	c.derive.Derive((*derived)(c))
	c.own(FieldDerived, t.take(t.scratch))
}

// derived is a Converter as [alias.Fields].
type derived Converter

// Value implements [alias.Fields].
func (d *derived) Value(name string) string {
	c := (*Converter)(d)
	return c.valueAt(c.names.find(name).place)
}

// Add implements [alias.Fields]. Names of derived fields are gathered in the
// scratch, separated by commas.
func (d *derived) Add(name, value string) {
	c := (*Converter)(d)
	value = valid(value)
	need := 2*len(name) + 1 + len(value)
	if need > c.room || len(c.fields)-c.start+roomForOwn >= MaxFields || isReserved(name) || isStreamField(name) {
		return
	}
	e := c.names.find(name)
	switch e.place.in {
	case nowhere:
		c.names.set(e, place{inFields, len(c.fields)})
		c.fields = append(c.fields, Field{name, value})
	case inFields: // an empty one
		c.fields[e.place.at].Value = value
	default:
		return
	}
	c.room -= need
	if len(c.texts.scratch) > 0 {
		c.texts.scratch = append(c.texts.scratch, ',')
	}
	c.texts.scratch = append(c.texts.scratch, name...)
}

// Sent removes from the fields of a row, in place, those that were derived of
// others by a table of aliases.
func Sent(fields []Field) []Field {
	k := slices.IndexFunc(fields, func(f Field) bool { return f.Name == FieldDerived })
	if k < 0 {
		return fields
	}
	names := fields[k].Value
	return slices.DeleteFunc(fields, func(f Field) bool { return f.Name == FieldDerived || isListed(names, f.Name) })
}

// isListed tells whether a name is one of those in a list with commas.
func isListed(list, name string) bool {
	for one := range strings.SplitSeq(list, ",") {
		if one == name {
			return true
		}
	}
	return false
}
