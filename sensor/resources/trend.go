package resources

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"inquest/record"
	"inquest/sensor"
	"inquest/stats"
)

// KindTrend is the end of kinds of steady growth.
const KindTrend = "trend"

// growing are the classes of what leaks.
var growing = map[sensor.Class]bool{
	sensor.ClassMemory: true, sensor.ClassGPUMemory: true, sensor.ClassReserved: true, sensor.ClassFragments: true,
	sensor.ClassPool: true, sensor.ClassConnections: true, sensor.ClassDiskUse: true, sensor.ClassFiles: true,
}

const (
	trendBlocks   = 48 // into which a whole series is cut
	leastBlocks   = 12 // that have points
	sliceBlocks   = 16 // of the incident, and of a slice of the baseline
	leastInSlice  = 6
	leastGrowth   = 0.05 // of the level or the limit, over the whole
	telling       = 0.2  // growth that is no matter of course
	floorMaterial = 1e-6 // p-value of a growth that is telling, or nears its limit
	floorOther    = 1e-3 // of another: what grows slowly may always have
)

// Trends looks for steady growth of memory, connections and the like: over
// baseline and incident together, as of a leak that began long before, and in the
// incident alone, compared with how steep the slices of the baseline are. What
// rises and falls by design, such as a heap with garbage collection, has level
// minima and steep slices. Each series that could be examined has a finding, so
// that absence counts.
func Trends(w *sensor.Window, base []sensor.Range, inc sensor.Range) []sensor.Compared {
	if w == nil || len(base) == 0 {
		return nil
	}
	whole := inc
	for _, b := range base {
		whole.From, whole.To = min(whole.From, b.From), max(whole.To, b.To)
	}
	whole.To = inc.To // what came after the incident did not cause it
	var out []sensor.Compared
	for i := range w.Series {
		s := &w.Series[i]
		about := s.About()
		if !growing[about.Class] || about.Owner.IsZero() {
			continue
		}
		if c, ok := trend(s, about, base, inc, whole); ok {
			out = append(out, c)
		}
	}
	return out
}

// blocks are the medians and minima of a series in equal stretches; t is in hours
// from the first.
type blocks struct{ t, mid, low []float64 }

func cut(points []sensor.Point, r sensor.Range, n int) blocks {
	points = within(points, r)
	var b blocks
	values := make([]float64, 0, len(points)/n+2)
	for i, k := 0, 0; i < n && k < len(points); i++ {
		end := r.From + (r.To-r.From)*int64(i+1)/int64(n)
		values = values[:0]
		first := points[k].Time
		for k < len(points) && points[k].Time < end {
			values = append(values, points[k].Value)
			k++
		}
		if len(values) == 0 {
			continue
		}
		at := (first + points[k-1].Time) / 2
		b.t = append(b.t, float64(at-r.From)/float64(time.Hour))
		b.low = append(b.low, slices.Min(values))
		b.mid = append(b.mid, stats.Median(values))
	}
	return b
}

func within(points []sensor.Point, r sensor.Range) []sensor.Point {
	find := func(t int64) int {
		i, _ := slices.BinarySearchFunc(points, t, func(p sensor.Point, t int64) int { return cmp.Compare(p.Time, t) })
		return i
	}
	return points[find(r.From):find(r.To)]
}

// growth is a steady change of a series.
type growth struct {
	p            float64
	line         stats.Line
	from, to     float64 // levels of the line
	hours        float64
	usual        float64 // slope in the baseline, per hour
	whole        bool
	past         []sensor.Past
	distance     float64
	lead         float64 // hours until the limit, infinite without
	reachesLimit bool
}

func trend(s *sensor.Series, about *sensor.About, base []sensor.Range, inc, whole sensor.Range) (sensor.Compared, bool) {
	now := within(s.Points, inc)
	if len(now) == 0 {
		return sensor.Compared{}, false
	}
	all := cut(s.Points, whole, trendBlocks)
	recent := cut(s.Points, inc, sliceBlocks)
	if len(all.t) < leastBlocks && len(recent.t) < leastInSlice {
		return sensor.Compared{}, false
	}
	best := growth{p: 1}
	if len(all.t) >= leastBlocks {
		best = steady(all, about.Limit)
	}
	if len(recent.t) >= leastInSlice {
		g := risen(s, recent, base, about.Limit)
		g.p, best.p = stats.Any(g.p, 2), stats.Any(best.p, 2)
		// What is seen in the incident alone lets the baseline speak.
		if g.p < best.p || best.past == nil && best.p >= 1 {
			best = g
		}
	}
	return report(s, about, best, inc, whole, now[len(now)-1]), true
}

// both is the p-value of a change of medians and minima in one direction.
func both(b blocks) float64 {
	p, tau := stats.MannKendall(b.mid)
	if p > 0.05 {
		return p
	}
	low, tauLow := stats.MannKendall(b.low)
	if tau*tauLow <= 0 {
		return 1
	}
	return math.Max(p, low)
}

// steady tests for growth over baseline and incident: median and minimum rise, in
// a line rather than a step, and no less towards the end.
func steady(b blocks, limit float64) growth {
	n := len(b.t)
	g := growth{p: 1, whole: true}
	p := both(b)
	if p > 0.05 {
		return g
	}
	g.line = stats.TheilSen(b.t, b.mid)
	early, late := stats.TheilSen(b.t[:n/2], b.mid[:n/2]).Slope, stats.TheilSen(b.t[n/2:], b.mid[n/2:]).Slope
	if early*late <= 0 || math.Abs(late) < math.Abs(early)/4 || !stats.Steadier(b.t, b.mid, g.line) {
		return g
	}
	g.measure(b, limit)
	if size := g.size(limit); size < leastGrowth {
		return g
	} else if size >= telling || g.lead < g.hours {
		g.p = math.Max(p, floorMaterial)
	} else {
		g.p = math.Max(p, floorOther)
	}
	return g
}

