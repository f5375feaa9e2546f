package logs

import (
	"math"
	"sort"

	"inquest/sensor"
)

// newcomers tells how often something comes that was never seen: after Good and
// Turing (Good 1953), as often as things that were seen once. What stayed within a
// stretch as long as the incident counts as seen once.
type newcomers struct {
	width  int       // of the incident, in slices
	blocks float64   // stretches as long as the incident in the baseline
	once   []float64 // amounts of what was seen once, ascending
	unseen float64   // things that could still come
	sorted bool
}

// newNewcomers prepares for a baseline and an incident of so many seconds.
func newNewcomers(base []*sensor.Profile, seconds float64) newcomers {
	total, n := 0.0, 0.0
	for _, p := range base {
		if p.Logs > 0 {
			total += p.Seconds
			n++
		}
	}
	out := newcomers{width: 1, blocks: 1, unseen: 1}
	if seconds > 0 && total > 0 {
		out.width = max(1, int(math.Ceil(seconds*n/total)))
		out.blocks = math.Max(1, total/seconds)
	}
	return out
}

// see takes a thing that was seen in the baseline, so many slices from first to
// last, and how often in all.
func (n *newcomers) see(slices int, amount float64) {
	if slices < n.width {
		n.once = append(n.once, amount)
		n.sorted = false
	}
}

// among sets how many things could still come.
func (n *newcomers) among(unseen float64) { n.unseen = math.Max(1, unseen) }

// expected is how many newcomers a stretch as long as the incident has that come so
// often or more, half of one added to what was seen.
func (n *newcomers) expected(amount float64) float64 {
	if !n.sorted {
		sort.Float64s(n.once)
		n.sorted = true
	}
	rarer := sort.SearchFloat64s(n.once, amount)
	return (float64(len(n.once)-rarer) + 0.5) / n.blocks
}

// p is how often one of the things that were not seen comes so often.
func (n *newcomers) p(amount float64) float64 { return -math.Expm1(-n.expected(amount) / n.unseen) }
