package segments

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"

	"inquest/record"
	"inquest/sensor"
	"inquest/stats"
)

const (
	// most dimensions of a combination: with more, hardly a segment has the requests
	// to show anything.
	mostDims = 3
	// leastVisits is the number of requests of the incident from which a combination
	// is looked at: with fewer, even all of them failing says little among many.
	leastVisits = 10
	// valueCap bounds the values of one dimension.
	valueCap = 12
	// looked bounds the combinations that are calibrated, the most unequal first.
	looked = 20
)

// combination is the numbers of up to three values of different dimensions,
// ascending, 0 for none.
type combination [mostDims]uint16

func (c combination) size() int {
	n := 0
	for _, v := range c {
		if v != 0 {
			n++
		}
	}
	return n
}

// dims are the dimensions in which a service's requests differ, and the numbers of
// their values from 1 on, in the order of names and values.
type dims struct {
	values []sensor.Dimension // by number, from 1
	number map[sensor.Dimension]uint16
}

// newDims finds the dimensions with two values or more (that a request lacks one
// counts). Of those that say the same, the one that is preferred is kept.
func newDims(c *serviceCells) *dims {
	weight := map[string]map[string]int{}
	total := 0
	for _, slice := range c.slices {
		for _, s := range slice {
			total += s.Visits
			for _, d := range s.Dimensions {
				if weight[d.Name] == nil {
					weight[d.Name] = map[string]int{}
				}
				weight[d.Name][d.Value] += s.Visits
			}
		}
	}
	var names []string
	for _, name := range preference {
		told := 0
		for _, n := range weight[name] {
			told += n
		}
		if len(weight[name]) > 1 || len(weight[name]) == 1 && told < total {
			if !slices.ContainsFunc(names, func(o string) bool { return name != dimOperation && c.same(o, name) }) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	d := &dims{values: make([]sensor.Dimension, 1), number: map[sensor.Dimension]uint16{}}
	for _, name := range names {
		var values []string
		for v := range weight[name] {
			if v != otherValue {
				values = append(values, v)
			}
		}
		slices.SortFunc(values, func(a, b string) int {
			return cmp.Or(cmp.Compare(weight[name][b], weight[name][a]), cmp.Compare(a, b))
		})
		values = values[:min(len(values), valueCap)]
		slices.Sort(values)
		for _, v := range values {
			x := sensor.Dimension{Name: name, Value: v}
			d.number[x] = uint16(len(d.values))
			d.values = append(d.values, x)
		}
	}
	return d
}

// any reports whether requests differ in more than their operation, which is what
// other sensors compare.
func (d *dims) any() bool {
	return slices.ContainsFunc(d.values[1:], func(x sensor.Dimension) bool { return x.Name != dimOperation })
}

// same reports whether two dimensions tell the same requests apart.
func (c *serviceCells) same(a, b string) bool {
	there, back := map[string]string{}, map[string]string{}
	for _, slice := range c.slices {
		for _, s := range slice {
			x, y := value(s, a), value(s, b)
			if v, ok := there[x]; ok && v != y {
				return false
			}
			if v, ok := back[y]; ok && v != x {
				return false
			}
			there[x], back[y] = y, x
		}
	}
	return true
}

func (d *dims) names(c combination) []sensor.Dimension {
	var out []sensor.Dimension
	for _, v := range c {
		if v != 0 {
			out = append(out, d.values[v])
		}
	}
	return out
}

// useful reports whether a combination says more than the operation.
func (d *dims) useful(c combination) bool {
	return c.size() > 1 || c[0] != 0 && d.values[c[0]].Name != dimOperation
}

// has returns the numbers of a segment's values, ascending.
func (d *dims) has(s *sensor.Segment, into []uint16) []uint16 {
	into = into[:0]
	for _, x := range s.Dimensions { // by name, as the numbers are
		if n := d.number[x]; n != 0 {
			into = append(into, n)
		}
	}
	return into
}

// each calls fn for every combination of some of the values, the empty one too.
func each(has []uint16, fn func(combination)) {
	fn(combination{})
	for i, a := range has {
		fn(combination{a})
		for j := i + 1; j < len(has); j++ {
			fn(combination{a, has[j]})
			for _, b := range has[j+1:] {
				fn(combination{a, has[j], b})
			}
		}
	}
}

// cell is segments with the same values.
type cell struct {
	has   []uint16
	share stats.Share
}

// join takes segments with the same values together.
func (s *search) join(slices [][]*sensor.Segment) []*cell {
	known := map[string]*cell{}
	var out []*cell
	var has []uint16
	var key []byte
	for _, slice := range slices {
		for _, x := range slice {
			has, key = s.dims.has(x, has), key[:0]
			for _, n := range has {
				key = binary.BigEndian.AppendUint16(key, n)
			}
			c := known[string(key)]
			if c == nil {
				c = &cell{has: append([]uint16(nil), has...)}
				known[string(key)] = c
				out = append(out, c)
			}
			add(&c.share, s.share(x))
		}
	}
	return out
}

// counts are the requests of a combination that show something, in the incident
// and in the whole baseline.
type counts struct{ now, before stats.Share }

func add(to *stats.Share, x stats.Share) { to.K, to.N = to.K+x.K, to.N+x.N }

// search looks for the combination that carries a difference.
type search struct {
	cells *serviceCells
	dims  *dims
	share func(*sensor.Segment) stats.Share
	seen  map[combination]*counts
	whole *counts
}

func newSearch(c *serviceCells, d *dims, share func(*sensor.Segment) stats.Share) *search {
	s := &search{cells: c, dims: d, share: share, seen: map[combination]*counts{}}
	last := len(c.slices) - 1
	for _, x := range s.join(c.slices[last:]) {
		each(x.has, func(c combination) {
			n := s.seen[c]
			if n == nil {
				n = &counts{}
				s.seen[c] = n
			}
			add(&n.now, x.share)
		})
	}
	for c, n := range s.seen {
		if n.now.N < leastVisits && c != (combination{}) {
			delete(s.seen, c)
		}
	}
	for _, x := range s.join(c.slices[:last]) {
		each(x.has, func(c combination) {
			if n := s.seen[c]; n != nil {
				add(&n.before, x.share)
			}
		})
	}
	if s.whole = s.seen[combination{}]; s.whole == nil {
		s.whole = &counts{}
	}
	return s
}

// expected is how many of n requests would show it by a baseline share. A share of
// few requests is drawn to that of the whole, as if one more request had it.
func (s *search) expected(n float64, before stats.Share) float64 {
	all := (s.whole.before.K + 0.5) / (s.whole.before.N + 1)
	return n * (before.K + all) / (before.N + 1)
}

// candidate is a combination that may carry the difference.
type candidate struct {
	combination
	*counts
	gain float64 // log-likelihood of it apart from the rest, over all alike
	p    float64
}

// clearP is the p-value from which a combination counts as found.
const clearP = 0.01

// best returns the combination that carries the difference, nil when there is none:
// of those that are clear the one that sets itself off most, else the clearest.
// Its p-value is that of its change against what is left of each of its parts,
// corrected for the combinations tried; and not below that of its own change.
func (s *search) best() *candidate {
	var list []*candidate
	tried := 0
	for c, n := range s.seen {
		if !s.dims.useful(c) {
			continue
		}
		tried++
		if g := s.gain(n, s.whole); g > 0 {
			list = append(list, &candidate{combination: c, counts: n, gain: g})
		}
	}
	slices.SortFunc(list, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(b.gain, a.gain), cmp.Compare(a.size(), b.size()), slices.Compare(a.combination[:], b.combination[:]))
	})
	var best *candidate
	for _, c := range list[:min(len(list), looked)] {
		if c.p = stats.Any(s.explains(c), tried); c.p >= 0.5 {
			continue
		}
		x := s.compare(sensor.Key{}, c.combination, sensor.Range{})
		if x.Direction != record.DirectionUp && x.Direction != record.DirectionAppeared {
			continue
		}
		if c.p = math.Max(c.p, x.Strength); c.p <= clearP {
			return c
		}
		if c.p < 0.5 && (best == nil || c.p < best.p) {
			best = c
		}
	}
	return best
}

