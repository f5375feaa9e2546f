package coverage

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"inquest/record"
	"inquest/store"
)

// Limits of the search for message ids in log records.
const (
	mentionsOfGroup = 50  // messages that are looked for, of one way of calling
	mentionsInAll   = 500 // messages that are looked for in all
	leastMessageID  = 12  // bytes; a shorter id may stand in a text by accident
)

// namedInLogs finds, for messages without a child, the one service whose log
// records name them: task queues log the id of each task that they run.
func (s *search) namedInLogs(groups map[callGroup][]int32) error {
	s.loggers = map[callGroup]string{}
	of, asked := map[string]callGroup{}, map[callGroup]int{}
	for _, g := range inOrder(groups) {
		calls := groups[g]
		if g.kind != "producer" {
			continue
		}
		for n := 0; n < len(calls) && asked[g] < mentionsOfGroup && len(of) < mentionsInAll; n += max(1, len(calls)/mentionsOfGroup) {
			id := s.spans[calls[n]].message
			if _, ok := of[id]; !ok && len(id) >= leastMessageID {
				of[id] = g
				asked[g]++
			}
		}
	}
	if len(of) == 0 {
		return nil
	}
	by, err := s.servicesNaming(of)
	if err != nil {
		return err
	}
	for g, n := range asked {
		found, services := "", 0
		for service, ids := range by[g] {
			if service != g.service && service != "" && 2*len(ids) >= n {
				found, services = service, services+1
			}
		}
		if services == 1 {
			s.loggers[g] = found
		}
	}
	return nil
}

// servicesNaming tells which of the messages the log records of each service
// name, in their text or a field.
func (s *search) servicesNaming(of map[string]callGroup) (map[callGroup]map[string]map[string]bool, error) {
	ids := slices.Sorted(maps.Keys(of))
	quoted := make([]string, len(ids))
	for i, id := range ids {
		quoted[i] = strconv.Quote(id)
	}
	var any, fields []string
	for _, id := range quoted {
		any = append(any, record.FieldBody+":"+id)
	}
	for _, name := range messageFields {
		any = append(any, fmt.Sprintf("%q:in(%s)", name, strings.Join(quoted, ", ")))
		fields = append(fields, strconv.Quote(name))
	}
	q := fmt.Sprintf(`{%q=%q} (%s) | fields "service.name", %s, %s`,
		record.FieldType, string(record.TypeLog), strings.Join(any, " or "), record.FieldBody, strings.Join(fields, ", "))
	by := map[callGroup]map[string]map[string]bool{}
	note := func(id, service string) {
		g, ok := of[id]
		if !ok {
			return
		}
		if by[g] == nil {
			by[g] = map[string]map[string]bool{}
		}
		if by[g][service] == nil {
			by[g][strings.Clone(service)] = map[string]bool{}
		}
		by[g][service][strings.Clone(id)] = true
	}
	err := s.records.QueryRecords(s.ctx, store.RecordQuery{LogsQL: q, From: s.report.From.Add(-s.o.Context), To: s.report.To.Add(s.o.Context)}, func(row []record.Field) error {
		service, body := "", ""
		for _, f := range row {
			switch f.Name {
			case "service.name":
				service = f.Value
			case record.FieldBody:
				body = f.Value
			}
		}
		for _, f := range row {
			if slices.Contains(messageFields, f.Name) {
				note(f.Value, service)
			}
		}
		for _, id := range ids {
			if strings.Contains(body, id) {
				note(id, service)
			}
		}
		return nil
	})
	return by, err
}

// inOrder returns the keys of groups, sorted.
func inOrder[V any](groups map[callGroup]V) []callGroup {
	return slices.SortedFunc(maps.Keys(groups), func(a, b callGroup) int {
		return cmp.Or(strings.Compare(a.service, b.service), strings.Compare(a.name, b.name), strings.Compare(a.kind, b.kind),
			strings.Compare(a.peer, b.peer), strings.Compare(a.destination, b.destination), strings.Compare(a.task, b.task))
	})
}

// starts returns the spans with which a service began a trace, by start.
func (s *search) starts(service string) []int32 {
	all := slices.Concat(s.roots[service], s.begun[service])
	slices.Sort(all) // spans are by start
	return all
}

// namesTask tells whether a span that a service began by itself has the name of
// the task: "shop.infer" or "infer", perhaps after a word as in "run shop.infer".
func namesTask(span, task string) bool {
	if task == "" {
		return false
	}
	if i := strings.LastIndexAny(span, " /"); i >= 0 {
		span = span[i+1:]
	}
	short := task[strings.LastIndexAny(task, ".:/")+1:]
	return span == task || len(short) >= 3 && span == short
}

// Limits of what times may tell of messages.
const (
	leastMessages = 20  // messages
	mostCovered   = 0.3 // share of all moments that a span follows as soon
	leastSigma    = 6.0 // standard deviations above chance
)

