package bind

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Record is what the rules need of a record.
type Record struct {
	Time int64 // ns since the Unix epoch
	Process
	Thread
	RequestID string // its own, in a field or in its text
}

// Span is what the rules need of a span.
type Span struct {
	TraceID, SpanID, ParentSpanID string
	Start, End                    int64 // ns since the Unix epoch
	Process                       *Process
	Thread                        Thread
	// Sampled says that the process records only part of its requests, as far as
	// the span tells; then a request may be active that has no span.
	Sampled bool
}

// SampledState tells whether a span's trace state says that only part of the
// requests is recorded (OpenTelemetry's threshold, th, above 0).
func SampledState(traceState string) bool {
	for member := range strings.SplitSeq(traceState, ",") {
		value, ok := strings.CutPrefix(strings.TrimSpace(member), "ot=")
		if !ok {
			continue
		}
		for part := range strings.SplitSeq(value, ";") {
			if th, ok := strings.CutPrefix(part, "th:"); ok && strings.Trim(th, "0") != "" {
				return true
			}
		}
	}
	return false
}

// sighting is a request id seen in a trace, in whole seconds.
type sighting struct {
	id, trace, service string
	from, to           int64
}

// lane is what is known of one process by one anchor.
type lane struct {
	spans []Span
	// latest is, up to each span by start, the latest end.
	latest []int64
	// hints are traces that records of the process name, by second.
	hints []hint
	// shared are the times, by thread, at which two traces were active on it.
	shared map[string][]int64
}

type hint struct {
	second  int64
	trace   string
	process *Process
	thread  Thread
}

// Index is the evidence around some stretch of time. Fill it, call Build, then
// Bind may be called concurrently.
type Index struct {
	window  int64 // s
	byID    map[string][]sighting
	byTrace map[string][]sighting
	lanes   map[string]*lane
	spans   int
	seen    int
}

// NewIndex returns an index whose evidence counts up to the window away from a
// record; 0 means [DefaultWindow].
func NewIndex(window time.Duration) *Index {
	if window <= 0 {
		window = DefaultWindow
	}
	return &Index{
		window:  int64(window / time.Second),
		byID:    map[string][]sighting{},
		byTrace: map[string][]sighting{},
		lanes:   map[string]*lane{},
	}
}

// AddRequest says that a span or record of the trace, in the service, has the
// request id, from one second to another (Unix time, both inclusive).
func (x *Index) AddRequest(id, traceID, service string, from, to int64) {
	s := sighting{id, traceID, service, from, to}
	x.byID[id] = append(x.byID[id], s)
	x.byTrace[traceID] = append(x.byTrace[traceID], s)
	x.seen++
}

// AddSpan adds a span of a process that records without ids come from.
func (x *Index) AddSpan(s Span) {
	for _, key := range s.Process.anchors() {
		l := x.lane(key)
		l.spans = append(l.spans, s)
	}
	x.spans++
}

// AddHint says that a record of the process carries the trace id in that second:
// the trace was active there, though its spans may not be stored.
func (x *Index) AddHint(p *Process, t Thread, traceID string, second int64) {
	for _, key := range p.anchors() {
		l := x.lane(key)
		l.hints = append(l.hints, hint{second, traceID, p, t})
	}
	x.seen++
}

// Size returns how many spans and how many other pieces of evidence it holds.
func (x *Index) Size() (spans, others int) { return x.spans, x.seen }

func (x *Index) lane(key string) *lane {
	l := x.lanes[key]
	if l == nil {
		l = &lane{}
		x.lanes[key] = l
	}
	return l
}

// Build prepares for Bind. Nothing may be added after.
func (x *Index) Build() {
	for _, l := range x.lanes {
		slices.SortFunc(l.spans, func(a, b Span) int {
			return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End), strings.Compare(a.SpanID, b.SpanID), strings.Compare(a.TraceID, b.TraceID))
		})
		l.latest = make([]int64, len(l.spans))
		latest := int64(-1 << 63)
		for i := range l.spans {
			latest = max(latest, l.spans[i].End)
			l.latest[i] = latest
		}
		slices.SortFunc(l.hints, func(a, b hint) int { return cmp.Compare(a.second, b.second) })
		l.findShared()
	}
}

// findShared finds the times at which a thread served two traces at once, as
// event loops do: a span begins there while one of another trace is active.
func (l *lane) findShared() {
	type open struct {
		trace string
		end   int64
	}
	active := map[string]open{} // by thread: the span that ends last
	l.shared = map[string][]int64{}
	for i := range l.spans {
		s := &l.spans[i]
		for _, key := range s.Thread.keys() {
			o, ok := active[key]
			if ok && o.trace != s.TraceID && o.end > s.Start {
				l.shared[key] = append(l.shared[key], s.Start)
			}
			if !ok || s.End >= o.end {
				active[key] = open{s.TraceID, s.End}
			}
		}
	}
}

// active returns the spans that were active at a time between from and to, by
// start.
func (l *lane) active(from, to int64) []*Span {
	n, _ := slices.BinarySearchFunc(l.spans, to, func(s Span, t int64) int {
		if s.Start <= t {
			return -1
		}
		return 1
	})
	var out []*Span
	for i := n - 1; i >= 0 && l.latest[i] >= from; i-- {
		if l.spans[i].End >= from {
			out = append(out, &l.spans[i])
		}
	}
	slices.Reverse(out)
	return out
}

// sharedNear tells whether the thread served two traces at once within d of t.
func (l *lane) sharedNear(key string, t, d int64) bool {
	times := l.shared[key]
	i, _ := slices.BinarySearch(times, t-d)
	return i < len(times) && times[i] <= t+d
}
