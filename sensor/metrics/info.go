package metrics

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"inquest/record"
	"inquest/sensor"
)

// KindChange is that something was changed: a version, a configuration, a limit.
const KindChange = "change"

// state is what a series of a kind says by its labels, or a limit by its value.
type state struct {
	owner record.Entity
	name  string // of the metric, with the labels that tell series apart
}

// stretch is for how long a state was seen.
type stretch struct {
	text     string
	labels   map[string]string
	value    float64
	times    []int64
	selector string
	series   int
}

// volatile are labels of information that say which copy it is of, or change by
// themselves.
var volatile = []string{
	"uid", "id", "container_id", "image_id", "pod_ip", "host_ip", "ip", "created_by_name", "running_lora_adapters",
	"waiting_lora_adapters", "instance", "pod", "le", "process_pid", "run_id", "start_time", "created",
}

// Changes looks for information that changed: labels of series that carry only
// labels (cache_config_info, build information), the version of the service that
// sends a series, and values of limits. One finding for each that is known from
// the baseline: the share of its points in the incident that say what the
// baseline never said.
func Changes(w *sensor.Window, base []sensor.Range, inc sensor.Range) []sensor.Compared {
	if w == nil || len(base) == 0 {
		return nil
	}
	states := map[state]map[string]*stretch{}
	for i := range w.Series {
		s := &w.Series[i]
		about := s.About()
		owner := informed(s, about)
		if owner.IsZero() || s.Query != "" {
			continue
		}
		switch about.Class {
		case sensor.ClassInfo:
			if strings.HasSuffix(strings.ReplaceAll(s.Name, ".", "_"), "_info") {
				note(states, state{owner, s.Name}, s, about, infoLabels(s.Labels), nil)
			}
		case sensor.ClassLimit:
			note(states, state{owner, about.Subject}, s, about, nil, func(p sensor.Point) string { return strconv.FormatFloat(p.Value, 'g', -1, 64) })
		default:
			if v := version(s.Labels); v != "" && owner.Kind == record.EntityService {
				note(states, state{owner, "service.version"}, s, about, map[string]string{"service.version": v}, nil)
			}
		}
	}
	keys := make([]state, 0, len(states))
	for k := range states {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b state) int { return cmp.Or(a.owner.Compare(b.owner), cmp.Compare(a.name, b.name)) })
	var out []sensor.Compared
	for _, k := range keys {
		out = append(out, changed(k, states[k], base, inc)...)
	}
	return out
}

// informed is the entity that information is about: a service rather than one of
// its pods, which come and go with each change.
func informed(s *sensor.Series, about *sensor.About) record.Entity {
	for _, e := range about.Edges {
		if e.Kind == record.EdgeServes && e.From == about.Owner && e.To.Kind == record.EntityService && about.Class != sensor.ClassLimit {
			return e.To
		}
	}
	return about.Owner
}

func version(l map[string]string) string {
	if v := l["service.version"]; v != "" {
		return v
	}
	return l["service_version"]
}

func infoLabels(l map[string]string) map[string]string {
	out := map[string]string{}
	for n, v := range l {
		resource := strings.HasPrefix(n, "k8s") || strings.HasPrefix(n, "telemetry") || strings.HasPrefix(n, "host") ||
			strings.HasPrefix(n, "process") || strings.HasPrefix(n, "service.instance") || strings.HasPrefix(n, "service_instance") ||
			strings.HasPrefix(n, "otel_scope")
		if !resource && !slices.Contains(volatile, n) && v != "" {
			out[n] = v
		}
	}
	return out
}

// enough is how many series with one state are read: all of one target, and all
// copies of a service, say the same.
const enough = 4

// note adds the points of a series to the stretches of its state.
func note(states map[state]map[string]*stretch, k state, s *sensor.Series, about *sensor.About, labels map[string]string, value func(sensor.Point) string) {
	m := states[k]
	if m == nil {
		m = map[string]*stretch{}
		states[k] = m
	}
	base := sensor.LabelText(labels)
	if x := m[base]; value == nil && x != nil && x.series >= enough {
		return
	}
	for i, p := range s.Points {
		text := base
		if value != nil {
			text += value(p)
		}
		x := m[text]
		if x == nil {
			x = &stretch{text: text, labels: labels, value: p.Value, selector: about.Selector}
			m[text] = x
		}
		if i == 0 {
			x.series++
		}
		x.times = append(x.times, p.Time)
	}
}

