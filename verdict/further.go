package verdict

import (
	"math"
	"slices"
	"strings"

	"inquest/catalog"
	"inquest/record"
)

// maxFurther bounds the causes that a verdict names besides the first.
const maxFurther = 3

// further returns causes besides the lead that broke at the same time: each
// stands on strong evidence that none before it explains, and would win if it alone
// had been seen, by more when the evidence is from a single quadrant. An unknown
// fault is never one; what points to it is told as unexplained.
func further(c *catalog.Catalog, f *facts, lead *hypothesis) []*hypothesis {
	causes := []*hypothesis{lead}
	bar := believeBar(len(f.entities) * len(c.Faults))
	rest := f
	for len(causes) <= maxFurther {
		rest = rest.without(rest.explained(causes[len(causes)-1]))
		next := (*hypothesis)(nil)
		for _, h := range weigh(c, rest) {
			if h.score <= bar {
				break
			}
			apart := !slices.ContainsFunc(causes, func(o *hypothesis) bool {
				return f.related(o.entity, h.entity) || o.fault == h.fault && f.connected(o.entity, h.entity)
			})
			strong := len(h.quadrants())
			if apart && h.specific() && (strong >= 2 || strong == 1 && h.score > bar+coincidence) {
				next = h
				break
			}
		}
		if next == nil {
			break
		}
		causes = append(causes, next)
	}
	return causes[1:]
}

// specific reports whether the fault says what it needs: one that needs nothing
// in particular fits anything.
func (h *hypothesis) specific() bool {
	return slices.ContainsFunc(h.pieces, func(p piece) bool { return p.expect.Essential && !p.expect.Absent })
}

// related reports whether two entities are joined, or one runs on the other.
func (f *facts) related(a, b record.Entity) bool {
	return f.joined(a, b) || f.carries(a, b) || f.carries(b, a)
}

// connected reports whether one of two entities calls the other, directly or not:
// what breaks in one way at both spread from one to the other.
func (f *facts) connected(a, b record.Entity) bool {
	touches := func(a, b record.Entity) bool {
		mine := f.self(b)
		return slices.ContainsFunc(f.above(a), func(e record.Entity) bool { return slices.Contains(mine, e) })
	}
	return touches(a, b) || touches(b, a)
}

// carries reports whether something of b runs on a.
func (f *facts) carries(a, b record.Entity) bool {
	return slices.ContainsFunc(f.self(b), func(e record.Entity) bool { return slices.Contains(f.hosts[e], a) })
}

// own are kinds of findings that no fault elsewhere makes at those who call it: what
// an entity is given, made of, or does by itself. All others travel upwards along
// the calls: what waits for a slow answer gets slow, queues, times out and logs it.
var own = map[string]bool{
	"load_time": true, "connect_time": true, "pause": true, "orphan_spans": true, "broken_context": true,
	"clock_offset": true, "token_mismatch": true,
	"input_tokens": true, "input_size": true, "sampling": true, "model_version": true, "change": true,
	"device": true, "adapter": true, "cache_miss": true, "truncated": true, "unseen": true, "out_of_range": true,
	"nan": true, "input_stats": true, "repetition": true, "expert_share": true, "expert_skew": true,
	"gc_time": true, "cpu_throttling": true, "fragmentation": true, "oom_kill": true, "gpu_memory": true,
	"gpu_error": true, "gpu_temperature": true, "gpu_throttling": true, "gpu_clock": true, "network_loss": true,
	"disk_io": true, "disk_usage": true, "cache_usage": true, "cache_hits": true, "evictions": true, "preemption": true,
	"path_symlink": true, "version_mismatch": true, "file_mismatch": true, "file_changed": true,
}

// travelling are topics of messages that callers of what broke write too.
var travelling = map[string]bool{"message_timeout": true, "message_retry": true, "message_connection": true, "message_unavailable": true}

// load are kinds that follow how many requests come: with fewer or more calls they
// change in everything that is called.
var load = map[string]bool{
	"traffic": true, "throughput": true, "tokens": true, "running": true, "batch_size": true, "cpu": true,
	"network_io": true, "gpu": true, "gpu_power": true, "log_rate": true, "cache_lookups": true, "connections": true,
	"call_count": true, "input_tokens": true, "output_tokens": true, "cached_tokens": true,
}

