package sensor

import (
	"slices"

	"inquest/record"
	"inquest/sensor/clock"
)

// Clock is one clock that stamps telemetry: that of a node, of a pod whose node
// is not told, or of a service that tells neither.
type Clock struct {
	Entity record.Entity
	clock.Host
}

// Clocks are the clocks of a window and how far each is off. Spans and log
// records of a window are corrected by them already. Points of metric series are
// not: most carry the time of the scraper, and a slice of them is much longer
// than clocks are usually off.
type Clocks struct {
	All []Clock // by entity

	byNode, byPod, byService map[string]int
}

// clockOf names the clock that stamps what a place sends.
func clockOf(node, pod, service string) record.Entity {
	switch {
	case node != "":
		return NodeEntity(node)
	case pod != "":
		return Pod(pod)
	default:
		return Service(service)
	}
}

// readClocks estimates the clocks of spans, which are sorted by trace. It returns
// nil where one clock stamps all.
func readClocks(spans []Span) *Clocks {
	c := &Clocks{byNode: map[string]int{}, byPod: map[string]int{}, byService: map[string]int{}}
	of := c.number(spans)
	if len(c.All) < 2 {
		return nil
	}
	from, to := spans[0].Start, spans[0].Start
	var calls []clock.Call
	byID := map[string]int{}
	for i := 0; i < len(spans); {
		j, apart := i, false
		for j < len(spans) && spans[j].TraceID == spans[i].TraceID {
			apart = apart || of[j] != of[i]
			from, to = min(from, spans[j].Start), max(to, spans[j].Start)
			j++
		}
		if apart && spans[i].TraceID != "" {
			calls = crossing(calls, spans[i:j], of[i:j], byID)
		}
		i = j
	}
	for i, h := range clock.Estimate(len(c.All), calls, from, to+1) {
		c.All[i].Host = h
	}
	return c
}

// crossing adds the calls of one trace that cross between clocks. Only a call
// that is waited for bounds anything: a client's, not a message's.
func crossing(calls []clock.Call, spans []Span, of []int32, byID map[string]int) []clock.Call {
	clear(byID)
	for i := range spans {
		if k := spans[i].Kind; k == "client" || k == "" {
			byID[spans[i].SpanID] = i
		}
	}
	for i := range spans {
		s := &spans[i]
		if s.Parent == "" || s.Kind != "server" && s.Kind != "" {
			continue
		}
		p, ok := byID[s.Parent]
		if !ok || of[p] == of[i] {
			continue
		}
		if call, ok := clock.Bound(of[p], of[i], spans[p].Start, spans[p].End(), s.Start, s.End()); ok {
			calls = append(calls, call)
		}
	}
	return calls
}

// number finds the clocks of spans and returns each span's.
func (c *Clocks) number(spans []Span) []int32 {
	type place struct{ node, pod, service string }
	first := map[place]int32{}
	index := map[record.Entity]int32{}
	of := make([]int32, len(spans))
	for i := range spans {
		s := &spans[i]
		p := place{s.Node, s.Pod, s.Service}
		n, ok := first[p]
		if !ok {
			e := clockOf(s.Node, s.Pod, s.Service)
			if n, ok = index[e]; !ok {
				n = int32(len(c.All))
				index[e] = n
				c.All = append(c.All, Clock{Entity: e})
			}
			first[p] = n
		}
		of[i] = n
	}
	// Numbers by entity, not by the order of spans.
	order := make([]int32, len(c.All))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return c.All[a].Entity.Compare(c.All[b].Entity) })
	to := make([]int32, len(order))
	sorted := make([]Clock, len(order))
	for k, old := range order {
		to[old], sorted[k] = int32(k), c.All[old]
	}
	c.All = sorted
	for i := range of {
		of[i] = to[of[i]]
	}
	for p, old := range first {
		n := int(to[old])
		only(c.byNode, p.node, n)
		only(c.byPod, p.pod, n)
		only(c.byService, p.service, n)
	}
	return of
}

// only notes the clock of a name, −1 when it has several.
func only(m map[string]int, name string, n int) {
	if name == "" {
		return
	}
	if old, ok := m[name]; ok && old != n {
		n = -1
	}
	m[name] = n
}

// find returns the clock that stamped a record, −1 when that cannot be told. A
// record that does not name its node is of that on which its pod has spans.
func (c *Clocks) find(node, pod, service string) int {
	in, name := c.byService, service
	if node != "" {
		in, name = c.byNode, node
	} else if _, ok := c.byPod[pod]; ok {
		in, name = c.byPod, pod
	}
	if n, ok := in[name]; ok {
		return n
	}
	return -1
}

// shift is what to take off a time of a clock. Only an offset that is larger than
// its error is taken off.
func (c *Clocks) shift(n int, t int64) int64 {
	if n < 0 {
		return 0
	}
	if o, ok := c.All[n].At(t); ok && o.Sure() {
		return o.Offset
	}
	return 0
}

// correct puts spans and log records on one axis and reports whether a span
// moved.
func (c *Clocks) correct(spans []Span, logs []Log) bool {
	if c == nil {
		return false
	}
	sure := slices.ContainsFunc(c.All, func(k Clock) bool { return slices.ContainsFunc(k.Offsets, clock.Offset.Sure) })
	if !sure {
		return false
	}
	for i := range spans {
		s := &spans[i]
		s.Start -= c.shift(c.find(s.Node, s.Pod, s.Service), s.Start)
	}
	for i := range logs {
		l := &logs[i]
		l.Time -= c.shift(c.find(l.Node, l.Pod, l.Service), l.Time)
	}
	return true
}

// ClockState is how far a clock was off in a slice of time.
type ClockState struct {
	Entity record.Entity
	// Tied is false of a clock that no call ties to any other; Group is 0 for
	// those that are tied to the most others.
	Tied  bool
	Group int
	// Offset is what the clock showed more than the others' middle, Error the
	// bound of its error, ns. They are those of the largest offset in the slice.
	Offset, Error int64
}

// Applied reports whether the offset was taken off.
func (s ClockState) Applied() bool {
	return s.Tied && clock.Offset{Offset: s.Offset, Error: s.Error}.Sure()
}

// In returns the clocks' states between r.From and r.To, by entity.
func (c *Clocks) In(r Range) []ClockState {
	if c == nil {
		return nil
	}
	out := make([]ClockState, 0, len(c.All))
	for i := range c.All {
		k := &c.All[i]
		s := ClockState{Entity: k.Entity, Tied: k.Group >= 0, Group: k.Group}
		seen := false
		for _, o := range k.Offsets {
			if o.From < r.To && o.To > r.From && (!seen || max(o.Offset, -o.Offset) > max(s.Offset, -s.Offset)) {
				s.Offset, s.Error, seen = o.Offset, o.Error, true
			}
		}
		out = append(out, s)
	}
	return out
}
