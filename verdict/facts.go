package verdict

import (
	"slices"
	"strings"

	"inquest/record"
	"inquest/sensor"
	"inquest/sensor/flow"
	"inquest/sensor/logs"
	"inquest/sensor/segments"
)

// facts are the findings of an incident, indexed, and how entities are joined.
// Findings that mean nothing by themselves are among them: that a measure was
// taken and is as usual is evidence too.
type facts struct {
	findings []record.Finding
	past     []history // of each finding
	breaks   []*flow.Break
	byKind   map[factKey][]int                 // indexes of findings, strongest first
	ways     map[factKey][]int                 // findings with a peer, by the peer
	entities []record.Entity                   // that can be at fault
	serves   map[record.Entity]record.Entity   // pod → service
	parts    map[record.Entity][]record.Entity // service → pods, model → pods
	hosts    map[record.Entity][]record.Entity // pod → node, GPU
	hosted   map[record.Entity][]record.Entity // node, GPU → pods
	callers  map[record.Entity][]record.Entity
	callees  map[record.Entity][]record.Entity
	edges    []record.Edge
	has      map[record.Quadrant]bool
	question Question
}

// history is what the baseline showed of a measure.
type history struct {
	past     []sensor.Past
	distance float64
	series   bool // of the slices of series, not those of requests
}

type factKey struct {
	entity record.Entity
	kind   string
	quad   record.Quadrant
}

func newFacts(ev *evidence, q Question) *facts {
	f := &facts{
		byKind: map[factKey][]int{}, ways: map[factKey][]int{},
		serves: map[record.Entity]record.Entity{}, parts: map[record.Entity][]record.Entity{},
		hosts: map[record.Entity][]record.Entity{}, hosted: map[record.Entity][]record.Entity{},
		callers: map[record.Entity][]record.Entity{}, callees: map[record.Entity][]record.Entity{},
		has: ev.has, question: q,
	}
	all := sensor.Compare(ev.baseRequests, ev.requests)
	j := flow.Judge(ev.voc, ev.baseRequests, ev.requests)
	all = append(all, j.Findings...)
	f.breaks = j.Breaks
	all = append(all, segments.Judge(ev.baseRequests, ev.requests)...)
	all = append(all, logs.Judge(ev.voc, ev.baseRequests, ev.requests)...)
	requests := len(all)
	all = append(all, sensor.Compare(ev.baseSeries, ev.series)...)
	all = append(all, overSeries(ev)...)
	// What the sensors say of a quadrant that was not examined is no evidence: a
	// statement is not missing because its log could not be read.
	for i, c := range all {
		if ev.has[c.Quadrant] {
			f.findings = append(f.findings, c.Finding)
			f.past = append(f.past, history{c.Past, c.Distance, i >= requests})
		}
	}
	f.take(ev.noted)
	f.topology(ev)
	for i := range f.findings {
		x := &f.findings[i]
		k := factKey{x.Entity, x.Kind, x.Quadrant}
		f.byKind[k] = append(f.byKind[k], i)
		if x.Peer != nil {
			k.entity = *x.Peer
			f.ways[k] = append(f.ways[k], i)
		}
	}
	return f
}

