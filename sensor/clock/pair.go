package clock

import (
	"cmp"
	"slices"
)

// pair is two hosts that call each other, a < b.
type pair struct {
	a, b int32
	runs []run // by time
}

// run is a row of calls whose bounds agree: as long as it lasts, neither clock
// moved against the other by more than the bounds are wide.
type run struct {
	from, to  int64
	low, high int64 // intersection of the bounds of b's clock minus a's
	calls     []Call
	offset    int64
	err       int64
}

const (
	// leastCalls is the number of calls that a run needs: one or two may be work
	// that was left behind and happens to fit.
	leastCalls = 3
	// leastShare is the share of a pair's calls that must lie in runs: where
	// fewer agree, the bounds do not hold (work that is not waited for, several
	// clocks under one name).
	leastShare = 0.7
)

// pairsOf sorts calls by pair of hosts and cuts each pair's into runs. Pairs
// whose calls contradict each other are left out.
func pairsOf(calls []Call) []*pair {
	s := make([]Call, 0, len(calls))
	for _, c := range calls {
		if c.From == c.To || c.Low > c.High {
			continue
		}
		if c.From > c.To {
			c.From, c.To, c.Low, c.High = c.To, c.From, -c.High, -c.Low
		}
		s = append(s, c)
	}
	slices.SortFunc(s, func(x, y Call) int {
		return cmp.Or(cmp.Compare(x.From, y.From), cmp.Compare(x.To, y.To), cmp.Compare(x.At, y.At),
			cmp.Compare(x.Low, y.Low), cmp.Compare(x.High, y.High))
	})
	var out []*pair
	for i := 0; i < len(s); {
		j := i
		for j < len(s) && s[j].From == s[i].From && s[j].To == s[i].To {
			j++
		}
		if p := newPair(s[i:j]); p != nil {
			out = append(out, p)
		}
		i = j
	}
	return out
}

func newPair(calls []Call) *pair {
	p := &pair{a: calls[0].From, b: calls[0].To}
	inRuns := 0
	for _, r := range split(calls) {
		if len(r.calls) < leastCalls {
			continue
		}
		inRuns += len(r.calls)
		r.settle()
		p.runs = append(p.runs, r)
	}
	if float64(inRuns) < leastShare*float64(len(calls)) || len(p.runs) == 0 {
		return nil
	}
	return p
}

// split cuts calls, by time, into runs. A call that contradicts the run is an
// exception, unless the next two do so as well and agree with it.
func split(calls []Call) []run {
	var out []run
	var pending []Call
	for _, c := range calls {
		if len(out) > 0 {
			r := &out[len(out)-1]
			if low, high := max(r.low, c.Low), min(r.high, c.High); low <= high {
				r.low, r.high, r.to = low, high, c.At
				r.calls = append(r.calls, c)
				pending = pending[:0]
				continue
			}
		}
		pending = append(pending, c)
		if len(pending) > leastCalls {
			pending = pending[1:]
		}
		if r, ok := agree(pending); ok {
			out = append(out, r)
			pending = nil
		}
	}
	return out
}

// agree makes a run of as many calls as one needs.
func agree(calls []Call) (run, bool) {
	if len(calls) < leastCalls {
		return run{}, false
	}
	r := run{from: calls[0].At, to: calls[len(calls)-1].At, low: calls[0].Low, high: calls[0].High, calls: slices.Clone(calls)}
	for _, c := range calls[1:] {
		r.low, r.high = max(r.low, c.Low), min(r.high, c.High)
	}
	return r, r.low <= r.high
}

// settle estimates a run's offset: the median of the middles of its tightest
// third, held within the intersection, which also bounds the error. The middle
// is right when both ways take equally long; the tightest calls are those that
// waited least on either.
func (r *run) settle() {
	slices.SortFunc(r.calls, func(x, y Call) int {
		return cmp.Or(cmp.Compare(x.High-x.Low, y.High-y.Low), cmp.Compare(x.At, y.At), cmp.Compare(x.Low, y.Low))
	})
	n := max(leastCalls, len(r.calls)/3)
	middles := make([]int64, n)
	for i := range middles {
		middles[i] = r.calls[i].Low + (r.calls[i].High-r.calls[i].Low)/2
	}
	slices.Sort(middles)
	m := middles[n/2]
	if n%2 == 0 {
		m = middles[n/2-1] + (m-middles[n/2-1])/2
	}
	r.offset = min(max(m, r.low), r.high)
	r.err = max(r.offset-r.low, r.high-r.offset, resolution)
	r.calls = nil
}

// at returns the run that holds at a time, or the nearest one.
func (p *pair) at(t int64) *run {
	best, distance := 0, int64(-1)
	for i := range p.runs {
		r := &p.runs[i]
		d := max(r.from-t, t-r.to, 0)
		if distance < 0 || d < distance {
			best, distance = i, d
		}
	}
	return &p.runs[best]
}

// longest returns the run that lasted longest.
func (p *pair) longest() *run {
	best := 0
	for i := range p.runs {
		if p.runs[i].to-p.runs[i].from > p.runs[best].to-p.runs[best].from {
			best = i
		}
	}
	return &p.runs[best]
}
