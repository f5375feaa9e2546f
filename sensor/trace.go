package sensor

import (
	"cmp"
	"slices"
)

// Trace is one request's spans as a tree.
type Trace struct {
	ID         string
	Start, End int64
	Nodes      []*Node // by start
	Visits     []*Visit
	Logs       int
	byID       map[string]*Node
}

// Node is a span in its trace.
type Node struct {
	Span
	Above    *Node // nil for a root, or when the parent is not in the window
	Children []*Node
	Visit    *Visit
	// Self is the part of the duration that no child covers, ns.
	Self int64
}

// Visit is one stay of a request in a service: the spans from where it entered
// to where it left, and what was logged on the way.
type Visit struct {
	Service, Pod, Host string
	Entry              *Node
	Caller             *Visit // nil for the first
	Nodes              []*Node
	Logs               []Log
}

// newTrace builds the tree. spans are of one trace, by start, the longer first.
func newTrace(spans []Span) *Trace {
	t := &Trace{ID: spans[0].TraceID, Start: spans[0].Start, byID: make(map[string]*Node, len(spans))}
	for i := range spans {
		s := spans[i]
		if _, twice := t.byID[s.SpanID]; twice && s.SpanID != "" {
			continue // a retried export
		}
		n := &Node{Span: s}
		t.Nodes = append(t.Nodes, n)
		t.byID[s.SpanID] = n
		t.Start = min(t.Start, s.Start)
		t.End = max(t.End, s.End())
	}
	for _, n := range t.Nodes {
		// A span that is its own ancestor would make a ring; such a parent is
		// not believed.
		if p := t.byID[n.Parent]; p != nil && n.Parent != "" && !within(p, n) {
			n.Above = p
			p.Children = append(p.Children, n)
		}
	}
	for _, n := range t.Nodes {
		n.Self = selfTime(n)
		if n.Above == nil {
			t.visit(n)
		}
	}
	return t
}

func within(p, n *Node) bool {
	for ; p != nil; p = p.Above {
		if p == n {
			return true
		}
	}
	return false
}

// visit assigns n and everything below it to visits, without recursion: traces
// of hostile depth exist.
func (t *Trace) visit(root *Node) {
	stack := []*Node{root}
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if n.Above == nil || n.Above.Service != n.Service {
			v := &Visit{Service: n.Service, Pod: n.Pod, Host: n.Node(), Entry: n}
			if n.Above != nil {
				v.Caller = n.Above.Visit
			}
			n.Visit = v
			t.Visits = append(t.Visits, v)
		} else {
			n.Visit = n.Above.Visit
		}
		n.Visit.Nodes = append(n.Visit.Nodes, n)
		for i := len(n.Children) - 1; i >= 0; i-- {
			stack = append(stack, n.Children[i])
		}
	}
}

// Node returns the name of the machine.
func (n *Node) Node() string { return n.Span.Node }

// attach adds a log record to the visit in which it was written.
func (t *Trace) attach(l Log) bool {
	var v *Visit
	if n := t.byID[l.SpanID]; n != nil {
		v = n.Visit
	}
	if v == nil || v.Service != l.Service {
		// No span, or one of another service: the latest visit of the service
		// that had begun.
		v = nil
		for _, c := range t.Visits {
			if c.Service == l.Service && (v == nil || c.Entry.Start <= l.Time && c.Entry.Start > v.Entry.Start) {
				v = c
			}
		}
	}
	if v == nil {
		return false
	}
	v.Logs = append(v.Logs, l)
	t.Logs++
	return true
}

// Owner returns the name of the span in which l was written, empty when unknown.
func (t *Trace) Owner(l *Log) string {
	if n := t.byID[l.SpanID]; n != nil {
		return n.Name
	}
	return ""
}

// selfTime is the duration less the union of the children's intervals, which may
// overlap (parallel calls) and stick out (clock skew, work left behind).
func selfTime(n *Node) int64 {
	if len(n.Children) == 0 {
		return n.Duration
	}
	kids := slices.Clone(n.Children)
	slices.SortFunc(kids, func(a, b *Node) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.SpanID, b.SpanID))
	})
	covered, upTo := int64(0), n.Start
	for _, k := range kids {
		from, to := max(k.Start, upTo), min(k.End(), n.End())
		if to > from {
			covered += to - from
			upTo = to
		}
	}
	return n.Duration - covered
}

// Remote returns the visits of other services that n called.
func (n *Node) Remote() []*Visit {
	var out []*Visit
	for _, c := range n.Children {
		if c.Visit != n.Visit {
			out = append(out, c.Visit)
		}
	}
	return out
}
