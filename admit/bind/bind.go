// Package bind finds the request that a record without ids belongs to, where
// the evidence leaves one answer only. It holds the rules and an index of
// evidence in memory; package sensor/binding fills it from a store.
//
// There are two rules, and no record is bound when two traces fit:
//
//   - request_id: the record names a request id, and within the window around it
//     one trace alone has spans or records with that id.
//   - process: within the record's process (and thread) the spans of one trace
//     alone were active at the record's time.
//
// The answer for a record depends only on what is stored within the window
// around it, never on how much was asked for at once.
package bind

import "time"

// Attribute is the field that marks a record whose trace was inferred; its value
// is the rule.
const Attribute = "binding"

// The rules by which a record is bound.
const (
	ByRequestID = "request_id"
	ByProcess   = "process"
)

// Binding is what was inferred for a record.
type Binding struct {
	// By is the rule, empty when no trace was inferred.
	By      string
	TraceID string
	// SpanID is the span of the trace that was active in the process, where that
	// is one only.
	SpanID string
	// RequestID is what the trace of a record without a request id alone goes
	// by, or the id that the record's text names.
	RequestID string
}

// Outcome says why a record was bound or not.
type Outcome uint8

// The outcomes.
const (
	// NoEvidence: nothing stored speaks for any trace.
	NoEvidence Outcome = iota
	Bound
	// AmbiguousRequestID: several traces have the request id.
	AmbiguousRequestID
	// AmbiguousProcess: several traces were active, or may have been.
	AmbiguousProcess
)

// DefaultWindow is how far apart in time a record and the evidence may be.
const DefaultWindow = 2 * time.Minute

// Process says in which process a record or span arose; what is unknown is empty.
type Process struct {
	Service   string // service.name
	Namespace string // service.namespace
	Instance  string // service.instance.id
	Pod       string // k8s.pod.name
	Container string // container.id
	// ContainerName is k8s.container.name.
	ContainerName string
	Host          string // host.name
	PID           string // process.pid
}

// ProcessFields are the names of the fields that make a [Process], in the order
// of its members.
var ProcessFields = []string{
	"service.name", "service.namespace", "service.instance.id", "k8s.pod.name",
	"container.id", "k8s.container.name", "host.name", "process.pid",
}

// Set sets the member that the field is for; it returns false for other fields.
func (p *Process) Set(name, value string) bool {
	switch name {
	case "service.name":
		p.Service = value
	case "service.namespace":
		p.Namespace = value
	case "service.instance.id":
		p.Instance = value
	case "k8s.pod.name":
		p.Pod = value
	case "container.id":
		p.Container = value
	case "k8s.container.name":
		p.ContainerName = value
	case "host.name":
		p.Host = value
	case "process.pid":
		p.PID = value
	default:
		return false
	}
	return true
}

// anchors are the keys by which records and spans of one process meet. Each is
// at least as coarse as the process, which is safe: more spans only make more
// candidates.
func (p *Process) anchors() []string {
	var keys []string
	named := p.Service != "" || p.ContainerName != ""
	if p.Instance != "" && p.Service != "" {
		keys = append(keys, "i\x00"+p.Service+"\x00"+p.Instance)
	}
	if p.Container != "" {
		keys = append(keys, "c\x00"+p.Container)
	}
	if p.Pod != "" && named { // a pod alone may hold other programs too
		keys = append(keys, "p\x00"+p.Pod)
	}
	if p.Host != "" && p.PID != "" && p.PID != "1" { // each container has a process 1
		keys = append(keys, "h\x00"+p.Host+"\x00"+p.PID)
	}
	return keys
}

// Known tells whether the process can be told from others.
func (p *Process) Known() bool { return len(p.anchors()) > 0 }

// agrees tells whether nothing that both say speaks against one process.
func (p *Process) agrees(q *Process) bool {
	same := func(a, b string) bool { return a == "" || b == "" || a == b }
	if !same(p.Service, q.Service) || !same(p.Namespace, q.Namespace) || !same(p.Instance, q.Instance) ||
		!same(p.Pod, q.Pod) || !same(p.Container, q.Container) || !same(p.ContainerName, q.ContainerName) || !same(p.PID, q.PID) {
		return false
	}
	// In a pod with several programs, one name at least must be shared.
	return p.Service != "" && p.Service == q.Service || p.ContainerName != "" && p.ContainerName == q.ContainerName ||
		p.Container != "" && p.Container == q.Container || p.Pod == "" && q.Pod == ""
}

// Thread says where in its process a record or span arose.
type Thread struct {
	ID   string // thread.id
	Name string // thread.name
	Task string // a task of asyncio, Celery and the like
}

// ThreadFields are the names of the fields that make a [Thread]. Of several
// names for a task the first that is there counts.
var ThreadFields = []string{"thread.id", "thread.name", "task.id", "celery.task_id", "asyncio.task.id", "asyncio.task.name"}

// Set sets the member that the field is for; it returns false for other fields.
func (t *Thread) Set(name, value string) bool {
	switch name {
	case "thread.id":
		t.ID = value
	case "thread.name":
		t.Name = value
	case "task.id", "celery.task_id", "asyncio.task.id", "asyncio.task.name":
		if t.Task == "" || value < t.Task { // whatever the order of fields
			t.Task = value
		}
	default:
		return false
	}
	return true
}

// relation is what two threads say about one another.
type relation uint8

const (
	unknownThread relation = iota
	sameThread
	otherThread
)

// relate compares by the finest that both tell, and returns the key of the
// thread, empty for a task: a task serves one request, a thread may serve more.
func (t Thread) relate(u Thread) (relation, string) {
	compare := func(a, b, key string) (relation, string) {
		if a == b {
			return sameThread, key
		}
		return otherThread, ""
	}
	switch {
	case t.Task != "" && u.Task != "":
		return compare(t.Task, u.Task, "")
	case t.ID != "" && u.ID != "":
		return compare(t.ID, u.ID, "i"+t.ID)
	case t.Name != "" && u.Name != "":
		return compare(t.Name, u.Name, "n"+t.Name)
	}
	return unknownThread, ""
}

// keys are the keys that relate may return.
func (t Thread) keys() []string {
	var keys []string
	if t.ID != "" {
		keys = append(keys, "i"+t.ID)
	}
	if t.Name != "" {
		keys = append(keys, "n"+t.Name)
	}
	return keys
}
