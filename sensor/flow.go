package sensor

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
	"sync"

	"inquest/record"
)

// EventKind says what sort of step an event is.
type EventKind uint8

// The kinds of events.
const (
	EventStart EventKind = iota // the visit begins
	EventSpan                   // an internal span begins
	EventLog                    // a log statement is reached
	EventCall                   // a call to another service is answered
	EventError                  // a span ends in error
)

// Severe is the OpenTelemetry severity number from which a record speaks of an
// error.
const Severe = 17

// Event is one kind of step of a request in a service. It is comparable: equal
// events are the same step.
type Event struct {
	Kind EventKind
	// Name is the span's name, the statement's place or template, the callee.
	Name string
	// Owner is the span in which a statement is written.
	Owner string
	// Severe is true of a statement of severity error or above.
	Severe bool
	// Peer is another service that a severe statement names.
	Peer string
	// Thrown is true of a severe statement that speaks of an exception.
	Thrown bool
}

// Compare orders events.
func (e Event) Compare(o Event) int {
	return cmp.Or(cmp.Compare(e.Kind, o.Kind), strings.Compare(e.Owner, o.Owner),
		strings.Compare(e.Name, o.Name), strings.Compare(e.Peer, o.Peer), compareBool(e.Thrown, o.Thrown))
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

// Context is the kind of a visit: which service, by which operation.
type Context struct{ Service, Operation string }

// FlowTrace is a request in compact form.
type FlowTrace struct {
	ID     string
	Start  int64
	Visits []FlowVisit // a caller comes before its callees
}

// FlowVisit is a visit in compact form.
type FlowVisit struct {
	Context int32
	// Path is the sequence of distinct events in the order of their first
	// occurrence.
	Path   int32
	Caller int32 // index in Visits, −1 for none
	Pod    int32
	At     int64
	SpanID string // of the entry
}

// Vocabulary numbers contexts, events and paths, so that requests are small. It
// may be used concurrently. Numbers depend on the order of use and mean nothing
// outside; results are sorted by what they stand for.
type Vocabulary struct {
	mu       sync.Mutex
	contexts table[Context]
	events   table[Event]
	pods     table[string]
	paths    table[string]
	steps    [][]int32
	names    map[string]bool

	merged       [][]int32 // paths after MergeLogs, nil before
	mergedEvents int       // number of events at that time
}

type table[K comparable] struct {
	index map[K]int32
	items []K
}

func (t *table[K]) number(k K) int32 {
	if n, ok := t.index[k]; ok {
		return n
	}
	if t.index == nil {
		t.index = map[K]int32{}
	}
	n := int32(len(t.items))
	t.index[k] = n
	t.items = append(t.items, k)
	return n
}

// Context returns a context by number.
func (v *Vocabulary) Context(n int32) Context { return v.contexts.items[n] }

// Event returns an event by number.
func (v *Vocabulary) Event(n int32) Event { return v.events.items[n] }

// Pod returns a pod's name by number.
func (v *Vocabulary) Pod(n int32) string { return v.pods.items[n] }

// Path returns the events of a path. The caller must not change it.
func (v *Vocabulary) Path(n int32) []int32 {
	if v.merged == nil {
		return v.steps[n]
	}
	return v.merged[n]
}

// MergeLogs makes log events one whose templates differ in a value only, as all
// telemetry seen so far tells. It is called when everything to be compared has
// been seen, and not concurrently with other methods.
func (v *Vocabulary) MergeLogs() {
	if len(v.events.items) == v.mergedEvents && len(v.steps) == len(v.merged) {
		return
	}
	v.mergedEvents, v.merged = 0, nil
	var names []string
	for _, e := range v.events.items {
		if e.Kind == EventLog && strings.Contains(e.Name, " ") {
			names = append(names, e.Name)
		}
	}
	as := MergeTemplates(names)
	canon := make([]int32, len(v.events.items))
	for i := range canon {
		e := v.events.items[i]
		if name, ok := as[e.Name]; ok && e.Kind == EventLog {
			e.Name = name
		}
		canon[i] = v.events.number(e)
	}
	v.mergedEvents = len(v.events.items)
	v.merged = make([][]int32, len(v.steps))
	for n, path := range v.steps {
		seen := make(map[int32]bool, len(path))
		out := make([]int32, 0, len(path))
		for _, e := range path {
			if c := canon[e]; !seen[c] {
				seen[c] = true
				out = append(out, c)
			}
		}
		v.merged[n] = out
	}
}

func (v *Vocabulary) path(events []int32) int32 {
	buf := make([]byte, 0, 4*len(events))
	for _, e := range events {
		buf = binary.LittleEndian.AppendUint32(buf, uint32(e))
	}
	n := v.paths.number(string(buf))
	if int(n) == len(v.steps) {
		v.steps = append(v.steps, slices.Clone(events))
	}
	return n
}

// maxEvents bounds the distinct events of one visit; more is no control flow but
// a listing of data.
const maxEvents = 200

// Flows adds the requests of w in compact form to p.
func (v *Vocabulary) Flows(w *Window, p *Profile) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.learn(w)
	for _, t := range w.Traces {
		f := FlowTrace{ID: t.ID, Start: t.Start, Visits: make([]FlowVisit, 0, len(t.Visits))}
		index := make(map[*Visit]int32, len(t.Visits))
		for _, visit := range t.Visits {
			fv := FlowVisit{
				Context: v.contexts.number(Context{visit.Service, OperationName(visit.Entry.Name)}),
				Path:    v.path(v.walk(t, visit, v.names)),
				Caller:  -1, Pod: v.pods.number(visit.Pod),
				At: visit.Entry.Start, SpanID: visit.Entry.SpanID,
			}
			if visit.Caller != nil {
				fv.Caller = index[visit.Caller]
			}
			index[visit] = int32(len(f.Visits))
			f.Visits = append(f.Visits, fv)
		}
		p.Flows = append(p.Flows, f)
	}
}

