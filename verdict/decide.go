package verdict

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"inquest/record"
	"inquest/sensor/flow"
)

// margin of a confirmed verdict over the best hypothesis at another entity, as
// the logarithm of the odds: 20 to 1.
const confirmMargin = 2.995732273553991

// maxAlternatives bounds the alternatives of a verdict.
const maxAlternatives = 12

// decide writes the verdict from the weighed hypotheses.
func (e *Engine) decide(q Question, ev *evidence, f *facts, ranked []*hypothesis) *Verdict {
	v := &Verdict{
		State: StateInconclusive, Question: q, Window: outRange(ev.window),
		Quadrants: []record.Quadrant{}, Findings: []record.Finding{},
		Examined: ev.examined, NotExamined: ev.missing, Clocks: clocks(ev.requests.Clocks),
	}
	for _, b := range ev.baseline {
		v.Baseline = append(v.Baseline, outRange(b))
	}
	if v.Examined == nil {
		v.Examined = []Examined{}
	}
	w := &writer{f: f, ids: map[int]string{}, limit: e.opt.Findings}
	possible := len(f.entities) * len(e.opt.Catalog.Faults)
	var also []*hypothesis
	if len(ranked) > 0 {
		also = further(e.opt.Catalog, f, ranked[0])
		ranked = competing(f, ranked, also)
	}
	shares := believe(ranked, possible)
	others := distinct(ranked)
	if len(others) > 0 {
		lead := others[0]
		for _, h := range ranked {
			if h.entity == lead.entity || f.joined(h.entity, lead.entity) {
				v.Confidence += shares[h]
			}
		}
		v.State = state(f, lead, others, v.Confidence)
		if v.State != StateInconclusive {
			v.Cause, v.Quadrants = w.cause(lead), quads(lead)
			for _, h := range also {
				v.Also = append(v.Also, Further{
					Cause: *w.cause(h), State: stateOf(h), Onset: onset(q, ev, f, h),
					Confidence: h.sure(possible), Quadrants: quads(h),
				})
			}
			v.Onset = onset(q, ev, f, lead)
			w.chain(v, lead)
			w.counter(v, append([]*hypothesis{lead}, also...))
		}
	}
	for _, h := range alternatives(ranked, v.Cause != nil) {
		v.Alternatives = append(v.Alternatives, w.alternative(h, others[0], shares[h]))
	}
	v.Findings = w.out
	v.NextChecks = nextChecks(v, others)
	v.Summary = summary(v)
	return v
}

// distinct returns the best hypothesis of each entity, best first.
func distinct(ranked []*hypothesis) []*hypothesis {
	seen := map[record.Entity]bool{}
	var out []*hypothesis
	for _, h := range ranked {
		if !seen[h.entity] {
			seen[h.entity] = true
			out = append(out, h)
		}
	}
	return out
}

// alternatives picks the hypotheses that a verdict lists besides its cause: of
// each entity the best, and the next one of it, which may only mistake the kind.
func alternatives(ranked []*hypothesis, haveCause bool) []*hypothesis {
	count := map[record.Entity]int{}
	var out []*hypothesis
	for i, h := range ranked {
		count[h.entity]++
		if i == 0 && haveCause || count[h.entity] > 2 || len(out) >= maxAlternatives {
			continue
		}
		out = append(out, h)
	}
	return out
}

// believe turns scores into each hypothesis' share of the belief. All hypotheses
// that were possible start equal, and so does "none of them", together with as
// many ways to be wrong: a score that the best of so many reaches by chance wins
// nothing.
func believe(ranked []*hypothesis, possible int) map[*hypothesis]float64 {
	out := map[*hypothesis]float64{}
	if len(ranked) == 0 {
		return out
	}
	top := math.Max(ranked[0].score, math.Log(float64(max(1, possible))))
	total := math.Exp(math.Log(float64(max(1, possible))) - top)
	for _, h := range ranked {
		w := math.Exp(h.score - top)
		out[h] = w
		total += w
	}
	for k := range out {
		out[k] /= total
	}
	return out
}

