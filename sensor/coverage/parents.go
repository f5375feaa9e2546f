package coverage

import (
	"fmt"
	"maps"
	"slices"
)

// unknownParents finds spans whose parent is not stored.
func (s *search) unknownParents() {
	callers := s.callersByTrace()
	for _, service := range slices.Sorted(maps.Keys(s.orphans)) {
		orphans := s.orphans[service]
		votes := map[string]int{}
		for _, i := range orphans {
			if from, ok := callers[s.spans[i].trace]; ok && from != service && from != "" {
				votes[from]++
			}
		}
		from, evidence := "", ""
		for _, name := range slices.Sorted(maps.Keys(votes)) {
			if 2*votes[name] > len(orphans) {
				from, evidence = name, "calls of the same traces have no child"
			}
		}
		who := "Whoever calls it passes a trace context on but sends no spans: a proxy or service that is not instrumented, sampling that differs between services, or lost exports."
		if from != "" {
			who = fmt.Sprintf("Between %s and %s a span is missing: what stands between them passes a trace context on but sends no spans, or they were lost.", quote(from), quote(service))
		}
		s.add(Tear{
			From: from, To: service, Kind: UnknownParent, Count: len(orphans), Of: max(s.entries[service], len(orphans)),
			Evidence: evidence, Examples: s.examples(orphans),
			Text: fmt.Sprintf("%d of %d visits to %s (%s) begin with a span whose parent nobody sent. %s",
				len(orphans), max(s.entries[service], len(orphans)), quote(service), percent(len(orphans), max(s.entries[service], len(orphans))), who),
		})
	}
}

// callersByTrace tells which service has calls without a child in a trace; ""
// where several have.
func (s *search) callersByTrace() map[string]string {
	out := map[string]string{}
	for _, i := range s.open {
		sp := &s.spans[i]
		if from, ok := out[sp.trace]; ok && from != sp.service {
			out[sp.trace] = ""
		} else if !ok {
			out[sp.trace] = sp.service
		}
	}
	return out
}
