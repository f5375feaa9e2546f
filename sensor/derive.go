package sensor

import (
	"cmp"
	"slices"
	"strings"
)

// blank is the value from which GPU exporters mean "no value" (2^63 and a few
// below it).
const blank = 9.2e18

// rateWindow is the width of rates in the queries of derived series.
const rateWindow = "[5m]"

// Derive turns raw series into ones whose level means something: counters become
// rates per second, the sum and count of a histogram the mean, its buckets the
// 99th percentile of each interval, hits and lookups of a cache the share of
// hits, usage and limit a utilisation. _created series are left out.
func Derive(in []Series) []Series {
	d := deriver{pairs: map[string]*summed{}, buckets: map[string]*bucketed{}, classes: map[[2]string]Class{}}
	for i := range in {
		d.take(in[i])
	}
	d.means()
	out := append(d.out, d.tails()...)
	out = ratios(out, d.counted)
	out = append(out, utilisations(out)...)
	slices.SortFunc(out, compareSeries)
	return out
}

type deriver struct {
	out     []Series
	counted map[string]bool // names of counters
	pairs   map[string]*summed
	buckets map[string]*bucketed
	classes map[[2]string]Class
}

// summed is a histogram or summary without its buckets.
type summed struct {
	base       string
	sum, count *Series
}

func (d *deriver) class(name, unit string) Class {
	k := [2]string{name, unit}
	c, ok := d.classes[k]
	if !ok {
		c = Classify(name, unit)
		d.classes[k] = c
	}
	return c
}

func (d *deriver) take(s Series) {
	if s.Unit == "" {
		s.Unit = UnitOf(s.Name)
	}
	s.Points = slices.DeleteFunc(slices.Clone(s.Points), func(p Point) bool { return p.Value != p.Value || p.Value >= blank })
	base, suffix := histogramSuffix(s.Name)
	switch suffix {
	case "_created":
		return
	case "_bucket":
		d.bucket(base, s)
		return
	case "_sum", "_count":
		r := rate(s)
		id := base + "\x00" + LabelText(s.Labels)
		p := d.pairs[id]
		if p == nil {
			p = &summed{base: base}
			d.pairs[id] = p
		}
		if suffix == "_sum" {
			p.sum = &r
		} else {
			p.count = &r
		}
		return
	}
	c := d.class(s.Name, s.Unit)
	total := strings.HasSuffix(s.Name, "_total") && !s.Gauge && c != ClassLimit
	switch {
	case s.Counter || total && (!falls(s.Points)):
		s = rate(s)
		if d.counted == nil {
			d.counted = map[string]bool{}
		}
		d.counted[s.Name] = true
	case isCode(s.Name):
		newCodes(s.Points)
	}
	if len(s.Points) > 0 {
		d.out = append(d.out, s)
	}
}

// falls reports whether values go down too often for those of a counter, whose
// process would have had to restart each time.
func falls(p []Point) bool {
	down := 0
	for i := 1; i < len(p); i++ {
		if p[i].Value < p[i-1].Value {
			down++
		}
	}
	return down > 2 && down*5 > len(p)
}

// isCode reports whether a gauge shows the code of the last error for good,
// rather than a number of them.
func isCode(name string) bool {
	words := nameWords(name)
	return slices.Contains(words, "xid") && !slices.Contains(words, "count")
}

// newCodes leaves of the codes of errors those that came anew: the first is of
// before.
func newCodes(p []Point) {
	if len(p) == 0 {
		return
	}
	first, changed := p[0].Value, false
	for i := range p {
		changed = changed || p[i].Value != first
		if !changed {
			p[i].Value = 0
		}
	}
}

func (d *deriver) means() {
	ids := make([]string, 0, len(d.pairs))
	for id := range d.pairs {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		p := d.pairs[id]
		if p.count != nil && p.sum != nil {
			switch d.class(p.base, p.sum.Unit) {
			case ClassLatency, ClassOutgoing, ClassInput, ClassOutput, ClassBatch, ClassPoolWait, ClassTokens:
				p.count.Class = refine(ClassThroughput, p.count)
			}
			if m := mean(p.base, p.sum, p.count); len(m.Points) > 0 {
				d.out = append(d.out, m)
			}
			// What clients count in histograms only are sums of tokens too.
			if c := d.class(p.base, p.sum.Unit); strings.Contains(p.base, "client") && (c == ClassTokens || c == ClassInput || c == ClassOutput) {
				p.sum.Class = ClassTokens
			} else {
				p.sum = nil
			}
		}
		for _, s := range []*Series{p.sum, p.count} {
			if s != nil && len(s.Points) > 0 {
				d.out = append(d.out, *s)
			}
		}
	}
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
	out.Query = "rate(" + Selector(sum) + rateWindow + ") / rate(" + Selector(count) + rateWindow + ")"
	return out
}

// unitTable tells the units of names that do not say them, by their beginnings
// and ends.
var unitTable = []struct{ begin, end, unit string }{
	{"DCGM_FI_DEV_FB_", "", "MiBy"},
	{"DCGM_FI_DEV_", "_UTIL", "%"},
	{"DCGM_FI_DEV_", "_TEMP", "Cel"},
	{"DCGM_FI_DEV_", "_CLOCK", "MHz"},
	{"DCGM_FI_DEV_POWER_USAGE", "", "W"},
	{"DCGM_FI_PROF_", "_ACTIVE", "1"},
	{"nv_gpu_utilization", "", "1"},
	{"nv_gpu_power_", "", "W"},
	{"nv_", "_us", "us"},
	{"milvus_", "_latency", "ms"},
	{"tgi_", "_duration", "s"},
	{"vllm:", "_perc", "1"},
	{"", "_utilization", "1"},
	{"", "_usage_perc", "1"},
	{"", "_microseconds", "us"},
	{"", "_milliseconds", "ms"},
	{"", "_seconds", "s"},
	{"", "_secs", "s"},
	{"", "_ms", "ms"},
	{"", "_bytes", "By"},
	{"", "_mb", "MBy"},
}

// UnitOf returns the unit (UCUM) of a metric whose source tells none, empty when
// it is not known.
func UnitOf(name string) string {
	name = strings.TrimSuffix(name, "_total")
	if b, s := histogramSuffix(name); s != "" && s != "_count" {
		name = b
	}
	for _, u := range unitTable {
		if strings.HasPrefix(name, u.begin) && strings.HasSuffix(name, u.end) {
			return u.unit
		}
	}
	return ""
}
