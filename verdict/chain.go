package verdict

import (
	"fmt"
	"slices"
	"strings"

	"inquest/record"
	"inquest/stats"
)

// maxChain bounds the links of a chain of effects.
const maxChain = 8

// chain follows the calls from the cause outwards to where it was felt: each
// caller, direct or not, whose latency, errors or paths changed.
func (w *writer) chain(v *Verdict, h *hypothesis) {
	v.Chain = append(v.Chain, Effect{
		Entity: h.entity, Text: fmt.Sprintf("%s at %s", lower(h.fault.Title), h.entity.Name), Findings: v.Cause.Findings,
	})
	done := map[record.Entity]bool{h.entity: true}
	queue := []record.Entity{h.entity}
	for len(queue) > 0 && len(v.Chain) < maxChain {
		below := queue[0]
		queue = queue[1:]
		for _, c := range w.f.callers[below] {
			if done[c] || len(v.Chain) >= maxChain {
				continue
			}
			done[c] = true
			idx := w.f.symptoms(c)
			if len(idx) == 0 {
				continue
			}
			x := &w.f.findings[idx[0]]
			v.Chain = append(v.Chain, Effect{
				Entity: c, Via: &record.Edge{Kind: record.EdgeCalls, From: c, To: below},
				Text:     fmt.Sprintf("%s calls %s: %s %s", c.Name, below.Name, strings.ReplaceAll(x.Kind, "_", " "), word(x.Direction)),
				Findings: w.refer(idx, 2),
			})
			queue = append(queue, c)
		}
	}
}

// symptomKinds are what travels along calls.
var symptomKinds = []string{"latency", "error_rate", "errors", "broken_flow_logs", "broken_flow_spans", "success_rate"}

// symptoms returns the strong findings of an entity about what travels along
// calls, the strongest first.
func (f *facts) symptoms(e record.Entity) []int {
	var all []int
	tried := 0
	for _, s := range f.self(e) {
		for _, kind := range symptomKinds {
			for _, q := range record.Quadrants {
				idx := f.byKind[factKey{s, kind, q}]
				tried += len(idx)
				all = append(all, idx...)
			}
		}
	}
	all = slices.DeleteFunc(all, func(i int) bool { return stats.Any(f.findings[i].Strength, tried) > essentialP })
	slices.SortStableFunc(all, func(a, b int) int {
		switch {
		case f.findings[a].Strength < f.findings[b].Strength:
			return -1
		case f.findings[a].Strength > f.findings[b].Strength:
			return 1
		}
		return 0
	})
	return all
}
