package bind

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

const sec = int64(1e9)

// scene is evidence in short: processes and threads by name.
type scene struct{ x *Index }

func newScene() scene { return scene{NewIndex(0)} }

func proc(name string) *Process { return &Process{Service: "chat", Instance: name} }

func (s scene) span(trace, id, parent string, from, to int64, p *Process, th Thread) {
	s.x.AddSpan(Span{TraceID: trace, SpanID: id, ParentSpanID: parent, Start: from * sec, End: to * sec, Process: p, Thread: th})
}

func (s scene) check(t *testing.T, r Record, want string) {
	t.Helper()
	r.Time *= sec
	b, o := s.x.Bind(&r)
	got := fmt.Sprint(b.By, " ", b.TraceID, " ", b.SpanID, " ", b.RequestID)
	switch o {
	case NoEvidence:
		got = "none"
	case AmbiguousProcess:
		got = "ambiguous process"
	case AmbiguousRequestID:
		got = "ambiguous request"
	}
	if got != want || (o == Bound) != (b.TraceID != "") || (b.By == "") != (o != Bound) {
		t.Errorf("at %d s: got %q, want %q", r.Time/sec, got, want)
	}
}

func TestBindByRequestID(t *testing.T) {
	s := newScene()
	s.x.AddRequest("req-0001", "A", "gateway", 100, 103)
	s.x.AddRequest("req-0001", "A", "chat", 100, 100)
	s.x.AddRequest("req-0002", "A", "gateway", 100, 100)
	s.x.AddRequest("req-0002", "B", "gateway", 150, 150) // a client's second try
	s.x.AddRequest("7", "C", "chat", 100, 100)
	s.x.AddRequest("8", "D", "other", 100, 100)
	s.span("A", "a1", "", 100, 103, proc("1"), Thread{})
	s.span("E", "e1", "", 101, 103, proc("1"), Thread{})
	s.x.Build()
	f := func(id string, at int64, want string) {
		t.Helper()
		s.check(t, Record{Time: at, RequestID: id, Process: *proc("1")}, want)
	}
	f("req-0001", 100, "request_id A  req-0001")   // the span begins just then
	f("req-0001", 102, "request_id A a1 req-0001") // two traces are active, the id tells
	f("req-0001", 223, "request_id A  req-0001")   // the end of the window
	f("req-0001", 224, "none")
	f("req-0002", 120, "ambiguous request")
	f("req-0002", 29, "request_id A  req-0002") // too early for B
	f("req-0002", 30, "ambiguous request")
	f("req-0002", 240, "request_id B  req-0002") // too late for A
	f("7", 100, "request_id C  7")
	f("8", 110, "none") // a counter of another service
	f("req-0003", 110, "none")
}

func TestBindByProcess(t *testing.T) {
	s := newScene()
	p, q := proc("1"), proc("2")
	s.span("A", "a1", "", 100, 110, p, Thread{})
	s.span("A", "a2", "a1", 102, 108, p, Thread{})
	s.span("A", "a3", "a2", 103, 104, p, Thread{})
	s.span("A", "a4", "a2", 103, 105, p, Thread{}) // beside a3
	s.span("B", "b1", "", 109, 120, p, Thread{})
	s.span("C", "c1", "", 100, 130, q, Thread{})
	s.x.AddRequest("req-000B", "B", "chat", 109, 120)
	s.x.Build()
	f := func(at int64, p *Process, want string) {
		t.Helper()
		s.check(t, Record{Time: at, Process: *p}, want)
	}
	f(99, p, "none")
	f(100, p, "process A  ") // the span begins just then
	f(101, p, "process A a1 ")
	f(102, p, "process A  ")
	f(103, p, "process A  ") // one trace, two spans
	f(105, p, "process A  ")
	f(106, p, "process A  ")
	f(109, p, "ambiguous process")
	f(111, p, "process B b1 req-000B")
	f(121, p, "none")
	f(111, q, "process C c1 ")
	f(111, &Process{Service: "chat"}, "none") // which process is not known
	f(111, &Process{Service: "rank", Instance: "1"}, "none")
	// A record that names another request than the one that was active.
	s.check(t, Record{Time: 111, Process: *p, RequestID: "req-000X"}, "ambiguous process")
	s.check(t, Record{Time: 101, Process: *p, RequestID: "req-000X"}, "process A a1 req-000X")
}

