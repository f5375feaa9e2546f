package sensor

import (
	"math"
	"slices"
	"strings"

	"inquest/record"
	"inquest/stats"
)

// material is the share of the expected value below which a difference is not
// taken for one: a change of a fiftieth breaks nothing, however steady the
// measure was before. It is added to the spread, not cut off.
const material = 0.02

// quantiles at which samples are compared: a fault may hit all requests or one
// in ten, and a measure may fall as well as rise.
var quantiles = [3]float64{0.1, 0.5, 0.9}

// Compared is a finding with what the slices of the baseline showed of the same
// measure.
type Compared struct {
	record.Finding
	Past []Past
	// Distance is that of the incident, in the unit of the Distances in Past.
	Distance float64
}

// Past is one measure in one slice of the baseline, against the others.
type Past struct {
	Slice int // index of the slice
	// P is the p-value, 1 when the slice is well within the ordinary.
	P float64
	// Distance from the expected value, signed.
	Distance float64
	Observed float64
}

// ordinary is the distance in standard deviations up to which a slice of the
// baseline is not looked at closer; see cleanScales in package stats.
const ordinary = 5

// Compare calibrates the measures of an incident against the slices of a
// baseline and returns one finding for each measure, by key. Most of them say
// that the measure is as usual.
func Compare(base []*Profile, inc *Profile) []Compared {
	var out []Compared
	for _, k := range Sorted(inc.Values) {
		if f, ok := compareValues(base, inc, k); ok {
			out = append(out, f)
		}
	}
	shares := make([]map[Key]*Hits, len(base))
	for i, p := range base {
		shares[i] = p.Shares
	}
	out = append(out, CompareShares(shares, inc.Shares, inc.Range)...)
	out = append(out, compareMixes(base, inc)...)
	return append(out, compareRates(base, inc)...)
}

func compareValues(base []*Profile, inc *Profile, k Key) (Compared, bool) {
	in := inc.Values[k]
	var mids, within []float64
	var of []int // the slice of each value
	bases := make([][]float64, len(quantiles))
	for slice, p := range base {
		s := p.Values[k]
		if s == nil || len(s.Values) == 0 {
			continue
		}
		of = append(of, slice)
		at, scale := s.describe()
		for i := range quantiles {
			bases[i] = append(bases[i], at[i])
		}
		mids = append(mids, at[1])
		if len(s.Values) > 3 {
			within = append(within, scale)
		}
	}
	if len(mids) < leastSlices {
		return Compared{}, false
	}
	centre := stats.Median(mids)
	floor := material * math.Abs(centre)
	if len(within) > 0 {
		floor = math.Hypot(floor, stats.MedianError(stats.Median(within), len(in.Values)))
	}
	now, _ := in.describe()
	best, bestZ, at := 1.0, 0.0, 1
	for i := range quantiles {
		shift := stats.ShiftTail
		if quantiles[i] == 0.5 {
			shift = stats.Shift
		}
		p, z := shift(bases[i], now[i], floor)
		if p < best {
			best, bestZ, at = p, z, i
		}
	}
	if q := breaksConstant(base, in, k); q < best {
		best = q
	}
	f := newFinding(k, inc.Range, stats.Any(best, len(quantiles)), bestZ)
	f.Observed, f.Expected = now[at], stats.Median(bases[at])
	f.Evidence = Evidence(k, inc.Range, []record.Item{in.Top})
	return Compared{Finding: f, Past: pastValues(bases, of, at, floor), Distance: bestZ}, true
}