// gain compares what a combination shows with the rest of outer (Kulldorff's scan
// statistic): 0 when it shows no more than the rest does.
func (s *search) gain(n, outer *counts) float64 {
	e, rest, eRest := s.apart(n, outer)
	k := n.now.K
	if k == 0 || e <= 0 || eRest <= 0 || k/e <= rest/eRest || k <= e {
		return 0
	}
	scale := (k + rest) / (e + eRest)
	g := k * math.Log(k/(e*scale))
	if rest > 0 {
		g += rest * math.Log(rest/(eRest*scale))
	}
	return g
}

// apart returns what was expected of n, and what outer shows without n and what of
// that was expected.
func (s *search) apart(n, outer *counts) (expected, rest, restExpected float64) {
	before := stats.Share{K: outer.before.K - n.before.K, N: outer.before.N - n.before.N}
	return s.expected(n.now.N, n.before), outer.now.K - n.now.K, s.expected(outer.now.N-n.now.N, before)
}

// explains returns the p-value of a combination showing more than what is left of
// each of its parts, whether a cause adds to what is usual or multiplies it; 1 when a part is hardly more than the combination itself.
func (s *search) explains(c *candidate) float64 {
	worst := 0.0
	for _, part := range parts(c.combination) {
		outer := s.seen[part]
		if outer == nil || outer.now.N-c.now.N < leastVisits/2 {
			return 1
		}
		e, rest, eRest := s.apart(c.counts, outer)
		worst = math.Max(worst, atLeast(c.now.K, c.now.K+rest, e/(e+eRest)))
		worst = math.Max(worst, turned(c.now, e, stats.Share{K: rest, N: outer.now.N - c.now.N}, eRest))
	}
	return worst
}

