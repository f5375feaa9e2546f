package logs

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"inquest/record"
	"inquest/sensor"
	"inquest/stats"
)

const (
	// KindFirstSeen is that a service logs templates that the baseline never shows.
	KindFirstSeen = "first_seen"
	// KindVanished is that templates are missing that the baseline always shows,
	// though the requests came that wrote them.
	KindVanished = "vanished"
)

const (
	// leastRows is the number of requests or bursts from which a template counts: a
	// text that came once may hold a value that was not recognised.
	leastRows = 2
	// regular is the share of slices that show a template which may vanish.
	regular = 0.9
)

// statement is a template of a service, or a place in its code.
type statement struct{ service, name string }

// counted is how often a statement was reached, by slice; the incident is the last.
type counted struct {
	amount     []float64       // requests and bursts
	operations map[string]bool // whose requests reached it
	item       record.Item     // the first of the incident, else the last of the baseline
	incident   bool            // item is of the incident
}

// inventory is all statements of baseline and incident.
type inventory struct {
	statements map[statement]*counted
	visits     []map[sensor.Context]float64 // by slice
	in         []map[placed]float64         // visits that reach it, by slice
	wrote      []map[string]bool            // services that wrote anything, by slice
	as         map[string]string            // templates that differ in a value only
}

type placed struct {
	context sensor.Context
	name    string
}

// seen compares which templates each service writes.
func seen(voc *sensor.Vocabulary, base []*sensor.Profile, inc *sensor.Profile) []sensor.Compared {
	var all []*sensor.Profile
	for _, p := range base {
		if p.Logs > 0 {
			all = append(all, p)
		}
	}
	if len(all) < leastSlices || inc.Logs == 0 {
		return nil
	}
	slices.SortStableFunc(all, func(a, b *sensor.Profile) int { return cmp.Compare(a.Range.From, b.Range.From) })
	all = append(all, inc)
	v := take(voc, all)
	services := map[string][]string{} // statements by service
	for k := range v.statements {
		services[k.service] = append(services[k.service], k.name)
	}
	names := make([]string, 0, len(services))
	for n := range services {
		names = append(names, n)
	}
	slices.Sort(names)
	news := v.newcomers(all, names, services)
	var out []sensor.Compared
	for _, s := range names {
		wrote := 0
		for _, w := range v.wrote[:len(all)-1] {
			if w[s] {
				wrote++
			}
		}
		if wrote < leastSlices || !v.wrote[len(all)-1][s] {
			continue // a service that begins or ends is no template that does
		}
		slices.Sort(services[s])
		out = append(out, v.first(s, services[s], news, all), v.vanished(s, services[s], all))
	}
	return out
}

// take counts the statements of all slices.
func take(voc *sensor.Vocabulary, all []*sensor.Profile) *inventory {
	v := &inventory{statements: map[statement]*counted{}}
	var templates []string
	known := map[string]bool{}
	note := func(name string) {
		if !known[name] {
			known[name] = true
			templates = append(templates, name)
		}
	}
	type reached struct{ context, path int32 }
	paths := make([]map[reached]float64, len(all))
	items := map[reached]record.Item{}
	for i, p := range all {
		paths[i] = map[reached]float64{}
		for _, t := range p.Flows {
			for _, x := range t.Visits {
				k := reached{x.Context, x.Path}
				if paths[i][k]++; paths[i][k] == 1 {
					items[k] = record.Item{Time: sensor.Time(x.At), TraceID: t.ID, SpanID: x.SpanID}
				}
			}
		}
		for k := range paths[i] {
			for _, e := range voc.Path(k.path) {
				if ev := voc.Event(e); ev.Kind == sensor.EventLog {
					note(ev.Name)
				}
			}
		}
		for k := range p.Rates {
			if k.Sensor == (Templates{}).Name() {
				note(k.Subject)
			}
		}
	}
	v.as = sensor.MergeTemplates(templates)
	for i, p := range all {
		visits, in, wrote := map[sensor.Context]float64{}, map[placed]float64{}, map[string]bool{}
		for k, n := range paths[i] {
			ctx := voc.Context(k.context)
			visits[ctx] += n
			done := map[string]bool{}
			for _, e := range voc.Path(k.path) {
				ev := voc.Event(e)
				if ev.Kind != sensor.EventLog {
					continue
				}
				name := v.name(ev.Name)
				if done[name] {
					continue
				}
				done[name] = true
				wrote[ctx.Service] = true
				in[placed{ctx, name}] += n
				c := v.counted(statement{ctx.Service, name}, len(all))
				c.amount[i] += n
				c.operations[ctx.Operation] = true
				item := items[k]
				item.Text = name
				c.example(item, i == len(all)-1)
			}
		}
		for k, h := range p.Rates {
			if k.Sensor != (Templates{}).Name() || k.Entity.Kind != record.EntityService {
				continue
			}
			wrote[k.Entity.Name] = true
			c := v.counted(statement{k.Entity.Name, v.name(k.Subject)}, len(all))
			c.amount[i] += h.K
			for _, item := range h.Items {
				c.example(item, i == len(all)-1)
			}
		}
		v.visits, v.in, v.wrote = append(v.visits, visits), append(v.in, in), append(v.wrote, wrote)
	}
	return v
}