// breaksConstant is the p-value of a measure that never moved in the baseline and
// does now; 1 where it moved. Each new value counts as one event, so that a gauge
// that steps once is one event, and a counter that rises in each interval many.
func breaksConstant(base []*Profile, in *Sample, k Key) float64 {
	var past []stats.Share
	constant, first := 0.0, true
	for _, p := range base {
		s := p.Values[k]
		if s == nil || len(s.Values) == 0 {
			continue
		}
		for _, v := range s.Values {
			if first {
				constant, first = v, false
			}
			if v != constant {
				return 1
			}
		}
		past = append(past, stats.Share{N: float64(len(s.Values))})
	}
	events, before := 0.0, constant
	for _, v := range in.Values {
		if v != constant && v != before {
			events++
		}
		before = v
	}
	if events == 0 {
		return 1
	}
	p, _ := stats.FitShares(past).Tail(events, float64(len(in.Values)))
	if k.Kind == string(ClassGPUError) || k.Kind == string(ClassOOM) {
		p = math.Min(p, rareEvent)
	}
	return p
}

// rareEvent is how likely a healthy machine is to show, within minutes, one of
// the events of which the first matters: an error that a GPU's driver reports, a
// process killed for memory. Baselines of minutes or hours cannot tell, for such
// events are months apart.
const rareEvent = 1e-3

// pastValues compares each slice of a baseline with the whole. Distances are
// those of the quantile at.
func pastValues(bases [][]float64, of []int, at int, floor float64) []Past {
	out := make([]Past, len(of))
	for q := range bases {
		s := stats.Summarize(bases[q])
		scale := math.Hypot(s.Scale, floor)
		if scale == 0 {
			scale = math.Inf(1)
		}
		for i, v := range bases[q] {
			z := (v - s.Median) / scale
			if q == at {
				out[i].Slice, out[i].Distance, out[i].Observed = of[i], z, v
			}
			if out[i].P == 0 {
				out[i].P = 1
			}
			if math.Abs(z) > ordinary {
				out[i].P = math.Min(out[i].P, stats.Any(stats.StudentP(z, s.N-1), len(bases)))
			}
		}
	}
	return out
}

// leastSlices is the number of baseline slices from which a comparison means
// anything: with 3, the best two-sided empirical p-value is a quarter.
const leastSlices = 3

// CompareShares calibrates shares of hits.
func CompareShares(base []map[Key]*Hits, inc map[Key]*Hits, r Range) []Compared {
	var out []Compared
	for _, k := range Sorted(inc) {
		h := inc[k]
		var past []stats.Share
		var of []int
		for slice, m := range base {
			if b := m[k]; b != nil {
				past = append(past, b.Share)
				of = append(of, slice)
			}
		}
		if len(past) < leastSlices {
			continue
		}
		prior := stats.FitShares(past)
		p, up := prior.Tail(h.K, h.N)
		mean := prior.Mean()
		z := (h.Rate() - mean) / math.Sqrt(mean*(1-mean)/h.N)
		f := newFinding(k, r, p, z)
		f.Direction = record.DirectionDown
		if up {
			f.Direction = record.DirectionUp
			if allZero(past) {
				f.Direction = record.DirectionAppeared
			}
		} else if h.K == 0 {
			f.Direction = record.DirectionVanished
		}
		f.Observed, f.Expected, f.Requests = h.Rate(), mean, h.Rate()
		f.Evidence = Evidence(k, r, h.Items)
		c := Compared{Finding: f, Distance: shareDistance(h.Share, mean)}
		for i, s := range past {
			x := Past{Slice: of[i], P: 1, Distance: shareDistance(s, mean), Observed: s.Rate()}
			if math.Abs(s.K-s.N*mean) > ordinary*math.Sqrt(s.N*mean*(1-mean)) {
				x.P, _ = prior.Tail(s.K, s.N)
			}
			c.Past = append(c.Past, x)
		}
		out = append(out, c)
	}
	return out
}

// shareDistance is how far a share lies from its mean, drawn to the mean as if
// two more trials had been ordinary: one of one is not as far as ten of ten.
func shareDistance(s stats.Share, mean float64) float64 {
	return (s.K+2*mean)/(s.N+2) - mean
}

func allZero(s []stats.Share) bool {
	for _, x := range s {
		if x.K > 0 {
			return false
		}
	}
	return true
}

