package event

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// flatten turns a valid view into facts and leaves. What was filled in is the
// log record's own and stays there.
func (w *worker) flatten(view map[string]any) *Reason {
	w.facts.given = [numRoles]bool{}
	return w.flattenObject(view, "", map[string]bool{})
}

func (w *worker) flattenObject(m map[string]any, path string, taken map[string]bool) *Reason {
	for _, name := range sortedNames(m) {
		at, v := join(path, name), m[name]
		r := roleOf(at)
		if path == "" && name == "" {
			at = "" // the attribute is the prefix alone
		}
		if w.facts.filled[r] {
			continue
		}
		if members, ok := v.(map[string]any); ok && len(members) > 0 {
			if why := w.flattenObject(members, at, taken); why != nil {
				return why
			}
			continue
		}
		if taken[at] {
			return &Reason{Code: CodeConflict, Detail: fmt.Sprintf("two members give the attribute %s: rename the one whose name has a dot", quoted(Prefix+at))}
		}
		taken[at] = true
		text, isText := v.(string)
		if r != noRole && isText {
			if !r.onRecord() {
				w.facts.give(r, text)
			} else if fitsRecord(r, text) {
				w.facts.give(r, text)
				continue
			}
		}
		w.leaves = append(w.leaves, w.leafOf(Prefix+at, r, v))
	}
	return nil
}

func roleOf(path string) role {
	for r := noRole + 1; r < numRoles; r++ {
		if rolePaths[r] == path {
			return r
		}
	}
	return noRole
}

func (w *worker) leafOf(attr string, r role, v any) leaf {
	var l leaf
	switch v := v.(type) {
	case nil:
		l.kind = leafNull
	case string:
		l.kind, l.text = leafText, v
	case bool:
		l = boolLeaf(v)
	case int64:
		l = intLeaf(v)
	case float64:
		l = floatLeaf(v)
	case json.Number:
		if n := literalOf(v); n.isInt {
			l = intLeaf(n.i)
		} else {
			l = floatLeaf(n.f)
		}
	case map[string]any: // an empty one: others are flattened
		l.kind = leafObject
	default:
		l.kind, l.bits = leafOther, uint64(len(w.others))
		w.others = append(w.others, v)
	}
	l.attr, l.role = attr, r
	return l
}

// fitsRecord tells whether the log record can hold a member. Only a user's own
// schema lets through an id that it cannot.
func fitsRecord(r role, text string) bool {
	switch r {
	case roleTraceID:
		id, ok := decodeID[[16]byte](text)
		return ok && id != [16]byte{}
	case roleSpanID:
		id, ok := decodeID[[8]byte](text)
		return ok && id != [8]byte{}
	}
	return true
}

// decodeID reads hexadecimal digits into an array.
func decodeID[T [16]byte | [8]byte](s string) (id T, ok bool) {
	if len(s) != 2*len(id) {
		return id, false
	}
	var b [16]byte
	n, err := hex.Decode(b[:], []byte(s))
	for i := range n {
		id[i] = b[i]
	}
	return id, err == nil
}

// decode reads the ids that the event gave. It returns false when the log record
// cannot hold one.
func (w *worker) decode() bool {
	ok := true
	if w.facts.given[roleTraceID] {
		w.trace, ok = decodeID[[16]byte](w.facts.value[roleTraceID])
		ok = ok && w.trace != [16]byte{}
	}
	if ok && w.facts.given[roleSpanID] {
		w.span, ok = decodeID[[8]byte](w.facts.value[roleSpanID])
		ok = ok && w.span != [8]byte{}
	}
	return ok
}
