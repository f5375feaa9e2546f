package sensor

import (
	"cmp"
	"math"
	"slices"

	"inquest/record"
)

// Unit names what is counted: the visits of a service, or what of its log can show
// a mark.
type Unit struct {
	Quadrant record.Quadrant
	Entity   record.Entity
}

// Mix is how often each value of a choice was taken in one slice.
type Mix struct {
	N float64 // choices made
	// Values counts each value; only K of it is used.
	Values map[string]*Hits
}

// mixCap bounds the values that are counted apart in one slice, valueCap those
// that are compared. More is no choice but a listing of data.
const (
	mixCap   = 64
	valueCap = 20
)

// otherValues stands for all values beyond a cap.
const otherValues = "*"

// Add takes one choice.
func (m *Mix) Add(value string, item record.Item) {
	m.N++
	h := m.Values[value]
	if h == nil {
		if len(m.Values) >= mixCap {
			value = otherValues
			h = m.Values[value]
		}
		if h == nil {
			h = &Hits{}
			m.Values[value] = h
		}
	}
	h.Add(true, item)
}

// Mix returns the choices of a measure. Its key's subject names what is chosen;
// findings have the subject "name=value".
func (p *Profile) Mix(k Key) *Mix {
	m := p.Mixes[k]
	if m == nil {
		m = &Mix{Values: map[string]*Hits{}}
		p.Mixes[k] = m
	}
	return m
}

// Mark notes that a unit has a mark, or, with hit false, that it could have had it.
// The trials are all units of the entity in the slice, whether they say anything
// of the mark or not: many senders write one only when it is set.
func (p *Profile) Mark(k Key, hit bool, item record.Item) {
	h := p.Marks[k]
	if h == nil {
		h = &Hits{}
		p.Marks[k] = h
	}
	if hit {
		h.Add(true, item)
	}
}

// units returns how many units of the key's entity a slice has.
func (p *Profile) units(k Key) float64 { return p.Units[Unit{k.Quadrant, k.Entity}] }

// compareMixes calibrates mixes and marks. A value that a slice does not show was
// taken by none of its units: absence is evidence here.
func compareMixes(base []*Profile, inc *Profile) []Compared {
	all := append(slices.Clone(base), inc)
	shares := make([]map[Key]*Hits, len(all))
	for i := range shares {
		shares[i] = map[Key]*Hits{}
	}
	mixes, marks := map[Key]bool{}, map[Key]bool{}
	for _, p := range all {
		for k := range p.Mixes {
			mixes[k] = true
		}
		for k := range p.Marks {
			marks[k] = true
		}
	}
	for k := range marks {
		for i, p := range all {
			spread(shares[i], k, p.Marks[k], p.units(k))
		}
	}
	for k := range mixes {
		expand(all, k, shares)
	}
	return CompareShares(shares[:len(base)], shares[len(base)], inc.Range)
}

func spread(to map[Key]*Hits, k Key, h *Hits, n float64) {
	out := &Hits{}
	if h != nil {
		out.K, out.Items = h.K, h.Items
	}
	if out.N = math.Max(n, out.K); out.N > 0 {
		to[k] = out
	}
}

// expand turns a mix into one share for each of its values. Where the choice was
// not made at all, before the incident or in it, its values are taken as shares of
// all units instead: the choice itself came or went.
func expand(all []*Profile, k Key, shares []map[Key]*Hits) {
	made := 0
	for _, p := range all[:len(all)-1] {
		if m := p.Mixes[k]; m != nil {
			made++
		}
	}
	last := all[len(all)-1]
	ofUnits := made < leastSlices || last.Mixes[k] == nil
	if ofUnits && last.units(k) == 0 {
		return // the service itself was not seen
	}
	kept := values(all, k)
	for i, p := range all {
		m := p.Mixes[k]
		n := 0.0
		if m != nil {
			n = m.N
		}
		if ofUnits {
			n = math.Max(n, p.units(k))
		}
		if n == 0 {
			continue
		}
		rest := &Hits{}
		for _, v := range sortedValues(m) {
			h := m.Values[v]
			if !kept[v] || v == otherValues {
				rest.K += h.K
				rest.Items = append(rest.Items, h.Items[:min(len(h.Items), itemCap-len(rest.Items))]...)
			}
		}
		for v := range kept {
			h := rest
			if v != otherValues {
				h = nil
				if m != nil {
					h = m.Values[v]
				}
			}
			x := k
			x.Subject = k.Subject + "=" + v
			spread(shares[i], x, h, n)
		}
	}
}

func sortedValues(m *Mix) []string {
	if m == nil {
		return nil
	}
	out := make([]string, 0, len(m.Values))
	for v := range m.Values {
		out = append(out, v)
	}
	slices.Sort(out)
	return out
}

// values returns the values of a mix that are compared: the most frequent before
// or in the incident. When there are more, the others are taken together.
func values(all []*Profile, k Key) map[string]bool {
	before, now := map[string]float64{}, map[string]float64{}
	total, totalNow := 0.0, 0.0
	for i, p := range all {
		m := p.Mixes[k]
		if m == nil {
			continue
		}
		for v, h := range m.Values {
			if i < len(all)-1 {
				before[v] += h.K
			} else {
				now[v] += h.K
			}
		}
		if i < len(all)-1 {
			total += m.N
		} else {
			totalNow += m.N
		}
	}
	weight := map[string]float64{}
	for v, n := range before {
		weight[v] = n / total
	}
	for v, n := range now {
		weight[v] = math.Max(weight[v], n/totalNow)
	}
	names := make([]string, 0, len(weight))
	for v := range weight {
		if v != otherValues {
			names = append(names, v)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(weight[b], weight[a]), cmp.Compare(a, b)) })
	kept := map[string]bool{}
	if len(names) > valueCap || weight[otherValues] > 0 {
		kept[otherValues] = true
		names = names[:min(len(names), valueCap)]
	}
	for _, v := range names {
		kept[v] = true
	}
	return kept
}

// mergeMixes adds the mixes, marks and units of p to out.
func mergeMixes(out, p *Profile) {
	for k, m := range p.Mixes {
		to := out.Mix(k)
		to.N += m.N
		for _, v := range sortedValues(m) {
			at := v
			if to.Values[at] == nil && len(to.Values) >= mixCap {
				at = otherValues
			}
			h := to.Values[at]
			if h == nil {
				h = &Hits{}
				to.Values[at] = h
			}
			from := m.Values[v]
			h.K, h.N = h.K+from.K, h.N+from.N
			h.Items = append(h.Items, from.Items[:min(len(from.Items), itemCap-len(h.Items))]...)
		}
	}
	addHits(out.Marks, p.Marks)
	for u, n := range p.Units {
		out.Units[u] += n
	}
}
