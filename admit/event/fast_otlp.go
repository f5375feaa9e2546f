package event

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// The fast path through OTLP values.

// okMap checks an object given as an OTLP map; see okObject.
func (w *worker) okMap(n *node, attr string, m pcommon.Map, depth int) bool {
	if depth > MaxDepth || n.opaque || !n.types.has(typeObject) || n.enum != nil {
		return false
	}
	var seen uint64
	for name, v := range m.All() {
		child := n.member(name)
		if child != nil && seen&child.bit != 0 {
			return false
		}
		at := attrOf(child, attr, name)
		if child != nil {
			seen |= child.bit
		} else {
			var ok bool
			if child, ok = w.okExtra(n, at, name); !ok {
				return false
			}
		}
		if child.opaque {
			return false
		}
		if v.Type() == pcommon.ValueTypeMap {
			if !okRole(child) || !w.okMap(child, at, v.Map(), depth+1) {
				return false
			}
			continue
		}
		l, ok := w.okOTLP(child, at, v)
		if !ok {
			return false
		}
		if l.kind != leafText {
			l.attr = at
			w.keep(child, l)
		}
	}
	return w.done(n, attr, seen, m.Len())
}

// okOTLP checks a value that is no map. Text is kept at once, what else there is
// is returned.
func (w *worker) okOTLP(n *node, attr string, v pcommon.Value) (leaf, bool) {
	if v.Type() == pcommon.ValueTypeStr {
		return leaf{kind: leafText}, w.okString(n, attr, v.Str())
	}
	if !okRole(n) {
		return leaf{}, false
	}
	if v.Type() == pcommon.ValueTypeSlice {
		return w.okSlice(n, v.Slice())
	}
	return okOTLPScalar(n, v)
}

func okOTLPScalar(n *node, v pcommon.Value) (leaf, bool) {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return leaf{kind: leafText, text: v.Str()}, n.okText(v.Str())
	case pcommon.ValueTypeInt:
		return intLeaf(v.Int()), n.okInt(v.Int())
	case pcommon.ValueTypeDouble:
		f := v.Double()
		return floatLeaf(f), n.okFloat(f, isWhole(f))
	case pcommon.ValueTypeBool:
		return boolLeaf(v.Bool()), n.okBool()
	case pcommon.ValueTypeEmpty:
		return leaf{kind: leafNull}, n.okNull()
	}
	return leaf{}, false
}

func (w *worker) okSlice(n *node, list pcommon.Slice) (leaf, bool) {
	item := n.item
	if item == nil {
		item = anything
	}
	if item.opaque || !n.okCount(list.Len()) {
		return leaf{}, false
	}
	from := len(w.items)
	for _, v := range list.All() {
		l, ok := okOTLPScalar(item, v)
		if !ok {
			return leaf{}, false
		}
		w.items = append(w.items, l)
	}
	return listLeaf(from, len(w.items)), true
}

// okFlat checks attributes named by the path. They are stored as they are, so it
// keeps only those that are written otherwise.
func (w *worker) okFlat(attrs pcommon.Map) bool {
	for attr, v := range attrs.All() {
		if !strings.HasPrefix(attr, Prefix) {
			continue
		}
		n := w.plan.leaf(attr)
		if n != nil {
			if w.seen[n.parent.id]&n.bit != 0 {
				return false
			}
			w.seen[n.parent.id] |= n.bit
		} else {
			var ok bool
			if n, ok = w.okPath(attr); !ok {
				return false
			}
		}
		if n.opaque || !w.okAttribute(n, attr, v) {
			return false
		}
	}
	objects := w.plan.objects
	for id := len(objects) - 1; id > 0; id-- {
		n := objects[id]
		if w.seen[id] == 0 {
			continue
		}
		if n.required&^w.seen[id] != 0 {
			return false
		}
		w.seen[n.parent.id] |= n.bit
	}
	return true
}

// okAttribute checks one attribute's value.
func (w *worker) okAttribute(n *node, attr string, v pcommon.Value) bool {
	if v.Type() != pcommon.ValueTypeStr {
		if !okRole(n) {
			return false
		}
		// Nothing has to be kept, so no item either.
		from := len(w.items)
		_, ok := w.okOTLP(n, attr, v)
		w.items = w.items[:from]
		return ok
	}
	s := v.Str()
	if n.types != 0 && n.types&(typeString|typeList) == typeList && strings.HasPrefix(s, "[") {
		var ok bool
		w.scan, ok = newScanner(s)
		return ok && w.okList(n, attr, 2) && w.scan.peek() == 0 && w.scan.i == len(s)
	}
	if !n.okText(s) {
		return false
	}
	if n.role != noRole {
		if n.role == roleTimestamp {
			var ok bool
			if w.facts.time, ok = parseTime(s); !ok {
				return false
			}
		}
		w.facts.give(n.role, s)
	}
	return true
}

// okPath finds the form of an attribute that the schema does not name in full.
func (w *worker) okPath(attr string) (*node, bool) {
	n, rest := w.plan.root, attr[len(Prefix):]
	for {
		name, below, nested := strings.Cut(rest, ".")
		m := n.member(name)
		if m == nil {
			break
		}
		if !nested || m.opaque || m.types != typeObject {
			return nil, false
		}
		n, rest = m, below
	}
	if n.opaque || n.closed || len(w.extras) == maxExtras || n.rest != nil && (n.rest.opaque || !n.mapOf) {
		return nil, false
	}
	if rest == "" || !n.mapOf && (rest[0] == '.' || rest[len(rest)-1] == '.' || strings.Contains(rest, "..") ||
		strings.Count(rest, ".") >= MaxDepth-maxNesting) {
		return nil, false
	}
	for _, other := range w.extras {
		if attr == other || isBelow(attr, other) || isBelow(other, attr) {
			return nil, false
		}
	}
	w.extras = append(w.extras, attr)
	w.seen[n.id] |= others
	if n.mapOf {
		return n.rest, true
	}
	return anything, true
}

// isBelow tells whether an attribute's path lies within another's.
func isBelow(attr, parent string) bool {
	return len(attr) > len(parent) && attr[len(parent)] == '.' && strings.HasPrefix(attr, parent)
}
