package record

import (
	"hash/maphash"
	"math"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Prefixes of renamed attributes; see the names of fields.
const (
	attributePrefix = "attribute."
	resourcePrefix  = "resource."
	scopePrefix     = "scope.attribute."
)

// ownFields is room kept in each row for the fields that inquest adds, derived
// ones among them.
const ownFields = 64

// MaxAttributes is how many attributes of a record, its resource and its scope
// become fields. The others go to [FieldOverflow].
const MaxAttributes = MaxFields - ownFields

// maxStreamValueSize bounds a value in [Row.Stream], in bytes. The index of
// streams holds small keys only; a longer value is an ordinary field.
const maxStreamValueSize = 1024

// isReserved tells the names that inquest or the store gives.
func isReserved(name string) bool {
	switch name {
	case "", FieldTime, FieldBody, FieldStream, FieldStreamID, FieldType, FieldSeq,
		FieldTraceID, FieldSpanID, FieldParentSpanID, FieldTraceState, FieldFlags,
		FieldSeverity, FieldSeverityNumber, FieldEventName, FieldObservedTime,
		FieldName, FieldSpanKind, FieldStatus, FieldStatusMessage, FieldDuration,
		FieldEvents, FieldLinks, FieldScopeName, FieldScopeVersion,
		FieldValue, FieldLabels, FieldOverflow, FieldDerived,
		FieldDroppedAttributes, FieldDroppedEvents, FieldDroppedLinks:
		return true
	}
	return false
}

func isStreamField(name string) bool {
	for _, s := range StreamFields {
		if s == name {
			return true
		}
	}
	return false
}

// isEscaped tells whether name reads like a renamed attribute. An attribute
// that the sender named so is renamed once more, so no two can meet.
func isEscaped(name string) bool {
	if !strings.HasPrefix(name, attributePrefix) {
		return false
	}
	for strings.HasPrefix(name, attributePrefix) {
		name = name[len(attributePrefix):]
	}
	return isReserved(name) || isStreamField(name)
}

// place says where a name of the row under construction has its value.
type place struct {
	in placeKind
	at int
}

type placeKind uint8

const (
	nowhere placeKind = iota
	inStream
	inFields
	inOverflow
)

// names is a hash table of the names of one row that is emptied in no time.
type names struct {
	seed    maphash.Seed
	round   uint32
	count   int
	entries []nameEntry // a power of two
}

type nameEntry struct {
	round uint32
	place place
	name  string
}

func (n *names) reset() {
	if len(n.entries) == 0 {
		n.seed = maphash.MakeSeed()
		n.entries = make([]nameEntry, 256)
	}
	if n.round == math.MaxUint32 {
		clear(n.entries)
		n.round = 0
	}
	n.round++
	n.count = 0
}

// find returns the entry of name; its place is nowhere when name is new, and
// then the caller fills it in or leaves it.
func (n *names) find(name string) *nameEntry {
	if 2*n.count >= len(n.entries) {
		n.grow()
	}
	mask := uint64(len(n.entries) - 1)
	for i := maphash.String(n.seed, name) & mask; ; i = (i + 1) & mask {
		e := &n.entries[i]
		if e.round != n.round {
			*e = nameEntry{name: name}
			return e
		}
		if e.name == name {
			return e
		}
	}
}

// set gives the entry that find returned its place.
func (n *names) set(e *nameEntry, p place) {
	if e.place.in == nowhere {
		e.round = n.round
		n.count++
	}
	e.place = p
}

func (n *names) grow() {
	old, round := n.entries, n.round
	n.entries = make([]nameEntry, 2*len(old))
	for i := range old {
		if old[i].round == round {
			*n.find(old[i].name) = old[i]
		}
	}
}

// owner is a resource or scope, read once for all its records.
type owner struct {
	stream []Field
	fields []Field
	name   string
	vers   string
}

// list reads attributes that many records share: no name twice, no value empty.
func (c *Converter) list(dst []Field, attrs pcommon.Map, prefix string) []Field {
	start := len(dst)
	c.names.reset()
	empty := false
	for name, v := range attrs.All() {
		name, value := prefix+valid(name), c.texts.value(v)
		empty = empty || value == ""
		if e := c.names.find(name); e.place.in != nowhere {
			dst[e.place.at].Value = value
		} else {
			c.names.set(e, place{inFields, len(dst)})
			dst = append(dst, Field{name, value})
		}
	}
	if empty {
		dst = dst[:start+len(present(dst[start:]))]
	}
	return dst
}

// present removes fields without a value, in place.
func present(fields []Field) []Field {
	kept := fields[:0]
	for _, f := range fields {
		if f.Value != "" {
			kept = append(kept, f)
		}
	}
	return kept
}

func (c *Converter) setResource(t Type, attrs pcommon.Map) {
	o := &c.resource
	all := c.list(o.fields[:0], attrs, "")
	if c.derive != nil {
		c.derive.ResetShared()
		for i := range all {
			c.derive.SeeShared(all[i].Name, all[i].Value)
		}
	}
	stream := append(make([]Field, 0, len(StreamFields)+1), Field{FieldType, string(t)})
	o.fields = all[:0]
	for _, f := range all {
		if isStreamField(f.Name) && len(f.Value) <= maxStreamValueSize {
			stream = append(stream, f)
			continue
		}
		if isReserved(f.Name) {
			f.Name = resourcePrefix + f.Name
		}
		o.fields = append(o.fields, f)
	}
	sortFields(stream)
	o.stream = stream
}

func (c *Converter) setScope(s pcommon.InstrumentationScope) {
	c.scope.fields = c.list(c.scope.fields[:0], s.Attributes(), scopePrefix)
	c.scope.name, c.scope.vers = valid(s.Name()), valid(s.Version())
}

// sortFields sorts a handful of fields by name.
func sortFields(fields []Field) {
	for i := 1; i < len(fields); i++ {
		for j := i; j > 0 && fields[j].Name < fields[j-1].Name; j-- {
			fields[j], fields[j-1] = fields[j-1], fields[j]
		}
	}
}

// begin starts a row of the current resource.
func (c *Converter) begin() {
	c.names.reset()
	c.start, c.taken, c.holes = len(c.fields), 0, false
	c.overflow = c.overflow[:0]
	if c.derive != nil {
		c.derive.Reset()
	}
	for i := range c.resource.stream {
		e := c.names.find(c.resource.stream[i].Name)
		c.names.set(e, place{inStream, i})
	}
	c.fields = append(c.fields, Field{FieldSeq, c.seq})
}

// own adds a field that inquest names; see isReserved.
func (c *Converter) own(name, value string) {
	if value != "" {
		c.fields = append(c.fields, Field{name, value})
	}
}

// attributes adds a record's own attributes. Of two with one name the last counts.
func (c *Converter) attributes(attrs pcommon.Map) {
	for name, v := range attrs.All() {
		value := c.texts.value(v)
		name = valid(name)
		if c.derive != nil && c.derive.Table().Maybe(name) {
			c.derive.See(name, value, v.Type() == pcommon.ValueTypeStr)
		}
		if isReserved(name) || name[0] == 'a' && isEscaped(name) {
			name = attributePrefix + name
		}
		e := c.names.find(name)
		if e.place.in == inStream {
			name = attributePrefix + name
			if same := c.resource.stream[e.place.at].Value == value; same && c.names.find(name).place.in == nowhere {
				continue
			}
			e = c.names.find(name)
		}
		c.put(e, name, value)
	}
}

// put adds a field, or changes the value of the one that has the name.
func (c *Converter) put(e *nameEntry, name, value string) {
	switch e.place.in {
	case inFields:
		c.fields[e.place.at].Value = value
		c.holes = c.holes || value == ""
	case inOverflow:
		c.overflow[e.place.at].Value = value
	default:
		if value == "" {
			return
		}
		if c.taken >= MaxAttributes || len(name) > MaxNameSize {
			c.names.set(e, place{inOverflow, len(c.overflow)})
			c.overflow = append(c.overflow, Field{name, value})
			return
		}
		c.taken++
		c.names.set(e, place{inFields, len(c.fields)})
		c.fields = append(c.fields, Field{name, value})
	}
}

// shared adds attributes of the resource or scope. One whose name a record's
// attribute has with another value gets the prefix.
func (c *Converter) shared(fields []Field, prefix string) {
	for _, f := range fields {
		for {
			e := c.names.find(f.Name)
			if e.place.in == nowhere || c.valueAt(e.place) == "" {
				c.put(e, f.Name, f.Value)
				break
			}
			if c.valueAt(e.place) == f.Value {
				break
			}
			f.Name = prefix + f.Name
		}
	}
}

func (c *Converter) valueAt(p place) string {
	switch p.in {
	case inStream:
		return c.resource.stream[p.at].Value
	case inFields:
		return c.fields[p.at].Value
	case inOverflow:
		return c.overflow[p.at].Value
	}
	return ""
}

// finish ends the row: what its resource and scope say, and the overflow.
func (c *Converter) finish(t int64) {
	c.shared(c.resource.fields, resourcePrefix)
	c.own(FieldScopeName, c.scope.name)
	c.own(FieldScopeVersion, c.scope.vers)
	c.shared(c.scope.fields, scopePrefix)
	if len(c.overflow) > 0 {
		b := append(c.texts.scratch[:0], '{')
		for _, f := range c.overflow {
			if f.Value == "" {
				continue
			}
			if len(b) > 1 {
				b = append(b, ',')
			}
			b = append(appendQuoted(b, f.Name), ':')
			b = appendQuoted(b, f.Value)
		}
		b = append(b, '}')
		c.texts.scratch = b
		if len(b) > len("{}") {
			c.own(FieldOverflow, c.texts.take(b))
		}
	}
	if c.derive != nil && c.derive.Any() {
		c.addDerived()
	}
	if c.holes {
		c.fields = c.fields[:c.start+len(present(c.fields[c.start:]))]
	}
	c.rows = append(c.rows, Row{Time: t, Stream: c.resource.stream, Fields: c.fields[c.start:len(c.fields):len(c.fields)]})
}
