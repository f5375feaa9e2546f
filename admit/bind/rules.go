package bind

import (
	"cmp"
	"slices"
	"time"
)

// Bind returns what the evidence says about a record without a trace id.
func (x *Index) Bind(r *Record) (Binding, Outcome) {
	b := Binding{RequestID: r.RequestID}
	if r.RequestID != "" {
		traces := x.tracesOf(r.RequestID, r.Service, r.Time)
		if len(traces) > 1 {
			return b, AmbiguousRequestID
		}
		if len(traces) == 1 {
			b.By, b.TraceID = ByRequestID, traces[0]
			b.SpanID = only(ofTrace(x.candidates(r), b.TraceID), r.Time)
			return b, Bound
		}
	}
	trace, spans, outcome := x.byProcess(r)
	if outcome != Bound {
		return b, outcome
	}
	ids := x.requestsOf(trace, r.Time)
	if r.RequestID != "" && len(ids) > 0 {
		// The record names another request than the one that was active.
		return b, AmbiguousProcess
	}
	if r.RequestID == "" && len(ids) == 1 {
		b.RequestID = ids[0]
	}
	b.By, b.TraceID, b.SpanID = ByProcess, trace, only(spans, r.Time)
	return b, Bound
}

// second returns the second of a time in ns.
func second(t int64) int64 { return time.Unix(0, t).Unix() }

// near tells whether a sighting is within the window around t.
func (x *Index) near(s *sighting, t int64) bool {
	at := second(t)
	return s.from-x.window <= at && at <= s.to+x.window
}

// tracesOf returns up to two traces that go by the request id around t.
func (x *Index) tracesOf(id, service string, t int64) []string {
	var traces []string
	all := x.byID[id]
	for i := range all {
		s := &all[i]
		if !x.near(s, t) || len(id) < shortRequestID && (service == "" || s.service != service) || slices.Contains(traces, s.trace) {
			continue
		}
		if traces = append(traces, s.trace); len(traces) == 2 {
			break
		}
	}
	return traces
}

// requestsOf returns up to two request ids that the trace goes by around t.
func (x *Index) requestsOf(trace string, t int64) []string {
	var ids []string
	all := x.byTrace[trace]
	for i := range all {
		if s := &all[i]; x.near(s, t) && !slices.Contains(ids, s.id) {
			if ids = append(ids, s.id); len(ids) == 2 {
				break
			}
		}
	}
	return ids
}

// Slack is how far the time of a record may be off, against the spans of its
// process: loggers stamp late, and some keep milliseconds only. A span of another
// trace that close makes a record ambiguous. On real telemetry 0 bound one record
// of 270 to the wrong trace, 1 ms none.
const Slack = 5 * time.Millisecond

// candidates returns the spans of the record's process that may have been active
// at its time, each once.
func (x *Index) candidates(r *Record) []*Span {
	var all []*Span
	for _, key := range r.Process.anchors() {
		l := x.lanes[key]
		if l == nil {
			continue
		}
		for _, s := range l.active(r.Time-int64(Slack), r.Time+int64(Slack)) {
			if s.Process.agrees(&r.Process) && !holds(all, s) {
				all = append(all, s)
			}
		}
	}
	return all
}

func holds(spans []*Span, s *Span) bool {
	return slices.ContainsFunc(spans, func(o *Span) bool { return o.SpanID == s.SpanID && o.TraceID == s.TraceID })
}

func ofTrace(spans []*Span, trace string) []*Span {
	return slices.DeleteFunc(spans, func(s *Span) bool { return s.TraceID != trace })
}

// byProcess returns the one trace that was active in the record's process and
// thread, with its spans there.
func (x *Index) byProcess(r *Record) (trace string, spans []*Span, _ Outcome) {
	all := x.candidates(r)
	if len(all) == 0 {
		return "", nil, NoEvidence
	}
	var same, open []*Span // on the record's thread; not known to be on another
	threadKey := ""
	for _, s := range all {
		rel, key := r.Thread.relate(s.Thread)
		if rel == sameThread {
			same = append(same, s)
			threadKey = cmp.Or(key, threadKey)
		}
		if rel != otherThread {
			open = append(open, s)
		}
	}
	if len(open) == 0 {
		// Another thread than any that serves a request: nobody's record.
		return "", nil, NoEvidence
	}
	byThread := false
	if !oneTrace(all) {
		// Only the thread can tell, where it serves one request at a time.
		if len(same) == 0 || !oneTrace(open) || threadKey != "" && x.threadShared(r, threadKey) {
			return "", nil, AmbiguousProcess
		}
		byThread = true
	}
	if !slices.ContainsFunc(open, func(s *Span) bool { return s.Start <= r.Time && r.Time <= s.End }) {
		return "", nil, NoEvidence
	}
	trace = open[0].TraceID
	for _, s := range open {
		if s.Sampled && len(same) == 0 {
			return "", nil, AmbiguousProcess
		}
	}
	if x.hiddenTrace(r, open, byThread) {
		return "", nil, AmbiguousProcess
	}
	return trace, open, Bound
}

func oneTrace(spans []*Span) bool {
	for _, s := range spans[1:] {
		if s.TraceID != spans[0].TraceID {
			return false
		}
	}
	return true
}

func (x *Index) threadShared(r *Record, key string) bool {
	for _, anchor := range r.Process.anchors() {
		if l := x.lanes[anchor]; l != nil && l.sharedNear(key, r.Time, x.window*int64(time.Second)) {
			return true
		}
	}
	return false
}

// hiddenTrace tells whether records of the process carry the id of another trace
// that has no span there, while the candidates were active: a request that was
// not sampled, or whose spans were lost, may have written the record.
func (x *Index) hiddenTrace(r *Record, spans []*Span, byThread bool) bool {
	from, to := r.Time, r.Time
	for _, s := range spans {
		from, to = min(from, s.Start), max(to, s.End)
	}
	at := second(r.Time)
	first, last := max(second(from), at-x.window), min(second(to), at+x.window)
	for _, anchor := range r.Process.anchors() {
		l := x.lanes[anchor]
		if l == nil {
			continue
		}
		i, _ := slices.BinarySearchFunc(l.hints, first, func(h hint, s int64) int { return cmp.Compare(h.second, s) })
		for ; i < len(l.hints) && l.hints[i].second <= last; i++ {
			h := &l.hints[i]
			if h.trace == spans[0].TraceID || !h.process.agrees(&r.Process) {
				continue
			}
			if rel, _ := r.Thread.relate(h.thread); rel == otherThread && byThread {
				continue
			}
			if !l.hasSpan(h.trace, h.second) {
				return true
			}
		}
	}
	return false
}

// hasSpan tells whether a span of the trace was active in that second.
func (l *lane) hasSpan(trace string, second int64) bool {
	from, to := second*int64(time.Second), (second+1)*int64(time.Second)-1
	n, _ := slices.BinarySearchFunc(l.spans, to, func(s Span, t int64) int {
		if s.Start <= t {
			return -1
		}
		return 1
	})
	for i := n - 1; i >= 0 && l.latest[i] >= from; i-- {
		if s := &l.spans[i]; s.TraceID == trace && s.End >= from {
			return true
		}
	}
	return false
}

// only returns the id of the span, where it is one and was active all the time
// that the record's clock may be off. Of a span and its child the child is not
// taken: on real telemetry it was the wrong one for a third of the records.
func only(spans []*Span, t int64) string {
	if len(spans) != 1 || spans[0].Start > t-int64(Slack) || spans[0].End < t+int64(Slack) {
		return ""
	}
	return spans[0].SpanID
}