// name is the template that stands for a group.
func (v *inventory) name(template string) string {
	if !strings.Contains(template, " ") {
		return template // a place in code, or one word
	}
	if as, ok := v.as[template]; ok {
		return as
	}
	return template
}

func (v *inventory) counted(k statement, n int) *counted {
	c := v.statements[k]
	if c == nil {
		c = &counted{amount: make([]float64, n), operations: map[string]bool{}}
		v.statements[k] = c
	}
	return c
}

// example keeps the first of the incident, else the latest of the baseline; the
// choice does not depend on the order in which those of a slice come.
func (c *counted) example(item record.Item, incident bool) {
	order := cmp.Or(item.Time.Compare(c.item.Time), strings.Compare(item.TraceID+item.SpanID, c.item.TraceID+c.item.SpanID))
	switch {
	case c.item.Time.IsZero(), incident && !c.incident:
	case incident && order < 0, !incident && order > 0:
	default:
		return
	}
	c.item, c.incident = item, incident
}

// newcomers returns, for each service, what was seen once in it.
func (v *inventory) newcomers(all []*sensor.Profile, names []string, services map[string][]string) map[string]*newcomers {
	base := all[:len(all)-1]
	out := map[string]*newcomers{}
	for _, s := range names {
		n := newNewcomers(base, all[len(base)].Seconds)
		for _, name := range services[s] {
			first, last, amount := -1, -1, 0.0
			for i := range base {
				if x := v.statements[statement{s, name}].amount[i]; x > 0 {
					if first < 0 {
						first = i
					}
					last, amount = i, amount+x
				}
			}
			// What the first slices show may be old.
			if first >= n.width {
				n.see(last-first, amount)
			}
		}
		out[s] = &n
	}
	return out
}

// first finds the templates that the baseline never shows. How telling the most
// frequent one is: how often the service, and all services on average, have a new
// one that is as frequent.
func (v *inventory) first(service string, names []string, news map[string]*newcomers, all []*sensor.Profile) sensor.Compared {
	last := len(all) - 1
	x := v.finding(service, KindFirstSeen, all[last])
	var fresh []string
	best := 0.0
	for _, name := range names {
		c := v.statements[statement{service, name}]
		if slices.ContainsFunc(c.amount[:last], func(n float64) bool { return n > 0 }) || c.amount[last] < leastRows {
			continue
		}
		best = max(best, c.amount[last])
		fresh = append(fresh, name)
	}
	if len(fresh) == 0 {
		return x
	}
	slices.SortStableFunc(fresh, func(a, b string) int {
		return cmp.Compare(v.statements[statement{service, b}].amount[last], v.statements[statement{service, a}].amount[last])
	})
	others := 0.0
	for _, n := range news {
		others += n.expected(best) - 0.5/n.blocks
	}
	own := news[service]
	rate := own.expected(best) - 0.5/own.blocks + (others+0.5/own.blocks)/float64(len(news))
	f := &x.Finding
	f.Strength = stats.Any(rate, 1)
	f.Direction, f.Observed, f.Subject = record.DirectionAppeared, float64(len(fresh)), fresh[0]
	x.Distance, f.Effect = best, best
	f.Text = fmt.Sprintf("%s logs %s that it never did before", service, listed(fresh))
	v.cite(f, service, fresh, all[last].Range)
	return x
}

