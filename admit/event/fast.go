package event

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
)

// MaxDepth is how deep objects and lists may lie in one another in an event.
const MaxDepth = 32

// maxExtras is how many members that the schema does not name the fast path
// compares with one another.
const maxExtras = 24

// worker is the memory of one check. Its methods named ok… walk an event and
// return false for what the library has to decide.
type worker struct {
	plan   *plan
	facts  facts
	leaves []leaf
	items  []leaf   // of lists
	others []any    // what is neither a scalar nor a list of them
	extras []string // attributes without a node, objects among them
	seen   []uint64 // by id of the object
	scan   scanner
	form   form
	trace  pcommon.TraceID // that the event gave
	span   pcommon.SpanID
}

// form is the way in which an event came.
type form uint8

const (
	attributeForm form = iota
	bodyForm
)

func (w *worker) reset(p *plan) {
	w.plan, w.facts = p, facts{}
	w.leaves, w.items, w.extras = w.leaves[:0], w.items[:0], w.extras[:0]
	clear(w.others)
	w.others = w.others[:0]
	if cap(w.seen) < len(p.objects) {
		w.seen = make([]uint64, len(p.objects))
	}
	w.seen = w.seen[:len(p.objects)]
	clear(w.seen)
	w.scan = scanner{}
}

// fast checks an event by the plan. When it returns true the event is valid, and
// facts and leaves hold what the stored form takes.
func (w *worker) fast(resource pcommon.Resource, lr plog.LogRecord) bool {
	root := w.plan.root
	if root.opaque || len(w.plan.objects) == 0 {
		return false
	}
	body := lr.Body()
	flat := hasAttributes(lr.Attributes())
	if isObject(body) {
		// An event of two parts is for the library.
		if flat {
			return false
		}
		w.form = bodyForm
		if body.Type() == pcommon.ValueTypeMap {
			return w.okMap(root, "", body.Map(), 1) && w.okFilled(resource, lr)
		}
		return w.okJSON(body.Str()) && w.okFilled(resource, lr)
	}
	w.form = attributeForm
	return w.okFlat(lr.Attributes()) && w.okFilled(resource, lr)
}

func (w *worker) okJSON(s string) bool {
	var ok bool
	if w.scan, ok = newScanner(s); !ok {
		return false
	}
	return w.okObject(w.plan.root, "", 1) && w.scan.peek() == 0 && w.scan.i == len(s)
}

// okFilled adds what the event lacks and the log record has, and looks for the
// members that the root requires.
func (w *worker) okFilled(resource pcommon.Resource, lr plog.LogRecord) bool {
	root := w.plan.root
	w.facts.fillFrom(resource, lr, w.form)
	for r := noRole + 1; r < numRoles; r++ {
		if !w.facts.filled[r] {
			continue
		}
		n := w.plan.roles[r]
		if n == nil || n.opaque {
			return false
		}
		if r == roleTimestamp {
			// Any time of a log record is a date-time, so it is not written out.
			if !n.isTime() {
				return false
			}
		} else if !n.okText(w.facts.value[r]) {
			return false
		}
		w.seen[root.id] |= n.bit
	}
	return root.required&^w.seen[root.id] == 0
}

// keep notes an accepted member as an attribute, and for the package itself.
func (w *worker) keep(n *node, l leaf) {
	l.role = n.role
	if n.role != noRole {
		w.facts.give(n.role, l.text)
		if n.role.onRecord() {
			return
		}
	}
	w.leaves = append(w.leaves, l)
}

// okRole tells whether a value of another kind than text may stand in n: the
// members that the package itself reads are text.
func okRole(n *node) bool { return n.role == noRole }

func (w *worker) okString(n *node, attr, s string) bool {
	if !n.okText(s) {
		return false
	}
	if n.role == roleTimestamp {
		var ok bool
		if w.facts.time, ok = parseTime(s); !ok {
			return false
		}
	}
	w.keep(n, leaf{attr: attr, kind: leafText, text: s})
	return true
}

// okExtra tells whether a member that n does not name may have that name, and
// its form. It refuses what could meet another member's attribute.
func (w *worker) okExtra(n *node, attr, name string) (*node, bool) {
	if n.closed || name == "" || !n.mapOf && strings.IndexByte(name, '.') >= 0 || len(w.extras) == maxExtras {
		return nil, false
	}
	for _, other := range w.extras {
		if other == attr {
			return nil, false
		}
	}
	w.extras = append(w.extras, attr)
	if n.rest != nil {
		return n.rest, !n.rest.opaque
	}
	return anything, true
}

// attrOf returns the attribute's name of a member of the object at attr.
func attrOf(m *node, attr, name string) string {
	switch {
	case m != nil && m.attr != "":
		return m.attr
	case attr == "":
		return Prefix + name
	}
	return attr + "." + name
}

// done ends an object: all that it requires must have been seen.
func (w *worker) done(n *node, attr string, seen uint64, members int) bool {
	if n == w.plan.root {
		w.seen[n.id] = seen
		return true // okFilled looks for the required ones
	}
	if members == 0 {
		w.leaves = append(w.leaves, leaf{attr: attr, kind: leafObject})
	}
	return n.required&^seen == 0
}
