package coverage

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// callGroup are calls without a child that go the same way: one caller, one
// operation, one peer.
type callGroup struct {
	service, kind, name, peer, destination, task string
}

// slack is how far clocks of caller and callee may be apart.
const slack = 100 * time.Millisecond

// queueTime is how long a message may wait until its consumer begins.
const queueTime = 2 * time.Minute

// openGroups sorts the calls without a child by the way they go.
func (s *search) openGroups() map[callGroup][]int32 {
	groups := map[callGroup][]int32{}
	for _, i := range s.open {
		groups[s.group(i)] = append(groups[s.group(i)], i)
	}
	return groups
}

func (s *search) group(i int32) callGroup {
	sp := &s.spans[i]
	return callGroup{sp.service, sp.kind, sp.name, sp.peer, sp.destination, sp.task}
}

// brokenContexts finds calls that the callee served as roots of other traces.
func (s *search) brokenContexts(groups map[callGroup][]int32, siblings map[callGroup]string) {
	byMessage := s.rootsByMessage()
	torn, how := map[edge][]int32{}, map[edge]string{}
	note := func(e edge, evidence string, calls []int32) {
		torn[e] = append(torn[e], calls...)
		if how[e] == "" {
			how[e] = evidence
		}
		for _, i := range calls {
			s.matched[i] = true
		}
	}
	for _, g := range inOrder(groups) {
		calls := groups[g]
		rest := calls[:0:0]
		direct := map[string][]int32{}
		for _, i := range calls {
			if to := byMessage[s.spans[i].message]; s.spans[i].message != "" && to != "" && to != g.service {
				direct[to] = append(direct[to], i)
			} else {
				rest = append(rest, i)
			}
		}
		for _, to := range slices.Sorted(maps.Keys(direct)) {
			note(edge{g.service, to}, "both name the same message", direct[to])
		}
		if len(rest) == 0 {
			continue
		}
		if to, evidence := s.calleeOf(g, rest, siblings); to != "" {
			if served := s.served(rest, to); len(served) > 0 {
				note(edge{g.service, to}, evidence, served)
			}
		}
	}
	for e, calls := range torn {
		slices.Sort(calls)
		s.torn[e] = how[e]
		s.add(Tear{
			From: e.from, To: e.to, Kind: BrokenContext, Count: len(calls), Of: len(calls) + s.joined[e],
			Evidence: how[e], Examples: s.examples(calls),
			Text: fmt.Sprintf("The chain tears at %s: %d of %d calls from %s (%s) have no child, while %s serves them as roots of new traces (%s). Have %s take the trace context from the request or message (header or property traceparent) before it starts a span.",
				quote(e.to), len(calls), len(calls)+s.joined[e], quote(e.from), percent(len(calls), len(calls)+s.joined[e]), quote(e.to), how[e], quote(e.to)),
		})
	}
}

// siblings tells, for ways of calling, in which service calls of the same way
// arrived; "" where that is more than one.
func (s *search) siblings() map[callGroup]string {
	out := map[callGroup]string{}
	for i := range s.spans {
		sp := &s.spans[i]
		if !sp.isCall() || !s.called[i] {
			continue
		}
		g := s.group(int32(i))
		if to, ok := out[g]; ok && to != s.callee[i] {
			out[g] = ""
		} else if !ok {
			out[g] = s.callee[i]
		}
	}
	return out
}

// rootsByMessage tells which service served a message as a root; "" where that
// is more than one.
func (s *search) rootsByMessage() map[string]string {
	out := map[string]string{}
	for service, roots := range s.roots {
		for _, i := range roots {
			m := s.spans[i].message
			if m == "" {
				continue
			}
			if to, ok := out[m]; ok && to != service {
				out[m] = ""
			} else if !ok {
				out[m] = service
			}
		}
	}
	return out
}