// vanished finds the templates that nearly all slices of the baseline show and the
// incident does not, by the operations that reached them.
func (v *inventory) vanished(service string, names []string, all []*sensor.Profile) sensor.Compared {
	last := len(all) - 1
	x := v.finding(service, KindVanished, all[last])
	tried, best := 0, 1.0
	var gone []string
	for _, name := range names {
		c := v.statements[statement{service, name}]
		present := 0
		for _, n := range c.amount[:last] {
			if n > 0 {
				present++
			}
		}
		if float64(present) < regular*float64(last) {
			continue
		}
		tried++
		if c.amount[last] > 0 {
			continue
		}
		p := v.missing(service, name, c, all)
		if p < best {
			best = p
			gone = append([]string{name}, gone...)
		} else {
			gone = append(gone, name)
		}
	}
	if len(gone) == 0 {
		return x
	}
	f := &x.Finding
	f.Strength = stats.Any(best, tried)
	f.Direction, f.Observed, f.Expected, f.Subject = record.DirectionVanished, 0, float64(len(gone)), gone[0]
	x.Distance, f.Effect = -float64(len(gone)), float64(len(gone))
	f.Text = fmt.Sprintf("%s logs no longer %s", service, listed(gone))
	v.cite(f, service, gone, all[last].Range)
	return x
}

// missing is how often a statement is never reached by chance.
func (v *inventory) missing(service, name string, c *counted, all []*sensor.Profile) float64 {
	last := len(all) - 1
	past, now := make([]stats.Share, 0, last), stats.Share{}
	counts := make([]stats.Count, 0, last)
	for i := range all {
		n, k := 0.0, 0.0
		for op := range c.operations {
			ctx := sensor.Context{Service: service, Operation: op}
			n, k = n+v.visits[i][ctx], k+v.in[i][placed{ctx, name}]
		}
		if i == last {
			now.N = n
			break
		}
		counts = append(counts, stats.Count{K: c.amount[i], T: all[i].Seconds})
		if n > 0 {
			past = append(past, stats.Share{K: k, N: n})
		}
	}
	if len(c.operations) == 0 {
		p, _ := stats.FitCounts(counts, 0.02).Tail(0, all[last].Seconds)
		return p
	}
	if len(past) < leastSlices || now.N == 0 {
		return 1 // the requests did not come
	}
	p, _ := stats.FitShares(past).Tail(0, now.N)
	return p
}

func (v *inventory) finding(service, kind string, inc *sensor.Profile) sensor.Compared {
	return sensor.Compared{Finding: record.Finding{
		Quadrant: record.QuadrantLogs, Sensor: "logs/seen", Entity: sensor.Service(service), Kind: kind,
		From: sensor.Time(inc.Range.From), To: sensor.Time(inc.Range.To), Direction: record.DirectionUp, Strength: 1, Unit: "{template}",
	}}
}

// cite adds examples.
func (v *inventory) cite(f *record.Finding, service string, names []string, r sensor.Range) {
	var items []record.Item
	for _, n := range names[:min(3, len(names))] {
		items = append(items, v.statements[statement{service, n}].item)
	}
	f.Evidence = sensor.Evidence(sensor.Key{Quadrant: f.Quadrant, Entity: f.Entity}, r, items)
}

// listed names a few templates.
func listed(names []string) string {
	var parts []string
	for i, n := range names {
		if i == 3 {
			parts = append(parts, fmt.Sprintf("and %d more", len(names)-i))
			break
		}
		if r := []rune(n); len(r) > 100 {
			n = string(r[:100]) + "…"
		}
		parts = append(parts, strconv.Quote(n))
	}
	return strings.Join(parts, ", ")
}