// compareRates compares counts of events; a slice without the key counted none.
func compareRates(base []*Profile, inc *Profile) []Compared {
	rates, now, keys := mergeRates(base, inc)
	var out []Compared
	for _, k := range Sorted(keys) {
		var past []stats.Count
		var of []int
		seen := false
		for slice, p := range base {
			if p.Seconds <= 0 || p.Spans+p.Logs == 0 {
				continue
			}
			c := stats.Count{T: p.Seconds}
			if h := rates[slice][k]; h != nil {
				c.K, seen = h.K, true
			}
			past = append(past, c)
			of = append(of, slice)
		}
		if len(past) < leastSlices || inc.Seconds <= 0 {
			continue
		}
		h := now[k]
		if h == nil {
			h = &Hits{}
		}
		prior := stats.FitCounts(past, material)
		p, up := prior.Tail(h.K, inc.Seconds)
		f := newFinding(k, inc.Range, p, 0)
		f.Observed, f.Expected = h.K/inc.Seconds, prior.Mean()
		c := Compared{Distance: countDistance(stats.Count{K: h.K, T: inc.Seconds}, f.Expected)}
		f.Effect = math.Abs(c.Distance)
		switch {
		case h.K == 0:
			f.Direction = record.DirectionVanished
		case !seen:
			f.Direction = record.DirectionAppeared
		case !up:
			f.Direction = record.DirectionDown
		}
		f.Evidence = Evidence(k, inc.Range, h.Items)
		c.Finding = f
		for i, s := range past {
			x := Past{Slice: of[i], P: 1, Distance: countDistance(s, f.Expected), Observed: s.K / s.T}
			if math.Abs(x.Distance) > ordinary {
				x.P, _ = prior.Tail(s.K, s.T)
			}
			c.Past = append(c.Past, x)
		}
		out = append(out, c)
	}
	return out
}

// mergeRates returns the counts of all profiles with log templates that differ in
// a value only taken together, and their keys.
func mergeRates(base []*Profile, inc *Profile) (past []map[Key]*Hits, now map[Key]*Hits, keys map[Key]bool) {
	keys = map[Key]bool{}
	var templates []string
	all := append(slices.Clone(base), inc)
	for _, p := range all {
		for k := range p.Rates {
			if !keys[k] && k.Quadrant == record.QuadrantLogs {
				templates = append(templates, k.Subject)
			}
			keys[k] = true
		}
	}
	as := MergeTemplates(templates)
	merged := map[Key]bool{}
	out := make([]map[Key]*Hits, len(all))
	for i, p := range all {
		out[i] = make(map[Key]*Hits, len(p.Rates))
		for _, k := range Sorted(p.Rates) {
			to := k
			if t, ok := as[k.Subject]; ok && k.Quadrant == record.QuadrantLogs && strings.Contains(k.Subject, " ") {
				to.Subject = t
			}
			merged[to] = true
			addHits(out[i], map[Key]*Hits{to: p.Rates[k]})
		}
	}
	return out[:len(base)], out[len(base)], merged
}

// countDistance is how far a count lies from its expectation, in standard
// deviations of a Poisson count of one event more.
func countDistance(c stats.Count, rate float64) float64 {
	return (c.K - rate*c.T) / math.Sqrt(rate*c.T+1)
}

func newFinding(k Key, r Range, p, z float64) record.Finding {
	f := record.Finding{
		Quadrant: k.Quadrant, Sensor: k.Sensor, Entity: k.Entity, Kind: k.Kind, Subject: k.Subject,
		From: Time(r.From), To: Time(r.To), Direction: record.DirectionUp,
		Unit: k.Unit, Effect: math.Abs(z), Strength: p,
	}
	if z < 0 {
		f.Direction = record.DirectionDown
	}
	if !k.Peer.IsZero() {
		peer := k.Peer
		f.Peer = &peer
	}
	return f
}