func TestBindByThread(t *testing.T) {
	s := newScene()
	p := proc("1")
	s.span("A", "a1", "", 100, 110, p, Thread{ID: "1"})
	s.span("B", "b1", "", 100, 110, p, Thread{ID: "2"})
	s.span("C", "c1", "", 1100, 1110, p, Thread{Name: "loop"})
	s.span("D", "d1", "", 1105, 1115, p, Thread{Name: "loop"})
	s.span("E", "e1", "", 1118, 1125, p, Thread{Name: "loop"})
	s.span("F", "f1", "", 1118, 1125, p, Thread{Name: "other"})
	s.span("G", "g1", "", 2000, 2010, p, Thread{ID: "5", Task: "t1"})
	s.span("H", "h1", "", 2000, 2010, p, Thread{ID: "5", Task: "t2"})
	s.span("I", "i1", "", 3000, 3010, p, Thread{ID: "1"})
	s.span("J", "j1", "", 3000, 3010, p, Thread{})
	s.x.Build()
	f := func(at int64, th Thread, want string) {
		t.Helper()
		s.check(t, Record{Time: at, Process: *p, Thread: th}, want)
	}
	f(105, Thread{}, "ambiguous process")
	f(105, Thread{ID: "1"}, "process A a1 ")
	f(105, Thread{ID: "2", Name: "x"}, "process B b1 ")
	f(105, Thread{ID: "3"}, "none") // a thread in the background
	f(105, Thread{Name: "x"}, "ambiguous process")
	f(1120, Thread{Name: "loop"}, "ambiguous process") // an event loop: C and D were there together
	f(1120, Thread{Name: "other"}, "process F f1 ")
	f(1102, Thread{Name: "loop"}, "process C c1 ")
	f(2005, Thread{ID: "5", Task: "t1"}, "process G g1 ")
	f(2005, Thread{ID: "5"}, "ambiguous process")
	f(3005, Thread{ID: "1"}, "ambiguous process") // J may be on that thread too
}

func TestBindHidden(t *testing.T) {
	s := newScene()
	p := proc("1")
	s.span("A", "a1", "", 100, 110, p, Thread{})
	s.x.AddHint(p, Thread{}, "A", 105)
	s.span("B", "b1", "", 200, 210, p, Thread{})
	s.x.AddHint(p, Thread{}, "X", 205) // has no span: not sampled
	s.span("C", "c1", "", 300, 310, p, Thread{})
	s.span("D", "d1", "", 307, 308, p, Thread{})
	s.x.AddHint(p, Thread{}, "D", 307)
	s.x.AddSpan(Span{TraceID: "E", SpanID: "e1", Start: 400 * sec, End: 410 * sec, Process: p, Sampled: true})
	s.x.AddSpan(Span{TraceID: "F", SpanID: "f1", Start: 500 * sec, End: 510 * sec, Process: p, Sampled: true, Thread: Thread{ID: "1"}})
	s.x.Build()
	f := func(at int64, th Thread, want string) {
		t.Helper()
		s.check(t, Record{Time: at, Process: *p, Thread: th}, want)
	}
	f(101, Thread{}, "process A a1 ")
	f(201, Thread{}, "ambiguous process")
	f(301, Thread{}, "process C c1 ")
	f(401, Thread{}, "ambiguous process")
	f(501, Thread{}, "ambiguous process")
	f(501, Thread{ID: "1"}, "process F f1 ")
}

