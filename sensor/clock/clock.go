// Package clock estimates how far the clocks of hosts are apart, from calls that
// cross between them. The callee's stay lies within the caller's wait, so each
// call bounds the offset between the two clocks from below and from above (the
// bounds of NTP's four time stamps). Bounds of one pair of hosts are intersected
// as long as they agree, which also shows where a clock stepped or drifted, and
// the tightest pairs of hosts join all clocks that calls can join.
package clock

import (
	"cmp"
	"slices"
	"time"
)

// Call is one call between two hosts, which are numbered from 0.
type Call struct {
	From, To int32
	// At is when the call began, ns, by the caller's clock.
	At int64
	// Low and High bound the callee's clock minus the caller's, ns: with a call
	// that waits from c1 to c4 and a stay from s1 to s4, s4−c4 and s1−c1.
	Low, High int64
}

// Bound returns the call that a caller's wait and a callee's stay make, both in
// ns by their own clocks. It is false where the stay is longer than the wait:
// then the callee went on after its caller, and bounds nothing.
func Bound(from, to int32, waitFrom, waitTo, stayFrom, stayTo int64) (Call, bool) {
	c := Call{From: from, To: to, At: waitFrom, Low: stayTo - waitTo, High: stayFrom - waitFrom}
	return c, c.Low <= c.High
}

// Offset is one host's clock in a stretch of time.
type Offset struct {
	From, To int64 // ns, From inclusive, To exclusive
	// Offset is what the clock shows more than the reference, Error the bound of
	// how far that may be off, ns.
	Offset, Error int64
}

// Sure reports whether the offset is larger than its error.
func (o Offset) Sure() bool { return max(o.Offset, -o.Offset) > o.Error }

// Host is what is known of one host's clock.
type Host struct {
	// Group numbers the hosts that calls join, the largest group is 0; −1 for a
	// host that no call joins to any other.
	Group int
	// Offsets cover the whole stretch, by time; nil when Group is −1.
	Offsets []Offset
}

// At returns the offset at a time, ns; the nearest one outside of the stretch.
func (h *Host) At(t int64) (Offset, bool) {
	if len(h.Offsets) == 0 {
		return Offset{}, false
	}
	i, _ := slices.BinarySearchFunc(h.Offsets, t, func(o Offset, t int64) int { return cmp.Compare(o.To, t+1) })
	return h.Offsets[min(i, len(h.Offsets)-1)], true
}

const (
	// resolution bounds the error from below: many clocks are read in ms.
	resolution = int64(time.Millisecond)
	// cell is the step in which offsets are told; at a drift of 100 ppm a clock
	// moves by 1 ms in it.
	cell = int64(10 * time.Second)
	// step is the change of a pair's offset that makes a cell of its own.
	step = int64(10 * time.Millisecond)
	// maxSteps bounds such cells; clocks that step more often are not followed.
	maxSteps = 200
)

// Estimate returns what calls tell of the clocks of so many hosts between from
// and to, ns. The order of calls does not matter.
func Estimate(hosts int, calls []Call, from, to int64) []Host {
	out := make([]Host, hosts)
	for i := range out {
		out[i].Group = -1
	}
	pairs := pairsOf(calls)
	if len(pairs) == 0 {
		return out
	}
	g := newGraph(hosts, pairs)
	for k, group := range g.groups {
		for _, h := range group {
			out[h].Group = k
		}
	}
	cuts := cutTimes(pairs, from, to)
	for i := 0; i+1 < len(cuts); i++ {
		at := g.at((cuts[i] + cuts[i+1]) / 2)
		for h := range out {
			if out[h].Group < 0 {
				continue
			}
			o := Offset{From: cuts[i], To: cuts[i+1], Offset: at[h].offset, Error: at[h].err}
			if last := len(out[h].Offsets) - 1; last >= 0 && out[h].Offsets[last].Offset == o.Offset && out[h].Offsets[last].Error == o.Error {
				out[h].Offsets[last].To = o.To
				continue
			}
			out[h].Offsets = append(out[h].Offsets, o)
		}
	}
	return out
}

// cutTimes are the edges of the cells: a grid that is the same for every stretch,
// and the times at which a pair stepped.
func cutTimes(pairs []*pair, from, to int64) []int64 {
	cuts := []int64{from, to}
	for t := (from/cell + 1) * cell; t < to; t += cell {
		cuts = append(cuts, t)
	}
	var steps []int64
	for _, p := range pairs {
		for i := 1; i < len(p.runs); i++ {
			d := p.runs[i].offset - p.runs[i-1].offset
			if t := p.runs[i].from; max(d, -d) > step && t > from && t < to {
				steps = append(steps, t)
			}
		}
	}
	slices.Sort(steps)
	steps = slices.Compact(steps)
	if len(steps) <= maxSteps {
		cuts = append(cuts, steps...)
	}
	slices.Sort(cuts)
	return slices.Compact(cuts)
}