// topology joins entities from the edges that were seen in incident or baseline.
func (f *facts) topology(ev *evidence) {
	edges := map[record.Edge]bool{}
	for _, e := range f.edges {
		edges[e] = true
	}
	f.edges = f.edges[:0]
	profiles := append(append([]*sensor.Profile{ev.requests, ev.series}, ev.baseRequests...), ev.baseSeries...)
	for _, p := range profiles {
		for e := range p.Edges {
			edges[e] = true
		}
	}
	for e := range edges {
		f.edges = append(f.edges, e)
	}
	slices.SortFunc(f.edges, record.Edge.Compare)
	// What measures others' pods neither runs in them nor can be what is wrong.
	observers := sensor.Observers(f.edges)
	f.edges = slices.DeleteFunc(f.edges, func(e record.Edge) bool { return observers[e.To] || observers[e.From] })
	set := map[record.Entity]bool{}
	for _, e := range f.edges {
		switch {
		case e.Kind == record.EdgeCalls:
			f.callees[e.From] = append(f.callees[e.From], e.To)
			f.callers[e.To] = append(f.callers[e.To], e.From)
		case e.Kind == record.EdgeServes && e.To.Kind == record.EntityService:
			f.serves[e.From] = e.To
			f.parts[e.To] = append(f.parts[e.To], e.From)
		case e.Kind == record.EdgeServes:
			f.parts[e.To] = append(f.parts[e.To], e.From)
		case e.Kind == record.EdgeRunsOn:
			f.hosts[e.From] = append(f.hosts[e.From], e.To)
			f.hosted[e.To] = append(f.hosted[e.To], e.From)
		}
		set[e.From], set[e.To] = true, true
	}
	for i := range f.findings {
		if e := f.findings[i].Entity; !observers[e] {
			set[e] = true
		}
	}
	f.joinDependencies(set)
	for e := range set {
		// A pod speaks for its service; only one that belongs to none stands for
		// itself.
		if e.Kind == record.EntityPod && !f.serves[e].IsZero() {
			continue
		}
		f.entities = append(f.entities, e)
	}
	slices.SortFunc(f.entities, record.Entity.Compare)
}

// felt returns the entities at which the question's symptom was felt: the one it
// names, else those that have the operation or metric it names.
func (f *facts) felt() []record.Entity {
	s := f.question.Symptom
	if s == nil {
		return nil
	}
	if s.Entity != nil {
		return []record.Entity{*s.Entity}
	}
	var out []record.Entity
	for i := range f.findings {
		x := &f.findings[i]
		metric := x.Quadrant == record.QuadrantMetrics || x.Quadrant == record.QuadrantResources
		name, _, _ := strings.Cut(x.Subject, "{")
		if (s.Operation != "" && !metric && x.Subject == s.Operation || s.Metric != "" && metric && name == s.Metric) &&
			!slices.Contains(out, x.Entity) {
			out = append(out, x.Entity)
		}
	}
	return out
}

// joinDependencies makes the service that carries a dependency's name, as the
// host of its address or plainly, a part of it: it sends no spans, but metrics.
func (f *facts) joinDependencies(set map[record.Entity]bool) {
	for e := range set {
		if e.Kind != record.EntityDependency {
			continue
		}
		host, _, _ := strings.Cut(e.Name, ":")
		host, _, _ = strings.Cut(host, ".")
		for _, name := range []string{e.Name, host} {
			s := record.Entity{Kind: record.EntityService, Name: name}
			if set[s] && !slices.Contains(f.parts[e], s) {
				f.parts[e] = append(append(f.parts[e], s), f.parts[s]...)
			}
		}
	}
}

// self returns the entities whose findings are findings of e.
func (f *facts) self(e record.Entity) []record.Entity {
	out := append([]record.Entity{e}, f.parts[e]...)
	for _, p := range f.parts[e] {
		if p.Kind == record.EntityService { // of a model's version
			for _, q := range f.parts[p] {
				if !slices.Contains(out, q) {
					out = append(out, q)
				}
			}
		}
		for _, h := range f.hosts[p] {
			if h.Kind == record.EntityGPU {
				out = append(out, h)
			}
		}
	}
	return out
}

// joined reports whether two entities share a part, so that they do not compete
// as causes: a model and the service that serves it, a pod and its GPU.
func (f *facts) joined(a, b record.Entity) bool {
	mine := f.self(a)
	return slices.ContainsFunc(f.self(b), func(e record.Entity) bool { return slices.Contains(mine, e) })
}

// above returns all that call e, directly or not.
func (f *facts) above(e record.Entity) []record.Entity {
	seen := map[record.Entity]bool{e: true}
	queue := []record.Entity{e}
	var out []record.Entity
	for len(queue) > 0 {
		for _, c := range f.callers[queue[0]] {
			if !seen[c] {
				seen[c] = true
				out = append(out, c)
				queue = append(queue, c)
			}
		}
		queue = queue[1:]
	}
	return out
}

// reaches reports whether a calls b, directly or not, or is it.
func (f *facts) reaches(a, b record.Entity) bool {
	if a == b || f.serves[a] == b {
		return true
	}
	return slices.Contains(f.above(b), a)
}