// risen tests for growth in the incident that the slices of the baseline do not
// show.
func risen(s *sensor.Series, b blocks, base []sensor.Range, limit float64) growth {
	g := growth{p: 1}
	p := both(b)
	if p > 0.05 {
		return g
	}
	g.line = stats.TheilSen(b.t, b.mid)
	g.measure(b, limit)
	if g.size(limit) < leastGrowth || !stats.Steadier(b.t, b.mid, g.line) {
		return g
	}
	var slopes []float64
	var of []int
	for i, r := range base {
		if c := cut(s.Points, r, sliceBlocks); len(c.t) >= leastInSlice {
			slopes, of = append(slopes, stats.TheilSen(c.t, c.mid).Slope), append(of, i)
		}
	}
	if len(slopes) < 3 {
		return g
	}
	// A slope is not known better than the scatter about the line allows.
	rest := make([]float64, len(b.t))
	for i := range rest {
		rest[i] = b.mid[i] - g.line.At(b.t[i])
	}
	floor := math.Hypot(stats.Summarize(rest).Scale, 0.02*math.Abs(g.from)) / math.Max(g.hours, 1e-9)
	g.usual = stats.Median(slopes)
	pShift, z := stats.Shift(slopes, g.line.Slope, floor)
	g.p, g.distance = math.Max(p, pShift), z
	scale := math.Hypot(stats.Summarize(slopes).Scale, floor)
	for i, v := range slopes {
		x := sensor.Past{Slice: of[i], P: 1, Observed: v}
		if scale > 0 {
			x.Distance = (v - g.usual) / scale
		}
		if math.Abs(x.Distance) > 5 {
			x.P = stats.Any(stats.StudentP(x.Distance, len(slopes)-1), len(slopes))
		}
		g.past = append(g.past, x)
	}
	return g
}

func (g *growth) measure(b blocks, limit float64) {
	first, last := b.t[0], b.t[len(b.t)-1]
	g.from, g.to, g.hours = g.line.At(first), g.line.At(last), last-first
	g.lead = math.Inf(1)
	if limit > 0 && g.line.Slope > 0 {
		g.lead, g.reachesLimit = math.Max(0, (limit-g.to)/g.line.Slope), true
	}
}

// size is the growth as a share of the limit, else of the level before it.
func (g *growth) size(limit float64) float64 {
	d := math.Abs(g.to - g.from)
	if limit > 0 {
		return d / limit
	}
	if l := math.Max(math.Abs(g.from), math.Abs(g.to)/10); l > 0 {
		return d / l
	}
	return 0
}

func report(s *sensor.Series, about *sensor.About, g growth, inc, whole sensor.Range, last sensor.Point) sensor.Compared {
	r := inc
	if g.whole {
		r = whole
	}
	k := sensor.Key{
		Quadrant: record.QuadrantResources, Sensor: "resources/trend", Kind: string(about.Class) + "_" + KindTrend,
		Entity: about.Owner, Subject: about.Subject, Unit: s.Unit + "/h",
	}
	f := record.Finding{
		Quadrant: k.Quadrant, Sensor: k.Sensor, Entity: k.Entity, Kind: k.Kind, Subject: k.Subject, Unit: k.Unit,
		From: sensor.Time(r.From), To: sensor.Time(r.To), Direction: record.DirectionUp,
		Observed: g.line.Slope, Expected: g.usual, Strength: g.p, Effect: math.Abs(g.distance),
	}
	if g.line.Slope < 0 {
		f.Direction = record.DirectionDown
	}
	f.Evidence = sensor.Evidence(k, r, []record.Item{{Time: sensor.Time(last.Time), Text: about.Selector, Value: &last.Value}})
	if g.p < 1 {
		f.Text = g.text(about, s.Unit)
	}
	return sensor.Compared{Finding: f, Past: g.past, Distance: g.distance}
}

func (g *growth) text(about *sensor.About, unit string) string {
	verb := "grows"
	if g.line.Slope < 0 {
		verb = "falls"
	}
	text := fmt.Sprintf("%s of %s (%s) %s steadily by %s in %s, from %s to %s",
		strings.ReplaceAll(string(about.Class), "_", " "), about.Owner.Name, about.Subject, verb,
		amount(math.Abs(g.to-g.from), unit), span(g.hours), amount(g.from, unit), amount(g.to, unit))
	switch {
	case !g.reachesLimit:
	case g.lead == 0:
		text += "; it is at its limit"
	default:
		text += "; at this pace it reaches its limit in " + span(g.lead)
	}
	return text
}

// amount writes a value with its unit for people.
func amount(v float64, unit string) string {
	switch unit {
	case "1":
		return fmt.Sprintf("%.3g %%", 100*v)
	case "By":
		names := []string{"B", "KiB", "MiB", "GiB", "TiB"}
		i := 0
		for math.Abs(v) >= 1024 && i < len(names)-1 {
			v, i = v/1024, i+1
		}
		return fmt.Sprintf("%.3g %s", v, names[i])
	case "MiBy":
		return amount(v*(1<<20), "By")
	}
	return strings.TrimSpace(fmt.Sprintf("%.4g %s", v, strings.Trim(unit, "{}")))
}

// span writes hours for people.
func span(hours float64) string {
	switch {
	case hours >= 48:
		return fmt.Sprintf("%.0f days", hours/24)
	case hours >= 2:
		return fmt.Sprintf("%.1f h", hours)
	case hours >= 1.0/30:
		return fmt.Sprintf("%.0f min", hours*60)
	}
	return fmt.Sprintf("%.0f s", hours*3600)
}
