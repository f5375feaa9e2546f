package event

// The fast path through JSON text.

// okObject reads an object that n describes, whose attributes' names begin with
// attr. Its brace is next.
func (w *worker) okObject(n *node, attr string, depth int) bool {
	if depth > MaxDepth || n.opaque || !n.types.has(typeObject) || n.enum != nil || !w.scan.take('{') {
		return false
	}
	var seen uint64
	members := 0
	if w.scan.take('}') {
		return w.done(n, attr, seen, members)
	}
	for {
		name, ok := w.scan.name()
		if !ok {
			return false
		}
		members++
		m := n.member(name)
		if m != nil && seen&m.bit != 0 {
			return false
		}
		var at string
		if m != nil {
			seen |= m.bit
			at = attrOf(m, attr, name)
		} else {
			at = attrOf(nil, attr, name)
			if m, ok = w.okExtra(n, at, name); !ok {
				return false
			}
		}
		if !w.okValue(m, at, depth) {
			return false
		}
		switch w.scan.peek() {
		case ',':
			w.scan.i++
		case '}':
			w.scan.i++
			return w.done(n, attr, seen, members)
		default:
			return false
		}
	}
}

// okValue reads the value of a member and keeps it.
func (w *worker) okValue(n *node, attr string, depth int) bool {
	if n.opaque {
		return false
	}
	switch b := w.scan.peek(); b {
	case '"':
		s, ok := w.scan.text()
		return ok && w.okString(n, attr, s)
	case '{':
		return okRole(n) && w.okObject(n, attr, depth+1)
	case '[':
		return okRole(n) && w.okList(n, attr, depth+1)
	default:
		l, ok := w.okScalar(n, b)
		if !ok || !okRole(n) {
			return false
		}
		l.attr = attr
		w.keep(n, l)
		return true
	}
}

// okScalar reads a number, a boolean or null, of which b is the first byte.
func (w *worker) okScalar(n *node, b byte) (leaf, bool) {
	switch b {
	case 't':
		return boolLeaf(true), w.scan.word("true") && n.okBool()
	case 'f':
		return boolLeaf(false), w.scan.word("false") && n.okBool()
	case 'n':
		return leaf{kind: leafNull}, w.scan.word("null") && n.okNull()
	}
	v, ok := w.scan.number()
	switch {
	case !ok:
		return leaf{}, false
	case v.isInt:
		return intLeaf(v.i), n.okInt(v.i)
	default:
		return floatLeaf(v.f), n.okFloat(v.f, v.whole)
	}
}

// okList reads a list of scalars. Its bracket is next.
func (w *worker) okList(n *node, attr string, depth int) bool {
	if depth > MaxDepth || n.opaque || !w.scan.take('[') {
		return false
	}
	item := n.item
	if item == nil {
		item = anything
	}
	if item.opaque {
		return false
	}
	from := len(w.items)
	if !w.scan.take(']') {
		for more := true; more; {
			var l leaf
			var ok bool
			if b := w.scan.peek(); b == '"' {
				l.kind = leafText
				if l.text, ok = w.scan.text(); ok {
					ok = item.okText(l.text)
				}
			} else {
				l, ok = w.okScalar(item, b)
			}
			if !ok {
				return false
			}
			w.items = append(w.items, l)
			switch w.scan.peek() {
			case ',':
			case ']':
				more = false
			default:
				return false
			}
			w.scan.i++
		}
	}
	if !n.okCount(len(w.items) - from) {
		return false
	}
	l := listLeaf(from, len(w.items))
	l.attr = attr
	w.keep(n, l)
	return true
}
