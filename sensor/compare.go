package sensor

import (
	"math"

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

// Compare calibrates the measures of an incident against the slices of a
// baseline and returns a finding for each measure with a p-value below level,
// by key.
func Compare(base []*Profile, inc *Profile, level float64) []record.Finding {
	var out []record.Finding
	for _, k := range Sorted(inc.Values) {
		if f, ok := compareValues(base, inc, k); ok && f.Strength <= level {
			out = append(out, f)
		}
	}
	shares := make([]map[Key]*Hits, len(base))
	for i, p := range base {
		shares[i] = p.Shares
	}
	out = append(out, CompareShares(shares, inc.Shares, inc.Range, level)...)
	return append(out, compareRates(base, inc, level)...)
}

func compareValues(base []*Profile, inc *Profile, k Key) (record.Finding, bool) {
	in := inc.Values[k]
	var mids, within []float64
	bases := make([][]float64, len(quantiles))
	for _, p := range base {
		s := p.Values[k]
		if s == nil || len(s.Values) == 0 {
			continue
		}
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
		return record.Finding{}, false
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
	f := newFinding(k, inc.Range, stats.Any(best, len(quantiles)), bestZ)
	f.Observed, f.Expected = now[at], stats.Median(bases[at])
	f.Evidence = Evidence(k, inc.Range, []record.Item{in.Top})
	return f, true
}

// leastSlices is the number of baseline slices from which a comparison means
// anything: with 3, the best two-sided empirical p-value is a quarter.
const leastSlices = 3

// CompareShares calibrates shares of hits.
func CompareShares(base []map[Key]*Hits, inc map[Key]*Hits, r Range, level float64) []record.Finding {
	var out []record.Finding
	for _, k := range Sorted(inc) {
		h := inc[k]
		var past []stats.Share
		for _, m := range base {
			if b := m[k]; b != nil {
				past = append(past, b.Share)
			}
		}
		if len(past) < leastSlices {
			continue
		}
		prior := stats.FitShares(past)
		p, up := prior.Tail(h.K, h.N)
		if p > level {
			continue
		}
		z := (h.Rate() - prior.Mean()) / math.Sqrt(prior.Mean()*(1-prior.Mean())/h.N)
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
		f.Observed, f.Expected, f.Requests = h.Rate(), prior.Mean(), h.Rate()
		f.Evidence = Evidence(k, r, h.Items)
		out = append(out, f)
	}
	return out
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
func compareRates(base []*Profile, inc *Profile, level float64) []record.Finding {
	keys := map[Key]bool{}
	for k := range inc.Rates {
		keys[k] = true
	}
	for _, p := range base {
		for k := range p.Rates {
			keys[k] = true
		}
	}
	var out []record.Finding
	for _, k := range Sorted(keys) {
		var past []stats.Count
		seen := false
		for _, p := range base {
			if p.Seconds <= 0 || p.Spans+p.Logs == 0 {
				continue
			}
			c := stats.Count{T: p.Seconds}
			if h := p.Rates[k]; h != nil {
				c.K, seen = h.K, true
			}
			past = append(past, c)
		}
		if len(past) < leastSlices || inc.Seconds <= 0 {
			continue
		}
		h := inc.Rates[k]
		if h == nil {
			h = &Hits{}
		}
		prior := stats.FitCounts(past, material)
		p, up := prior.Tail(h.K, inc.Seconds)
		if p > level {
			continue
		}
		f := newFinding(k, inc.Range, p, 0)
		f.Observed, f.Expected = h.K/inc.Seconds, prior.Mean()
		f.Effect = math.Abs(f.Observed-f.Expected) * inc.Seconds / math.Sqrt(f.Expected*inc.Seconds+1)
		switch {
		case h.K == 0:
			f.Direction = record.DirectionVanished
		case !seen:
			f.Direction = record.DirectionAppeared
		case !up:
			f.Direction = record.DirectionDown
		}
		f.Evidence = Evidence(k, inc.Range, h.Items)
		out = append(out, f)
	}
	return out
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
