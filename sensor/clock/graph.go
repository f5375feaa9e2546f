package clock

import (
	"cmp"
	"slices"
)

// graph joins hosts by pairs.
type graph struct {
	hosts  int
	pairs  []*pair
	groups [][]int // hosts that pairs join, the largest first
	// base is each host's offset as it was for most of the time, against the
	// median host of its group, which is reference[group].
	base      []estimate
	reference []int
}

type estimate struct{ offset, err int64 }

func newGraph(hosts int, pairs []*pair) *graph {
	g := &graph{hosts: hosts, pairs: pairs}
	g.group()
	g.base = make([]estimate, hosts)
	tree := g.tree(func(p *pair) *run { return p.longest() })
	for _, group := range g.groups {
		// From anywhere first, to learn which host is in the middle.
		from := make([]estimate, hosts)
		tree.spread(group[0], from)
		order := slices.Clone(group)
		slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(from[a].offset, from[b].offset), cmp.Compare(a, b)) })
		ref := order[len(order)/2]
		if len(order)%2 == 0 { // the same of the two whichever is ahead
			ref = min(ref, order[len(order)/2-1])
		}
		g.reference = append(g.reference, ref)
		tree.spread(ref, g.base)
	}
	return g
}

// group finds which hosts are joined.
func (g *graph) group() {
	root := make([]int, g.hosts)
	for i := range root {
		root[i] = i
	}
	joined := make([]bool, g.hosts)
	for _, p := range g.pairs {
		unite(root, int(p.a), int(p.b))
		joined[p.a], joined[p.b] = true, true
	}
	byRoot := map[int][]int{}
	for h := range root {
		if joined[h] {
			r := find(root, h)
			byRoot[r] = append(byRoot[r], h)
		}
	}
	for _, hosts := range byRoot {
		g.groups = append(g.groups, hosts)
	}
	slices.SortFunc(g.groups, func(a, b []int) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a[0], b[0])) })
}

func find(root []int, i int) int {
	for root[i] != i {
		root[i] = root[root[i]]
		i = root[i]
	}
	return i
}

func unite(root []int, a, b int) bool {
	a, b = find(root, a), find(root, b)
	if a == b {
		return false
	}
	root[max(a, b)] = min(a, b)
	return true
}

// tree is a tree of the tightest pairs in each group.
type tree struct{ next [][]branch }

type branch struct {
	host        int
	offset, err int64 // of the host's clock against that at the other end
}

// tree joins the hosts by the pairs whose runs have the smallest errors.
func (g *graph) tree(runOf func(*pair) *run) tree {
	type edge struct {
		p *pair
		r *run
	}
	edges := make([]edge, len(g.pairs))
	for i, p := range g.pairs {
		edges[i] = edge{p, runOf(p)}
	}
	slices.SortFunc(edges, func(x, y edge) int {
		return cmp.Or(cmp.Compare(x.r.err, y.r.err), cmp.Compare(x.r.high-x.r.low, y.r.high-y.r.low),
			cmp.Compare(x.p.a, y.p.a), cmp.Compare(x.p.b, y.p.b))
	})
	root := make([]int, g.hosts)
	for i := range root {
		root[i] = i
	}
	t := tree{make([][]branch, g.hosts)}
	for _, e := range edges {
		if a, b := int(e.p.a), int(e.p.b); unite(root, a, b) {
			t.next[a] = append(t.next[a], branch{b, e.r.offset, e.r.err})
			t.next[b] = append(t.next[b], branch{a, -e.r.offset, e.r.err})
		}
	}
	return t
}

// spread gives every host of a tree its offset from one, errors added up.
func (t tree) spread(from int, out []estimate) {
	type visit struct{ host, above int }
	out[from] = estimate{}
	queue := []visit{{from, -1}}
	for len(queue) > 0 {
		v := queue[0]
		queue = queue[1:]
		for _, b := range t.next[v.host] {
			if b.host != v.above {
				out[b.host] = estimate{out[v.host].offset + b.offset, out[v.host].err + b.err}
				queue = append(queue, visit{b.host, v.host})
			}
		}
	}
}

// at returns every host's offset at a time. When the reference itself moved, all
// others seem to move together; that most of them stayed is likelier.
func (g *graph) at(t int64) []estimate {
	out := make([]estimate, g.hosts)
	tree := g.tree(func(p *pair) *run { return p.at(t) })
	for k, group := range g.groups {
		tree.spread(g.reference[k], out)
		moved := make([]int64, len(group))
		for i, h := range group {
			moved[i] = out[h].offset - g.base[h].offset
		}
		slices.Sort(moved)
		m := moved[(len(moved)-1)/2]
		if moved[len(moved)/2]-m > step {
			m = 0 // half against half tells nothing
		}
		if max(m, -m) <= step {
			continue
		}
		for _, h := range group {
			out[h].offset -= m
		}
	}
	return out
}