// explained are the findings that a cause accounts for: all of its own and of what
// it runs on, what travels to its callers, and what follows from the load that it
// passes on or does not.
func (f *facts) explained(h *hypothesis) map[int]bool {
	out := map[int]bool{}
	for i := range h.pieces {
		for _, k := range h.pieces[i].findings {
			out[k] = true
		}
	}
	mine, up, down, flooded := map[record.Entity]bool{}, map[record.Entity]bool{}, map[record.Entity]bool{}, map[record.Entity]bool{}
	mark := func(set map[record.Entity]bool, e record.Entity) {
		for _, s := range f.self(e) {
			set[s] = true
		}
	}
	roots := []record.Entity{h.entity}
	for _, pod := range f.hosted[h.entity] { // of a node or GPU
		roots = append(roots, pod)
		if s := f.serves[pod]; !s.IsZero() {
			roots = append(roots, s)
		}
	}
	for _, p := range f.self(h.entity) {
		for _, host := range f.hosts[p] {
			mine[host] = true
		}
	}
	for _, r := range roots {
		mark(mine, r)
		for _, e := range f.above(r) {
			mark(up, e)
		}
	}
	for _, e := range f.below(append(roots, keys(up)...)) {
		set := down
		if f.more(e) {
			set = flooded
		}
		for _, s := range f.self(e) {
			set[s] = true
			for _, host := range f.hosts[s] {
				down[host] = true
			}
		}
	}
	for i := range f.findings {
		x := &f.findings[i]
		switch {
		case mine[x.Entity], flooded[x.Entity], x.Peer != nil && (mine[*x.Peer] || flooded[*x.Peer]):
			out[i] = true
		case up[x.Entity] && travels(x.Kind), down[x.Entity] && load[x.Kind]:
			out[i] = true
		}
	}
	return out
}

// more reports whether clearly more calls than usual come to an entity.
func (f *facts) more(e record.Entity) bool {
	for _, s := range f.self(e) {
		for _, i := range f.byKind[factKey{s, "traffic", record.QuadrantTraces}] {
			if x := &f.findings[i]; x.Strength <= strongP && x.Direction == record.DirectionUp && x.Observed > 1.5*x.Expected {
				return true
			}
		}
	}
	return false
}

// travels reports whether a kind of finding reaches the callers of what broke.
func travels(kind string) bool {
	if strings.HasPrefix(kind, "message_") {
		return travelling[kind]
	}
	base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(kind, "_at_limit"), "_trend"), "_sawtooth")
	return !own[base]
}

// below returns all that is called by any of the entities, directly or not.
func (f *facts) below(from []record.Entity) []record.Entity {
	seen := map[record.Entity]bool{}
	queue := slices.Clone(from)
	var out []record.Entity
	for len(queue) > 0 {
		for _, c := range f.callees[queue[0]] {
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

func keys(m map[record.Entity]bool) []record.Entity {
	out := make([]record.Entity, 0, len(m))
	for e := range m {
		out = append(out, e)
	}
	slices.SortFunc(out, record.Entity.Compare)
	return out
}

// without returns the facts as if some findings had not been made. They then speak
// neither for nor against anything.
func (f *facts) without(gone map[int]bool) *facts {
	g := *f
	filter := func(in map[factKey][]int) map[factKey][]int {
		out := make(map[factKey][]int, len(in))
		for k, idx := range in {
			kept := slices.DeleteFunc(slices.Clone(idx), func(i int) bool { return gone[i] })
			if len(kept) > 0 {
				out[k] = kept
			}
		}
		return out
	}
	g.byKind, g.ways = filter(f.byKind), filter(f.ways)
	return &g
}

// competing leaves of the ranked hypotheses those that compete with the lead: what is
// related to a further cause stands beside it, not against it.
func competing(f *facts, ranked, also []*hypothesis) []*hypothesis {
	return slices.DeleteFunc(slices.Clone(ranked), func(h *hypothesis) bool {
		return slices.ContainsFunc(also, func(o *hypothesis) bool { return f.related(o.entity, h.entity) })
	})
}

// sure is the confidence in a further cause: its share against all that was possible once the
// causes before it are known.
func (h *hypothesis) sure(possible int) float64 {
	return 1 / (1 + math.Exp(math.Log(float64(max(1, possible)))-h.score))
}

// stateOf says how sure a further cause is: it has no rivals, or it would not be one.
func stateOf(h *hypothesis) State {
	if len(h.quadrants()) >= 2 {
		return StateConfirmed
	}
	return StateSuspected
}
