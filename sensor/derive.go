package sensor

import (
	"cmp"
	"slices"
	"strings"
)

// blank is the value from which GPU exporters mean "no value" (2^63 and a few
// below it).
const blank = 9.2e18

// Derive turns raw series into ones whose level means something: counters become
// rates per second, the sum and count of a histogram become the mean. Buckets
// and _created series are left out.
func Derive(in []Series) []Series {
	type pair struct{ sum, count *Series }
	pairs := map[string]*pair{}
	var out []Series
	for i := range in {
		s := in[i]
		base, suffix := histogramSuffix(s.Name)
		switch suffix {
		case "_bucket", "_created":
			continue
		case "_sum", "_count":
			r := rate(s)
			id := base + "\x00" + LabelText(s.Labels)
			if pairs[id] == nil {
				pairs[id] = &pair{}
			}
			if suffix == "_sum" {
				pairs[id].sum = &r
			} else {
				pairs[id].count = &r
			}
			continue
		}
		if s.Counter || strings.HasSuffix(s.Name, "_total") {
			s = rate(s)
		} else {
			s.Points = slices.Clone(s.Points)
		}
		s.Points = slices.DeleteFunc(s.Points, func(p Point) bool { return p.Value != p.Value || p.Value >= blank })
		if len(s.Points) > 0 {
			out = append(out, s)
		}
	}
	for id, p := range pairs {
		base, _, _ := strings.Cut(id, "\x00")
		switch {
		case p.sum != nil && p.count != nil:
			if m := mean(base, p.sum, p.count); len(m.Points) > 0 {
				out = append(out, m)
			}
			if len(p.count.Points) > 0 {
				out = append(out, *p.count)
			}
		case p.sum != nil && len(p.sum.Points) > 0:
			out = append(out, *p.sum)
		case p.count != nil && len(p.count.Points) > 0:
			out = append(out, *p.count)
		}
	}
	slices.SortFunc(out, compareSeries)
	return out
}

func histogramSuffix(name string) (base, suffix string) {
	for _, s := range []string{"_bucket", "_sum", "_count", "_created"} {
		if b, ok := strings.CutSuffix(name, s); ok {
			return b, s
		}
	}
	return name, ""
}

// rate returns the increase per second between points, at the later one. A fall
// is a restart from nought.
func rate(s Series) Series {
	out := s
	out.Counter = false
	out.Points = make([]Point, 0, len(s.Points))
	for i := 1; i < len(s.Points); i++ {
		a, b := s.Points[i-1], s.Points[i]
		seconds := float64(b.Time-a.Time) / 1e9
		if seconds <= 0 {
			continue
		}
		d := b.Value - a.Value
		if d < 0 {
			d = b.Value
		}
		out.Points = append(out.Points, Point{b.Time, d / seconds})
	}
	return out
}

func mean(base string, sum, count *Series) Series {
	out := Series{Name: base, Labels: sum.Labels, Unit: sum.Unit}
	for _, p := range sum.Points {
		i, ok := slices.BinarySearchFunc(count.Points, p.Time, func(c Point, t int64) int { return cmp.Compare(c.Time, t) })
		if ok && count.Points[i].Value > 0 {
			out.Points = append(out.Points, Point{p.Time, p.Value / count.Points[i].Value})
		}
	}
	return out
}