func TestProcesses(t *testing.T) {
	f := func(a, b Process, want bool) {
		t.Helper()
		s := newScene()
		s.span("A", "a1", "", 100, 110, &a, Thread{})
		s.x.Build()
		_, o := s.x.Bind(&Record{Time: 105 * sec, Process: b})
		if (o == Bound) != want {
			t.Errorf("%+v and %+v: bound %v", a, b, o == Bound)
		}
	}
	f(Process{Service: "c", Instance: "1"}, Process{Service: "c", Instance: "1"}, true)
	f(Process{Service: "c", Instance: "1"}, Process{Service: "d", Instance: "1"}, false)
	f(Process{Service: "c", Instance: "1", Namespace: "x"}, Process{Service: "c", Instance: "1", Namespace: "y"}, false)
	f(Process{Service: "c", Pod: "p"}, Process{Service: "c", Pod: "p", PID: "7"}, true)
	f(Process{Service: "c", Pod: "p", PID: "8"}, Process{Service: "c", Pod: "p", PID: "7"}, false)
	f(Process{Service: "c", Pod: "p"}, Process{Pod: "p"}, false) // a sidecar's record
	f(Process{Service: "c", Pod: "p", ContainerName: "main"}, Process{Pod: "p", ContainerName: "main"}, true)
	f(Process{Service: "c", Pod: "p", ContainerName: "main"}, Process{Pod: "p", ContainerName: "proxy"}, false)
	f(Process{Service: "c", Host: "h", PID: "17"}, Process{Host: "h", PID: "17"}, true)
	f(Process{Service: "c", Host: "h", PID: "1"}, Process{Host: "h", PID: "1"}, false) // containers
	f(Process{Service: "c", Container: "x"}, Process{Container: "x"}, true)
	f(Process{Service: "c"}, Process{Service: "c"}, false)
}

// TestSlack: clocks are not that good.
func TestSlack(t *testing.T) {
	s := newScene()
	p := proc("1")
	s.span("A", "a1", "", 100, 110, p, Thread{})
	s.x.AddSpan(Span{TraceID: "B", SpanID: "b1", Start: 110*sec + int64(Slack)/2, End: 120 * sec, Process: p})
	s.x.Build()
	f := func(at int64, want Outcome) {
		t.Helper()
		if b, o := s.x.Bind(&Record{Time: at, Process: *p}); o != want {
			t.Errorf("at %d: %v, %+v, want %v", at, o, b, want)
		}
	}
	f(110*sec, AmbiguousProcess)
	f(110*sec-int64(Slack), Bound)
	f(110*sec+int64(Slack)/4, AmbiguousProcess) // in neither
	f(120*sec+1, NoEvidence)
}

// TestBindNaive holds the rule by process against a plain reading of it, on
// random spans without threads.
func TestBindNaive(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		s := newScene()
		p := proc("1")
		type sp struct {
			trace    string
			from, to int64
		}
		var all []sp
		for i := range rnd.IntN(12) {
			from := int64(rnd.IntN(40))
			c := sp{fmt.Sprint("T", rnd.IntN(4)), 100 + from, 100 + from + int64(rnd.IntN(8))}
			all = append(all, c)
			s.span(c.trace, fmt.Sprint(i), "", c.from, c.to, p, Thread{})
		}
		s.x.Build()
		for at := int64(95); at < 155; at++ {
			var traces []string
			for _, c := range all {
				if c.from <= at && at <= c.to && !slices.Contains(traces, c.trace) {
					traces = append(traces, c.trace)
				}
			}
			b, _ := s.x.Bind(&Record{Time: at * sec, Process: *p})
			want := ""
			if len(traces) == 1 {
				want = traces[0]
			}
			if b.TraceID != want {
				t.Fatalf("at %d: got %q, want %q of %v", at, b.TraceID, want, all)
			}
		}
	}
}