// calleeOf returns the one service that calls of a group go to, and how that is
// known, or "".
func (s *search) calleeOf(g callGroup, calls []int32, siblings map[callGroup]string) (to, evidence string) {
	if to := s.loggers[g]; to != "" && len(s.starts(to)) > 0 {
		return to, "its log records name the messages"
	}
	named := map[string]string{}
	for service, roots := range s.roots {
		if service == g.service || service == "" {
			continue
		}
		if e := s.named(g, service, roots); e != "" {
			named[service] = e
		}
	}
	if len(named) == 0 && g.kind == "producer" {
		for service, spans := range s.begun {
			if service != g.service && service != "" && 2*s.withNameOf(g.task, spans) >= len(calls) {
				named[service] = "its traces begin with spans of the task's name"
			}
		}
	}
	if len(named) == 1 {
		for service, e := range named {
			return service, e
		}
	}
	if to := siblings[g]; to != "" && to != g.service {
		return to, "other calls of the same operation arrive there"
	}
	if len(named) > 1 {
		return "", ""
	}
	if g.kind == "producer" {
		return s.follows(g, calls)
	}
	return s.byTime(g, calls)
}

// withNameOf counts the spans that have the name of the task.
func (s *search) withNameOf(task string, spans []int32) int {
	n := 0
	for _, i := range spans {
		if namesTask(s.spans[i].name, task) {
			n++
		}
	}
	return n
}

// named tells whether the calls name the service or what it serves.
func (s *search) named(g callGroup, service string, roots []int32) string {
	host, _, _ := strings.Cut(g.peer, ":")
	label, _, _ := strings.Cut(host, ".")
	switch {
	case g.peer == "":
	case g.peer == service, host == service, label == service && !strings.HasPrefix(host, label+".0"):
		return "the calls name it as their peer"
	case s.hosts[host] == service:
		return "the calls go to a host of it"
	}
	for _, i := range roots {
		r := &s.spans[i]
		if g.kind == "producer" && g.task != "" && g.task == r.task {
			return fmt.Sprintf("both name the task %s", g.task)
		}
		if g.kind == "producer" && r.kind == "consumer" && g.task == "" && g.destination != "" && g.destination == r.destination {
			return fmt.Sprintf("both name the destination %s", g.destination)
		}
	}
	return ""
}

// served returns the calls at whose time the service began a trace.
func (s *search) served(calls []int32, service string) []int32 {
	var out []int32
	starts := s.starts(service)
	for _, i := range calls {
		roots := s.roots[service]
		from, to := s.spans[i].start-int64(slack), s.spans[i].end+int64(slack)
		if s.spans[i].kind == "producer" {
			roots, to = starts, s.spans[i].start+int64(queueTime)
		}
		if s.rootBetween(roots, from, to, math.MaxInt64) {
			out = append(out, i)
		}
	}
	return out
}

// rootBetween tells whether one of the roots began between from and to and ended
// by the time end.
func (s *search) rootBetween(roots []int32, from, to, end int64) bool {
	i, _ := slices.BinarySearchFunc(roots, from, func(i int32, t int64) int { return cmp.Compare(s.spans[i].start, t) })
	for ; i < len(roots) && s.spans[roots[i]].start <= to; i++ {
		if s.spans[roots[i]].end <= end {
			return true
		}
	}
	return false
}

// Limits of what times may tell.
const (
	leastCalls  = 5   // calls
	leastInside = 0.9 // share of calls with a root inside
	mostChance  = 0.2 // share that would have one by chance
)

// byTime returns the one service whose roots lie inside the calls in time, far
// more often than by chance.
func (s *search) byTime(g callGroup, calls []int32) (to, evidence string) {
	if len(calls) < leastCalls || g.kind != "client" {
		return "", ""
	}
	length := float64(s.report.To.Sub(s.report.SearchedFrom))
	found := ""
	for service, roots := range s.roots {
		if service == g.service || service == "" {
			continue
		}
		inside, total := 0, 0.0
		for _, i := range calls {
			c := &s.spans[i]
			if s.rootBetween(roots, c.start, c.end, c.end) {
				inside++
			}
			total += float64(c.end - c.start)
		}
		chance := 1 - math.Exp(-float64(len(roots))*total/float64(len(calls))/length)
		if float64(inside) < leastInside*float64(len(calls)) || chance > mostChance {
			continue
		}
		if found != "" {
			return "", ""
		}
		found = service
	}
	if found == "" {
		return "", ""
	}
	return found, "its roots lie inside the calls in time"
}
