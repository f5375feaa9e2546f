package coverage

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"inquest/admit/bind"
	"inquest/record"
)

// place is a service's part in a trace.
type place struct{ trace, service string }

// requestIDs compares the request ids of callers and callees in each trace.
func (s *search) requestIDs() error {
	ids := map[place]map[string]bool{}
	q := fmt.Sprintf(`%s %s:* %s | %s | stats by (%s, "service.name", id) count() n`,
		both, record.FieldTraceID, hasRequestID, requestIDAs, record.FieldTraceID)
	err := s.report.count(s.ctx, s.records, q, func(row map[string]string) {
		id := bind.CleanRequestID(row["id"])
		if id == "" {
			return
		}
		p := place{strings.Clone(row[record.FieldTraceID]), strings.Clone(row["service.name"])}
		if ids[p] == nil {
			ids[p] = map[string]bool{}
		}
		ids[p][strings.Clone(id)] = true
	})
	if err != nil {
		return err
	}
	edges := slices.SortedFunc(maps.Keys(s.traces), func(a, b edge) int {
		return cmp.Or(strings.Compare(a.from, b.from), strings.Compare(a.to, b.to))
	})
	for _, e := range edges {
		if e.from != e.to {
			s.compareRequestIDs(e, ids)
		}
	}
	return nil
}

func (s *search) compareRequestIDs(e edge, ids map[place]map[string]bool) {
	var changed, lost []Example
	of := 0
	for _, trace := range slices.Sorted(maps.Keys(s.traces[e])) {
		above, below := ids[place{trace, e.from}], ids[place{trace, e.to}]
		if len(above) == 0 {
			continue
		}
		of++
		switch {
		case len(below) == 0:
			lost = append(lost, Example{Time: s.firstOf(trace), TraceID: trace, Text: fmt.Sprintf("%s has %s, %s none", quote(e.from), list(above), quote(e.to))})
		case apart(above, below):
			changed = append(changed, Example{Time: s.firstOf(trace), TraceID: trace, Text: fmt.Sprintf("%s has %s, %s has %s", quote(e.from), list(above), quote(e.to), list(below))})
		}
	}
	s.add(Tear{
		From: e.from, To: e.to, Kind: RequestIDRewritten, Count: len(changed), Of: of, Examples: s.earliest(changed),
		Text: fmt.Sprintf("The request id changes between %s and %s in %d of %d traces (%s). %s must take the id that comes with the request (header x-request-id, baggage request.id) and make one only where none comes.",
			quote(e.from), quote(e.to), len(changed), of, percent(len(changed), of), quote(e.to)),
	})
	if callee := s.report.service(e.to); callee != nil && callee.RequestID.Own == 0 && callee.Binding.RequestID == 0 {
		s.add(Tear{
			From: e.from, To: e.to, Kind: RequestIDLost, Count: len(lost), Of: of, Examples: s.earliest(lost),
			Text: fmt.Sprintf("The request id of %s is on no record of %s in %d of %d traces (%s). Have %s pass it on (header x-request-id, baggage request.id) and %s put it on its records as request.id.",
				quote(e.from), quote(e.to), len(lost), of, percent(len(lost), of), quote(e.from), quote(e.to)),
		})
	}
}

// firstOf is when the first span of the trace began. spans are by start.
func (s *search) firstOf(trace string) time.Time {
	if s.begins == nil {
		s.begins = map[string]int64{}
		for i := range s.spans {
			if _, ok := s.begins[s.spans[i].trace]; !ok {
				s.begins[s.spans[i].trace] = s.spans[i].start
			}
		}
	}
	return time.Unix(0, s.begins[trace]).UTC()
}

// earliest cuts examples to the first ones in time.
func (s *search) earliest(all []Example) []Example {
	slices.SortFunc(all, func(a, b Example) int {
		return cmp.Or(a.Time.Compare(b.Time), strings.Compare(a.TraceID, b.TraceID))
	})
	return slices.Clone(all[:min(len(all), s.o.Examples)])
}

func apart(a, b map[string]bool) bool {
	for id := range a {
		if b[id] {
			return false
		}
	}
	return true
}

// list names up to three ids.
func list(ids map[string]bool) string {
	all := slices.Sorted(maps.Keys(ids))
	text := strings.Join(all[:min(len(all), 3)], ", ")
	if len(all) > 3 {
		text += ", …"
	}
	return text
}