// turned returns the p-value of a combination showing more than it would if as
// large a part of its requests turned from what was expected as of the others'
// (Abbott's formula). The ratio to what was expected alone misleads where all show
// it, or where hardly any did.
func turned(now stats.Share, e float64, rest stats.Share, eRest float64) float64 {
	part := 0.0
	if left := rest.N - eRest; left > 0 {
		part = math.Max(0, math.Min(1, (rest.K-eRest)/left))
	}
	rate := math.Min(1, (e+math.Max(0, now.N-e)*part)/now.N)
	p, up := stats.BetaPrior{A: rate*rest.N + 0.5, B: (1-rate)*rest.N + 0.5}.Tail(now.K, now.N)
	if !up {
		return 1
	}
	return p / 2
}

// parts returns the combinations of some of the values, the empty one too.
func parts(c combination) []combination {
	n := c.size()
	var out []combination
	for mask := range 1<<n - 1 {
		var x combination
		at := 0
		for i := range n {
			if mask&(1<<i) != 0 {
				x[at] = c[i]
				at++
			}
		}
		out = append(out, x)
	}
	return out
}

// atLeast returns the probability of k or more hits in n trials of probability p.
func atLeast(k, n, p float64) float64 {
	if k <= 0 {
		return 1
	}
	return mathext.RegIncBeta(k, n-k+1, p)
}

// compare calibrates a combination against the slices of the baseline; where they
// lack it, against those of all requests.
func (s *search) compare(k sensor.Key, c combination, r sensor.Range) sensor.Compared {
	past := make([]map[sensor.Key]*sensor.Hits, len(s.cells.slices)-1)
	have := 0
	for _, of := range [...]combination{c, {}} {
		have = 0
		for i := range past {
			h := s.in(i, of)
			past[i] = nil
			if h.N > 0 {
				have++
				past[i] = map[sensor.Key]*sensor.Hits{k: {Share: h}}
			}
		}
		if have >= leastSlices {
			break
		}
	}
	now := s.in(len(past), c)
	out := sensor.CompareShares(past, map[sensor.Key]*sensor.Hits{k: {Share: now}}, r)
	if len(out) == 0 {
		return sensor.Compared{Finding: record.Finding{
			Quadrant: k.Quadrant, Sensor: k.Sensor, Kind: k.Kind, Entity: k.Entity, Unit: k.Unit,
			From: sensor.Time(r.From), To: sensor.Time(r.To), Strength: 1, Direction: record.DirectionUp,
		}}
	}
	return out[0]
}

// in returns what the segments of a combination show in one slice.
func (s *search) in(slice int, c combination) stats.Share {
	var out stats.Share
	want := s.dims.names(c)
	for _, x := range s.cells.slices[slice] {
		if belongs(x, want) {
			add(&out, s.share(x))
		}
	}
	return out
}

func belongs(x *sensor.Segment, want []sensor.Dimension) bool {
	for _, d := range want {
		if value(x, d.Name) != d.Value {
			return false
		}
	}
	return true
}

// items returns examples of a combination in the incident.
func (s *search) items(c combination, kind string) []record.Item {
	var out []record.Item
	want := s.dims.names(c)
	for _, x := range s.cells.incident() {
		if !belongs(x, want) {
			continue
		}
		switch kind {
		case KindErrors:
			out = append(out, x.Failing...)
		case KindLatency:
			out = append(out, x.Slowest[:min(1, len(x.Slowest))]...)
		default:
			out = append(out, x.Poorest[:min(1, len(x.Poorest))]...)
		}
	}
	return out[:min(len(out), itemCap)]
}