// state says how sure the leading hypothesis is. Others compete with it unless
// they are joined to it: a model and the service that serves it, a pod and its
// GPU.
func state(f *facts, lead *hypothesis, others []*hypothesis, confidence float64) State {
	gap := math.Inf(1)
	for _, o := range others[1:] {
		if !f.joined(lead.entity, o.entity) {
			gap = lead.score - o.score
			break
		}
	}
	switch {
	case len(lead.quadrants()) >= 2 && !lead.assumed() && gap >= confirmMargin && confidence >= 0.95:
		return StateConfirmed
	case confidence >= 0.5 && len(lead.quadrants()) >= 1:
		return StateSuspected
	default:
		return StateInconclusive
	}
}

// writer collects the findings that a verdict refers to and names them.
type writer struct {
	f     *facts
	ids   map[int]string
	out   []record.Finding
	limit int
}

func (w *writer) refer(findings []int, most int) []string {
	var out []string
	for _, i := range findings {
		if len(out) >= most {
			break
		}
		id := w.ids[i]
		if id == "" {
			if len(w.out) >= w.limit {
				continue
			}
			id = fmt.Sprintf("f%d", len(w.out)+1)
			w.ids[i] = id
			x := w.f.findings[i]
			x.ID = id
			if x.Text == "" {
				x.Text = describe(&x)
			}
			w.out = append(w.out, x)
		}
		if !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}

// mostPerPiece bounds the findings that one expectation brings into a verdict.
const mostPerPiece = 4

func (w *writer) evidence(h *hypothesis) []string {
	var out []string
	for i := range h.pieces {
		if h.pieces[i].p <= essentialP && !h.pieces[i].expect.Absent {
			for _, id := range w.refer(h.pieces[i].findings, mostPerPiece) {
				if !slices.Contains(out, id) {
					out = append(out, id)
				}
			}
		}
	}
	return out
}

func (w *writer) weights(h *hypothesis) []Weight {
	out := make([]Weight, 0, len(h.pieces))
	for i := range h.pieces {
		p := &h.pieces[i]
		x := Weight{
			Quadrant: p.expect.Quadrant, Text: p.expect.Text, Strength: p.p, Nats: p.weight, Examined: p.examined,
		}
		if p.p <= essentialP {
			x.Findings = w.refer(p.findings, mostPerPiece)
		}
		out = append(out, x)
	}
	return out
}

// quads are the quadrants of a hypothesis as a list that JSON writes as one.
func quads(h *hypothesis) []record.Quadrant {
	if out := h.quadrants(); out != nil {
		return out
	}
	return []record.Quadrant{}
}

func (w *writer) cause(h *hypothesis) *Cause {
	c := &Cause{
		Entity: h.entity, Fault: h.fault.ID, Title: h.fault.Title, Mechanism: h.fault.Mechanism,
		Remedy: h.fault.Remedy, Check: h.fault.Check, Findings: w.evidence(h), Weights: w.weights(h),
	}
	if b := w.f.breakOf(h); b != nil {
		after, before := b.Region()
		c.Operation = b.Operation
		c.Code = &CodeRegion{After: after, Before: before, Missing: b.Missing}
		for pod := range b.Pods {
			if pod != "" {
				c.Instances = append(c.Instances, record.Entity{Kind: record.EntityPod, Name: pod})
			}
		}
	}
	for i := range h.pieces {
		p := &h.pieces[i]
		if p.expect.Symptom || p.expect.Absent || p.p > essentialP || len(p.findings) == 0 {
			continue
		}
		x := &w.f.findings[p.findings[0]]
		switch x.Quadrant {
		case record.QuadrantMetrics, record.QuadrantResources:
			if c.Metric == "" {
				c.Metric = x.Subject
			}
		case record.QuadrantTraces:
			if c.Operation == "" {
				c.Operation = x.Subject
			}
		}
		if x.Entity.Kind == record.EntityPod && x.Entity != h.entity && !slices.Contains(c.Instances, x.Entity) {
			c.Instances = append(c.Instances, x.Entity)
		}
	}
	slices.SortFunc(c.Instances, record.Entity.Compare)
	return c
}

// breakOf returns the strongest break of requests in the hypothesis' entity, if
// the fault is about the paths of requests.
func (f *facts) breakOf(h *hypothesis) *flow.Break {
	want := ""
	for i := range h.pieces {
		for _, k := range h.pieces[i].expect.Kinds {
			if h.pieces[i].expect.Essential && (k == flow.KindAborts || k == flow.KindGoesOn) {
				want = k
			}
		}
	}
	if want == "" {
		return nil
	}
	for _, b := range f.breaks {
		if b.Service == h.entity.Name && b.Lost == "" && 2*b.Logs >= b.Visits && b.Aborts() == (want == flow.KindAborts) {
			return b
		}
	}
	return nil
}

func (w *writer) alternative(h, lead *hypothesis, share float64) Hypothesis {
	a := Hypothesis{
		Entity: h.entity, Fault: h.fault.ID, Title: h.fault.Title, Score: h.score, Probability: share,
		Quadrants: quads(h), Findings: w.evidence(h), Weights: w.weights(h),
	}
	if h != lead {
		a.Against = against(h)
	}
	return a
}

// against says what weighs most against a hypothesis.
func against(h *hypothesis) string {
	worst := -1
	for i := range h.pieces {
		if h.pieces[i].examined && h.pieces[i].weight < 0 && (worst < 0 || h.pieces[i].weight < h.pieces[worst].weight) {
			worst = i
		}
	}
	if worst < 0 {
		return "the evidence for it is weaker"
	}
	return "expected but not seen: " + h.pieces[worst].expect.Text
}

// counter lists what speaks against the first of the causes, and what none of
// them explains.
func (w *writer) counter(v *Verdict, causes []*hypothesis) {
	h := causes[0]
	for i := range h.pieces {
		p := &h.pieces[i]
		switch {
		case p.examined && p.expect.Absent && p.weight < 0:
			v.Counter = append(v.Counter, Counter{
				Kind: "contradiction", Quadrant: p.expect.Quadrant, Text: "expected but not so: " + p.expect.Text,
				Findings: w.refer(p.findings, mostPerPiece),
			})
		case p.examined && p.weight < 0:
			v.Counter = append(v.Counter, Counter{
				Kind: "missing", Quadrant: p.expect.Quadrant, Text: "expected but not seen: " + p.expect.Text,
			})
		}
	}
	w.unexplained(v, causes)
}

// unexplained names strong findings about the causes of things at entities that
// neither are the cause nor call it.
func (w *writer) unexplained(v *Verdict, causes []*hypothesis) {
	mine := map[record.Entity]bool{}
	for _, h := range causes {
		for _, e := range append(w.f.above(h.entity), h.entity) {
			for _, s := range w.f.self(e) {
				mine[s] = true
			}
		}
	}
	best := map[record.Entity]int{}
	tried := max(1, len(w.f.findings))
	for i := range w.f.findings {
		x := &w.f.findings[i]
		// Strong after correction for all that was looked at.
		if mine[x.Entity] || x.Peer != nil && mine[*x.Peer] || x.Strength*float64(tried) > strongP {
			continue
		}
		if b, ok := best[x.Entity]; !ok || x.Strength < w.f.findings[b].Strength {
			best[x.Entity] = i
		}
	}
	var idx []int
	for _, i := range best {
		idx = append(idx, i)
	}
	slices.SortFunc(idx, func(a, b int) int {
		return cmp.Or(cmp.Compare(w.f.findings[a].Strength, w.f.findings[b].Strength), cmp.Compare(a, b))
	})
	for _, i := range idx[:min(len(idx), 5)] {
		x := &w.f.findings[i]
		ids := w.refer([]int{i}, 1)
		v.Counter = append(v.Counter, Counter{
			Kind: "unexplained", Quadrant: x.Quadrant, Findings: ids,
			Text: fmt.Sprintf("%s at %s is not explained by this cause", strings.ReplaceAll(x.Kind, "_", " "), x.Entity),
		})
	}
}

// believeBar is the score from which a hypothesis among so many is far likelier
// than none of them.
func believeBar(possible int) float64 { return math.Log(float64(max(1, possible))) + confirmMargin }
