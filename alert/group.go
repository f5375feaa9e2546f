package alert

import (
	"slices"
	"strings"
	"sync"
	"time"
)

type key struct{ reason, service string }

// group are the events with one reason in one service that are not told yet,
// and when they may be.
type group struct {
	key      key
	count    int64 // events not told yet
	first    time.Time
	last     time.Time
	severity Severity
	example  Event
	others   []string  // of the group of merged groups: some of their names
	due      time.Time // not to be told before
}

// groups are the groups of one hook. Their number is bounded, so what a hook
// keeps in memory is too, however long its receiver is dead.
type groups struct {
	mu       sync.Mutex
	interval time.Duration
	max      int
	byKey    map[key]*group
	other    group
	swept    time.Time

	suppressed, merged int64
}

func newGroups(h *Hook) *groups {
	return &groups{
		interval: h.MinInterval, max: h.MaxGroups, byKey: map[key]*group{},
		other: group{key: key{otherReason, otherService}},
	}
}

// add counts an event. It returns true when the group had nothing to tell
// before, so that the sender has to look.
func (gs *groups) add(e *Event, now time.Time) bool {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	g := gs.group(key{e.Reason, e.Service}, now)
	if g == nil {
		g = &gs.other
		gs.merged++
		g.name(e.Reason, e.Service)
	}
	at := e.Time
	if at.IsZero() {
		at = now
	}
	if g.count > 0 {
		g.count++
		gs.suppressed++
		g.severity = worse(g.severity, e.Severity)
		g.span(at, at)
		return false
	}
	g.count, g.first, g.last = 1, at, at
	g.example = e.kept()
	g.example.Time = at
	g.severity = g.example.Severity
	return true
}

// group returns the group of a key, nil where there is no room for a new one.
func (gs *groups) group(k key, now time.Time) *group {
	if g := gs.byKey[k]; g != nil {
		return g
	}
	k = key{clean(k.reason, MaxNameSize), clean(k.service, MaxNameSize)}
	if g := gs.byKey[k]; g != nil {
		return g
	}
	if len(gs.byKey) >= gs.max && !gs.sweep(now) {
		return nil
	}
	k = key{strings.Clone(k.reason), strings.Clone(k.service)}
	g := &group{key: k}
	gs.byKey[k] = g
	return g
}

// sweep removes groups that are quiet for an interval and tells whether there
// is room. It looks at most once a second, since events of a flood of new
// groups come here.
func (gs *groups) sweep(now time.Time) bool {
	if now.Sub(gs.swept) < time.Second {
		return false
	}
	gs.swept = now
	for k, g := range gs.byKey {
		if g.count == 0 && !now.Before(g.due) {
			delete(gs.byKey, k)
		}
	}
	return len(gs.byKey) < gs.max
}

// span widens the time of the group's events.
func (g *group) span(first, last time.Time) {
	if first.Before(g.first) {
		g.first = first
	}
	if last.After(g.last) {
		g.last = last
	}
}

// name remembers a few of the groups that were merged.
func (g *group) name(reason, service string) {
	if len(g.others) > maxOthers {
		return
	}
	name := clean(reason, MaxNameSize)
	if service != "" {
		name += " in " + clean(service, MaxNameSize)
	}
	switch {
	case slices.Contains(g.others, name):
	case len(g.others) == maxOthers:
		g.others = append(g.others, "and others")
	default:
		g.others = append(g.others, name)
	}
}

// next takes the message that is to be sent now. Without one it returns how
// long until there may be one, negative when nothing waits.
func (gs *groups) next(now time.Time, flush bool) (*Message, time.Duration) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	var best *group
	for g := range gs.waiting() {
		if best == nil || g.before(best) {
			best = g
		}
	}
	if best == nil {
		return nil, -1
	}
	if wait := best.due.Sub(now); wait > 0 && !flush {
		return nil, wait
	}
	best.due = now.Add(gs.interval)
	return best.take(best == &gs.other), 0
}

// before orders groups that wait: those that may be told first come first.
func (g *group) before(o *group) bool {
	if c := g.due.Compare(o.due); c != 0 {
		return c < 0
	}
	if c := g.first.Compare(o.first); c != 0 {
		return c < 0
	}
	return g.key.reason < o.key.reason || g.key.reason == o.key.reason && g.key.service < o.key.service
}

// waiting yields the groups that have something to tell.
func (gs *groups) waiting() func(yield func(*group) bool) {
	return func(yield func(*group) bool) {
		if gs.other.count > 0 && !yield(&gs.other) {
			return
		}
		for _, g := range gs.byKey {
			if g.count > 0 && !yield(g) {
				return
			}
		}
	}
}

// take makes a message of the group and empties the group.
func (g *group) take(merged bool) *Message {
	m := &Message{
		ID: newID(), Reason: g.key.reason, Service: g.key.service, Severity: g.severity,
		Count: g.count, First: g.first, Last: g.last, Example: g.example, Merged: merged, Others: g.others,
	}
	g.count, g.example, g.others = 0, Event{}, nil
	return m
}

// giveBack puts the events of a message that could not be sent back into their
// group, to be told with those that came since.
func (gs *groups) giveBack(m *Message, now time.Time) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	g := &gs.other
	if !m.Merged {
		// There is a group for it: with room for none it is merged too.
		if own := gs.group(key{m.Reason, m.Service}, now); own != nil {
			g = own
		} else {
			gs.merged += m.Count
			g.name(m.Reason, m.Service)
		}
	}
	for _, o := range m.Others {
		if len(g.others) < maxOthers && !slices.Contains(g.others, o) {
			g.others = append(g.others, o)
		}
	}
	g.due = now.Add(gs.interval)
	if g.count == 0 {
		g.first, g.last, g.severity = m.First, m.Last, m.Severity
	}
	g.span(m.First, m.Last)
	g.count += m.Count
	g.severity = worse(g.severity, m.Severity)
	g.example = m.Example // the first of all
}

// mergeBeyond leaves the n groups that come first and merges the others, so
// that little is left to be sent.
func (gs *groups) mergeBeyond(n int) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	var all []*group
	for g := range gs.waiting() {
		if g != &gs.other {
			all = append(all, g)
		}
	}
	if len(all) <= n {
		return
	}
	slices.SortFunc(all, func(a, b *group) int {
		if a.before(b) {
			return -1
		}
		return 1
	})
	o := &gs.other
	for _, g := range all[n:] {
		if o.count == 0 {
			o.first, o.last, o.severity, o.example = g.first, g.last, g.severity, g.example
		}
		o.name(g.key.reason, g.key.service)
		o.span(g.first, g.last)
		o.count += g.count
		o.severity = worse(o.severity, g.severity)
		gs.merged += g.count
		g.count, g.example = 0, Event{}
	}
}

// pending returns how many events wait to be told.
func (gs *groups) pending() int64 {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	var n int64
	for g := range gs.waiting() {
		n += g.count
	}
	return n
}

func (gs *groups) counts() (suppressed, merged int64) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	return gs.suppressed, gs.merged
}

// drop empties all groups and returns how many events were not told.
func (gs *groups) drop() int64 {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	var n int64
	for g := range gs.waiting() {
		n += g.count
		g.count, g.example, g.others = 0, Event{}, nil
	}
	return n
}