// Step is an event of a visit at its time.
type Step struct {
	At    int64
	Event Event
}

// walk returns the numbers of the distinct events of a visit in order.
func (v *Vocabulary) walk(t *Trace, visit *Visit, names map[string]bool) []int32 {
	steps := Steps(t, visit, names)
	out := make([]int32, 0, len(steps))
	seen := make(map[int32]bool, len(steps))
	for _, s := range steps {
		if n := v.events.number(s.Event); !seen[n] && len(out) < maxEvents {
			seen[n] = true
			out = append(out, n)
		}
	}
	return out
}

// Steps returns the events of a visit in order. A call stands where it ended: a
// log record before it gets its time when the runtime writes it, often just
// after the call began, but hardly ever after the answer.
func Steps(t *Trace, visit *Visit, names map[string]bool) []Step {
	steps := make([]Step, 0, len(visit.Nodes)+len(visit.Logs)+1)
	steps = append(steps, Step{visit.Entry.Start, Event{Kind: EventStart}})
	for _, n := range visit.Nodes {
		if n.Error {
			steps = append(steps, Step{n.End(), Event{Kind: EventError, Name: OperationName(n.Name), Severe: true}})
		}
		remote := n.Remote()
		for _, r := range remote {
			at := r.Entry.End()
			if len(remote) == len(n.Children) && n != visit.Entry {
				at = max(at, n.End()) // a span of the call itself
			}
			steps = append(steps, Step{at, Event{Kind: EventCall, Name: r.Service}})
		}
		if n != visit.Entry && len(remote) == 0 {
			steps = append(steps, Step{n.Start, Event{Kind: EventSpan, Name: OperationName(n.Name)}})
		}
	}
	for i := range visit.Logs {
		l := &visit.Logs[i]
		e := Event{Kind: EventLog, Name: Statement(l), Owner: t.Owner(l), Severe: l.Severity >= Severe}
		if e.Severe {
			e.Peer = NamedService(l.Body, l.Service, names)
			e.Thrown = Thrown(l)
		}
		steps = append(steps, Step{l.Time, e})
	}
	slices.SortStableFunc(steps[1:], func(a, b Step) int {
		return cmp.Or(cmp.Compare(a.At, b.At), a.Event.Compare(b.Event))
	})
	return steps
}

// Statement names the statement that wrote a record: its place in the code, else
// its template.
func Statement(l *Log) string {
	if l.Code != "" {
		return l.Code
	}
	return Template(l.Body)
}

// thrownWords are how runtimes and programmers speak of exceptions.
var thrownWords = []string{"exception", "traceback", "panic", "stack trace", "unhandled", "segmentation fault", "throwable", "nullpointer"}

// Thrown reports whether a record speaks of an exception.
func Thrown(l *Log) bool {
	if l.Attributes["exception.type"] != "" || l.Attributes["error.type"] != "" {
		return true
	}
	text := l.Body
	if len(text) > templateBytes {
		text = text[:templateBytes]
	}
	text = strings.ToLower(text)
	for _, w := range thrownWords {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}

// learn adds the services of w to the names known so far.
func (v *Vocabulary) learn(w *Window) {
	if v.names == nil {
		v.names = map[string]bool{}
	}
	for _, t := range w.Traces {
		for _, visit := range t.Visits {
			v.names[visit.Service] = true
		}
	}
	for i := range w.Loose {
		v.names[w.Loose[i].Service] = true
	}
}

// NamedService returns the one other service that a text names, empty when it
// names none or several. A name that may be an ordinary word counts only where
// it stands as the host of an address.
func NamedService(text, own string, names map[string]bool) string {
	if len(text) > templateBytes {
		text = text[:templateBytes]
	}
	found := ""
	for i := 0; i < len(text); {
		if !nameByte(text[i]) {
			i++
			continue
		}
		j := i
		for j < len(text) && nameByte(text[j]) {
			j++
		}
		w := text[i:j]
		host := strings.HasSuffix(text[:i], "//") || j+1 < len(text) && text[j] == ':' && text[j+1] >= '0' && text[j+1] <= '9'
		if w != own && w != found && names[w] && (host || strings.ContainsAny(w, "-_0123456789")) {
			if found != "" {
				return ""
			}
			found = w
		}
		i = j
	}
	return found
}

func nameByte(b byte) bool {
	return b == '-' || b == '_' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}

// DependencyOf returns what a leaf span of kind client calls when that sends no
// spans itself: as its attributes name it, else as its name does.
func DependencyOf(n *Node) (record.Entity, bool) {
	if len(n.Children) > 0 {
		return record.Entity{}, false
	}
	for _, a := range []string{"peer.service", "server.address", "db.namespace", "db.system.name", "db.system", "messaging.system"} {
		if v := n.Attributes[a]; v != "" {
			return Dependency(v), true
		}
	}
	if n.Kind == "client" || n.Kind == "producer" {
		return Dependency(OperationName(n.Name)), true
	}
	return record.Entity{}, false
}