// mostStates bounds the different values that information may have before it is
// taken for data.
const mostStates = 20

func changed(k state, m map[string]*stretch, base []sensor.Range, inc sensor.Range) []sensor.Compared {
	if len(m) > mostStates {
		return nil
	}
	all := make([]*stretch, 0, len(m))
	for _, x := range m {
		slices.Sort(x.times)
		x.times = slices.Compact(x.times)
		all = append(all, x)
	}
	slices.SortFunc(all, func(a, b *stretch) int {
		return cmp.Or(cmp.Compare(a.times[0], b.times[0]), cmp.Compare(a.text, b.text))
	})
	// What two slices of the baseline say is known; one may lie just before the
	// incident, after its cause.
	known := map[string]bool{}
	var before *stretch
	latest := int64(math.MinInt64)
	for _, x := range all {
		seen := 0
		for _, r := range base {
			if count(x.times, r) > 0 {
				seen++
			}
		}
		if seen < 2 && (seen == 0 || len(base) > 2) {
			continue
		}
		known[x.text] = true
		if last := lastBefore(x.times, inc.From); before == nil || last > latest {
			before, latest = x, last
		}
	}
	if before == nil {
		return nil
	}
	key := sensor.Key{
		Quadrant: record.QuadrantMetrics, Sensor: "metrics/info", Kind: KindChange, Entity: k.owner, Subject: k.name, Unit: "1",
	}
	measure := func(r sensor.Range) (map[sensor.Key]*sensor.Hits, *stretch) {
		h := &sensor.Hits{}
		var fresh *stretch
		for _, x := range all {
			n := float64(count(x.times, r))
			h.N += n
			if n > 0 && !known[x.text] {
				h.K += n
				if fresh == nil {
					fresh = x
				}
			}
		}
		if h.N == 0 {
			return nil, nil
		}
		return map[sensor.Key]*sensor.Hits{key: h}, fresh
	}
	past := make([]map[sensor.Key]*sensor.Hits, len(base))
	for i, r := range base {
		past[i], _ = measure(r)
	}
	now, fresh := measure(inc)
	out := sensor.CompareShares(past, now, inc)
	for i := range out {
		f := &out[i].Finding
		if fresh == nil {
			continue
		}
		f.Text = fmt.Sprintf("%s of %s changed: %s", k.name, k.owner.Name, difference(before, fresh))
		onset := sensor.Time(fresh.times[0])
		f.Onset, f.OnsetErrorSeconds = &onset, gapBefore(all, fresh.times[0])
		v := fresh.value
		f.Evidence = sensor.Evidence(key, inc, []record.Item{{Time: onset, Text: fresh.selector, Value: &v}})
	}
	return out
}

func count(times []int64, r sensor.Range) int {
	lo, _ := slices.BinarySearch(times, r.From)
	hi, _ := slices.BinarySearch(times, r.To)
	return hi - lo
}

// lastBefore is the last of the times before t, the smallest number without.
func lastBefore(times []int64, t int64) int64 {
	if i, _ := slices.BinarySearch(times, t); i > 0 {
		return times[i-1]
	}
	return math.MinInt64
}

// gapBefore is how long before a time the state was last seen otherwise, s.
func gapBefore(all []*stretch, t int64) float64 {
	best := int64(math.MaxInt64)
	for _, x := range all {
		if i, _ := slices.BinarySearch(x.times, t); i > 0 {
			best = min(best, t-x.times[i-1])
		}
	}
	if best == math.MaxInt64 {
		return 0
	}
	return float64(best) / 1e9
}

// difference says what changed from one state to another.
func difference(a, b *stretch) string {
	if a.labels == nil && b.labels == nil {
		return fmt.Sprintf("%g → %g", a.value, b.value)
	}
	names := map[string]bool{}
	for n := range a.labels {
		names[n] = true
	}
	for n := range b.labels {
		names[n] = true
	}
	sorted := make([]string, 0, len(names))
	for n := range names {
		if a.labels[n] != b.labels[n] {
			sorted = append(sorted, n)
		}
	}
	slices.Sort(sorted)
	parts := make([]string, 0, len(sorted))
	for i, n := range sorted {
		if i == 8 {
			parts = append(parts, fmt.Sprintf("and %d more", len(sorted)-i))
			break
		}
		parts = append(parts, fmt.Sprintf("%s %q → %q", n, a.labels[n], b.labels[n]))
	}
	return strings.Join(parts, ", ")
}
