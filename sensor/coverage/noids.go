package coverage

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// half is the share of log records that decides whether a service's records
// carry trace ids.
const half = 0.5

// carries tells whether the records of a service carry trace ids: its log
// records, or its spans where it has no log records.
func carries(v *Service) bool {
	if v.Logs == 0 {
		return v.Spans > 0
	}
	return float64(v.logsWithTrace) >= half*float64(v.Logs)
}

// servicesWithoutIDs finds services whose log records carry no trace id, while
// those of their callers do.
func (s *search) servicesWithoutIDs() {
	for i := range s.report.Services {
		v := &s.report.Services[i]
		if v.Logs == 0 || carries(v) {
			continue
		}
		without := v.Logs - v.logsWithTrace
		callers := s.callersOf(v)
		for _, c := range callers {
			why := fmt.Sprintf("It sends no spans either: nothing takes the trace context from %s's calls. Instrument %s, and have it take traceparent and x-request-id from the request or message.", quote(c.service), quote(v.Name))
			if v.Spans > 0 {
				why = fmt.Sprintf("It does send spans: have its logging add the trace id of the current span (the logging instrumentation of the OpenTelemetry SDK of %s).", quote(v.Name))
			}
			if c.service == "" {
				why = fmt.Sprintf("Who calls it cannot be told. Instrument %s, and have it take traceparent and x-request-id from the request or message.", quote(v.Name))
			}
			bound := ""
			if n := v.Binding.ByRequestID + v.Binding.ByProcess; n > 0 {
				bound = fmt.Sprintf(" Binding finds the trace of %d of them.", n)
			}
			s.add(Tear{
				From: c.service, To: v.Name, Kind: NoIDs, Count: without, Of: v.Logs, Evidence: c.evidence, Examples: c.examples,
				Text: fmt.Sprintf("The chain tears at %s: %d of its %d log records (%s) carry no trace id%s.%s %s",
					quote(v.Name), without, v.Logs, percent(without, v.Logs), whileCallers(c.service), bound, why),
			})
		}
	}
}

func whileCallers(service string) string {
	if service == "" {
		return ", while other services' do"
	}
	return fmt.Sprintf(", while those of %s, which calls it, do", quote(service))
}

// caller is a service that calls another, and how that is known.
type caller struct {
	service, evidence string
	examples          []Example
}

// callersOf returns the services that call v and whose records carry ids.
func (s *search) callersOf(v *Service) []caller {
	found := map[string]caller{}
	for e := range s.joined {
		if e.to == v.Name && e.from != v.Name {
			found[e.from] = caller{e.from, "its spans are the parents", nil}
		}
	}
	for e, how := range s.torn {
		if e.to == v.Name && e.from != v.Name {
			found[e.from] = caller{e.from, how, nil}
		}
	}
	if len(found) == 0 {
		found = s.openCallers(v)
	}
	var out []caller
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if c := s.report.service(name); c != nil && carries(c) {
			out = append(out, found[name])
		}
	}
	if len(out) > 0 {
		return out
	}
	for i := range s.report.Services {
		if o := &s.report.Services[i]; o.Name != v.Name && carries(o) {
			return []caller{{"", "", nil}}
		}
	}
	return nil
}

// openCallers finds who calls a service that has no joined spans: calls without
// a child that name it; else, the only service whose messages nobody takes.
func (s *search) openCallers(v *Service) map[string]caller {
	named, producers := map[string][]int32{}, map[string][]int32{}
	how := map[string]string{}
	for _, i := range s.open {
		sp := &s.spans[i]
		if s.matched[i] || sp.service == v.Name {
			continue
		}
		g := s.group(i)
		if word := namesService(sp, v.Name); word != "" {
			named[sp.service] = append(named[sp.service], i)
			how[sp.service] = fmt.Sprintf("its calls without a child name %s", word)
			s.taken[g] = true
		} else if s.loggers[g] == v.Name {
			named[sp.service] = append(named[sp.service], i)
			how[sp.service] = fmt.Sprintf("log records of %s name its messages", quote(v.Name))
			s.taken[g] = true
		}
		if sp.kind == "producer" {
			producers[sp.service] = append(producers[sp.service], i)
		}
	}
	found := map[string]caller{}
	for from, calls := range named {
		found[from] = caller{from, how[from], s.examples(calls)}
	}
	if len(found) == 0 && len(producers) == 1 && v.Spans == 0 {
		for from, calls := range producers {
			if !s.onlyBlind(v, from) {
				break
			}
			for _, i := range calls {
				s.taken[s.group(i)] = true
			}
			found[from] = caller{from, "it alone sends messages that no span takes, and this is the only service without spans", s.examples(calls)}
		}
	}
	return found
}

// onlyBlind tells whether v is the only service that may take messages unseen:
// none else has records and no spans, or begins traces that nobody asked for.
func (s *search) onlyBlind(v *Service, sender string) bool {
	for i := range s.report.Services {
		o := &s.report.Services[i]
		if o.Name != v.Name && (o.Spans == 0 && o.Logs > 0 || o.Name != sender && len(s.begun[o.Name]) >= leastCalls) {
			return false
		}
	}
	return true
}

// namesService tells by which word a call names a service, or "": its peer,
// destination or task has the service's name, or shares its first word.
func namesService(sp *span, service string) string {
	if service == "" {
		return ""
	}
	host, _, _ := strings.Cut(sp.peer, ":")
	for _, word := range []string{sp.peer, host, sp.destination, sp.task} {
		if word != "" && strings.EqualFold(word, service) {
			return word
		}
	}
	own := words(service)
	if len(own) == 0 {
		return ""
	}
	for _, text := range []string{host, sp.destination, sp.task} {
		theirs := words(text)
		if text == "" || len(theirs) == 0 {
			continue
		}
		// "celery" and celery-worker, "worker.tasks.run" and worker.
		if theirs[0] == own[0] || len(own) > 1 && slices.Contains(own, theirs[0]) && len(theirs) == 1 {
			return text
		}
	}
	return ""
}

func words(s string) []string {
	w := strings.FieldsFunc(strings.ToLower(s), func(c rune) bool { return c == '-' || c == '_' || c == '.' || c == '/' || c == ' ' })
	return slices.DeleteFunc(w, func(x string) bool { return cmp.Compare(len(x), 3) < 0 })
}