// follows returns the one service that begins traces right after the messages,
// far more often than chance would have it.
func (s *search) follows(g callGroup, calls []int32) (to, evidence string) {
	if len(calls) < leastMessages || g.kind != "producer" {
		return "", ""
	}
	services := map[string]bool{}
	for service := range s.roots {
		services[service] = true
	}
	for service := range s.begun {
		services[service] = true
	}
	delete(services, g.service)
	delete(services, "")
	for _, service := range slices.Sorted(maps.Keys(services)) {
		if !s.soonAfter(calls, s.starts(service)) {
			continue
		}
		if to != "" {
			return "", ""
		}
		to = service
	}
	if to == "" {
		return "", ""
	}
	return to, "it begins traces right after the messages, far more often than by chance"
}

// soonAfter tells whether starts follow the calls sooner than by chance. Half of
// the calls are followed within the median delay; of all moments meanwhile, far
// fewer may be.
func (s *search) soonAfter(calls, starts []int32) bool {
	first, last := s.spans[calls[0]].start, s.spans[calls[len(calls)-1]].start
	var delays []int64
	at := 0
	for _, i := range calls {
		for at < len(starts) && s.spans[starts[at]].start < s.spans[i].start {
			at++
		}
		if at == len(starts) {
			break
		}
		delays = append(delays, s.spans[starts[at]].start-s.spans[i].start)
	}
	if len(delays) < len(calls)/2+1 {
		return false
	}
	slices.Sort(delays)
	median := delays[len(calls)/2]
	if median > int64(queueTime) || last <= first {
		return false
	}
	covered, until := int64(0), first
	for _, i := range starts {
		from, to := max(s.spans[i].start-median, until), min(s.spans[i].start, last)
		if to > from {
			covered += to - from
			until = to
		}
	}
	share := float64(covered) / float64(last-first)
	sigma := math.Sqrt(max(share*(1-share), 1e-6) / float64(len(calls)))
	return share <= mostCovered && 0.5-share >= leastSigma*sigma
}

// untaken reports messages that no span takes, where neither names nor times
// tell for sure by whom they are.
func (s *search) untaken(groups map[callGroup][]int32, siblings map[callGroup]string) {
	type way struct{ from, to, logger string }
	ways, senders := map[way][]int32{}, map[string]bool{}
	for g, calls := range groups {
		matched := slices.ContainsFunc(calls, func(i int32) bool { return s.matched[i] })
		if _, arrives := siblings[g]; arrives || matched || g.kind != "producer" || s.taken[g] {
			continue
		}
		w := way{g.service, cmp.Or(g.destination, g.task, g.name), s.loggers[g]}
		ways[w] = append(ways[w], calls...)
		senders[g.service] = true
	}
	for w, calls := range ways {
		if len(calls) < leastCalls {
			continue
		}
		slices.Sort(calls)
		to, evidence := w.logger, ""
		if to != "" {
			evidence = fmt.Sprintf("log records of %s name them", quote(to))
		} else if to = s.onlyBeginner(w.from, calls); to != "" && len(senders) == 1 {
			evidence = fmt.Sprintf("%s alone begins traces that nobody asked for, and as many", quote(to))
		} else {
			to = ""
		}
		who := "Whoever takes them sends nothing, or nothing that tells: instrument it, and have it take traceparent and x-request-id from the message."
		if to != "" {
			who = fmt.Sprintf("Probably %s takes them: %s. Have %s take traceparent and x-request-id from the message.", quote(to), evidence, quote(to))
		}
		s.add(Tear{
			From: w.from, To: cmp.Or(to, w.to), Kind: Untaken, Count: len(calls), Of: len(calls), Evidence: evidence, Examples: s.examples(calls),
			Text: fmt.Sprintf("The chain tears behind %s: no span takes any of the %d messages that it sends to %s. %s", quote(w.from), len(calls), w.to, who),
		})
	}
}

// Limits of how many traces a service begins for each message.
const (
	leastTraces = 0.9 // some messages may still wait
	mostTraces  = 10
)

// onlyBeginner returns the one service that begins traces while the calls wait,
// about as many; "" where there are several, or one that sends no spans.
func (s *search) onlyBeginner(from string, calls []int32) string {
	found := ""
	begin, end := s.spans[calls[0]].start, s.spans[calls[len(calls)-1]].start+int64(queueTime)
	for i := range s.report.Services {
		v := &s.report.Services[i]
		if v.Name == from || v.Name == "" {
			continue
		}
		if v.Spans == 0 && v.Logs > 0 {
			return ""
		}
		n := 0
		for _, i := range s.begun[v.Name] {
			if t := s.spans[i].start; t >= begin && t < end {
				n++
			}
		}
		if n < leastCalls {
			continue
		}
		share := float64(n) / float64(len(calls))
		if found != "" || share < leastTraces || share > mostTraces {
			return ""
		}
		found = v.Name
	}
	return found
}
