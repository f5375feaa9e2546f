package metrics

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"inquest/record"
	"inquest/sensor"
)

// Kinds of checks that hold one series against another. They need no knowledge of
// what is usual, and are compared with the baseline all the same.
const (
	// KindStalled is the share of points at which requests run and nothing is
	// generated.
	KindStalled = "stalled"
	// KindInversion is the share of intervals in which a client sees a shorter time
	// between tokens than the server that makes them, as only a buffer between them
	// can do.
	KindInversion = "itl_inversion"
	// KindMismatch is the larger of the sums of tokens that clients and servers
	// count, as a share of the smaller: 1 where all tokens arrive.
	KindMismatch = "token_mismatch"
	// KindGrowth is the number of series of a service.
	KindGrowth = "series_growth"
)

// Consistency holds series against each other.
type Consistency struct{}

// Name implements [sensor.Sensor].
func (Consistency) Name() string { return "metrics/consistency" }

// Quadrant implements [sensor.Sensor].
func (Consistency) Quadrant() record.Quadrant { return record.QuadrantMetrics }

// Measure implements [sensor.Sensor].
func (c Consistency) Measure(w *sensor.Window, p *sensor.Profile) {
	v := view{}
	for i := range w.Series {
		v.take(&w.Series[i])
	}
	c.stalled(&v, p)
	c.inversion(&v, p)
	c.mismatch(&v, p)
	c.growth(w, p)
}

func (c Consistency) key(kind string, e record.Entity, subject, unit string) sensor.Key {
	return sensor.Key{Quadrant: c.Quadrant(), Sensor: c.Name(), Kind: kind, Entity: e, Subject: subject, Unit: unit}
}

// place is where requests are served: what owns the series, the model and the
// engine in it.
type place struct {
	owner         record.Entity
	model, engine string
}

// view sorts the series that the checks need.
type view struct {
	running, generated map[place][]*sensor.Series
	// between tokens, by model
	clientITL, serverITL map[string][]*sensor.Series
	// output tokens a second, by model
	clientTokens, serverTokens map[string][]*sensor.Series
}

func modelOf(l map[string]string) string {
	m := sensor.Owners(l)[record.EntityModel]
	return m[strings.LastIndexByte(m, '/')+1:] // clients name it with and without its maker
}

func put[K comparable](m *map[K][]*sensor.Series, k K, s *sensor.Series) {
	if *m == nil {
		*m = map[K][]*sensor.Series{}
	}
	(*m)[k] = append((*m)[k], s)
}

func (v *view) take(s *sensor.Series) {
	about := s.About()
	name := strings.ReplaceAll(s.Name, ".", "_")
	switch about.Class {
	case sensor.ClassRunning:
		put(&v.running, placeOf(s, about), s)
	case sensor.ClassTokens, sensor.ClassThroughput:
		if !generation(name, s.Labels) {
			return
		}
		put(&v.generated, placeOf(s, about), s)
		if about.Class == sensor.ClassThroughput {
			return // a gauge of what is generated now
		}
		if fromClient(name) {
			put(&v.clientTokens, modelOf(s.Labels), s)
		} else {
			put(&v.serverTokens, modelOf(s.Labels), s)
		}
	case sensor.ClassLatency, sensor.ClassOutgoing:
		if !betweenTokens(name) {
			return
		}
		if fromClient(name) {
			put(&v.clientITL, modelOf(s.Labels), s)
		} else {
			put(&v.serverITL, modelOf(s.Labels), s)
		}
	}
}

func placeOf(s *sensor.Series, about *sensor.About) place {
	return place{about.Owner, modelOf(s.Labels), s.Labels["engine"]}
}

// generation reports whether a name counts generated tokens.
func generation(name string, l map[string]string) bool {
	for _, w := range []string{"generation_tokens", "output_tokens", "generated_tokens", "gen_throughput", "completion_tokens"} {
		if strings.Contains(name, w) {
			return true
		}
	}
	return strings.Contains(name, "token_usage") && (l["gen_ai.token.type"] == "output" || l["gen_ai_token_type"] == "output")
}

func fromClient(name string) bool {
	return strings.Contains(name, "client") || strings.Contains(name, "_streaming_") || strings.HasPrefix(name, "litellm")
}

func betweenTokens(name string) bool {
	for _, w := range []string{"inter_token", "per_output_token", "per_output_chunk", "time_per_token", "_itl", "_tpot"} {
		if strings.Contains(name, w) {
			return !strings.HasSuffix(name, "_count")
		}
	}
	return false
}

func (c Consistency) stalled(v *view, p *sensor.Profile) {
	for _, at := range sortedPlaces(v.running) {
		made := v.generated[at]
		if len(made) == 0 || at.owner.IsZero() {
			continue
		}
		running := v.running[at][0]
		hits := p.Trials(c.key(KindStalled, at.owner, at.model, "1"))
		selector := running.About().Selector
		values := make([]float64, len(running.Points))
		for i, pt := range running.Points {
			rate, known := 0.0, false
			for _, s := range made {
				if r, ok := near(s.Points, pt.Time); ok {
					rate, known = rate+r, true
				}
			}
			if !known {
				continue
			}
			// The request may have come a moment ago: it must have run before, too.
			stood := pt.Value > 0 && (i == 0 || running.Points[i-1].Value > 0) && rate <= 0
			values[i] = pt.Value
			hits.Add(stood, record.Item{Time: sensor.Time(pt.Time), Text: selector, Value: &values[i]})
		}
	}
}

func sortedPlaces(m map[place][]*sensor.Series) []place {
	out := make([]place, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.SortFunc(out, func(a, b place) int {
		return cmp.Or(a.owner.Compare(b.owner), cmp.Compare(a.model, b.model), cmp.Compare(a.engine, b.engine))
	})
	return out
}

// near returns the value at a time, or of the next point within a scrape's
// distance of it: targets are scraped at different moments.
func near(points []sensor.Point, t int64) (float64, bool) {
	const most = int64(20e9)
	i, _ := slices.BinarySearchFunc(points, t, func(p sensor.Point, t int64) int { return cmp.Compare(p.Time, t) })
	best, found := int64(math.MaxInt64), -1
	for k := max(0, i-1); k <= i && k < len(points); k++ {
		if d := max(points[k].Time-t, t-points[k].Time); d < best && d <= most {
			best, found = d, k
		}
	}
	if found < 0 {
		return 0, false
	}
	return points[found].Value, true
}

// models pairs what clients and servers tell of the same model; one that names no
// model is taken for the only one.
func models(client, server map[string][]*sensor.Series, fn func(model string, client, server []*sensor.Series)) {
	names := make([]string, 0, len(client))
	for m := range client {
		names = append(names, m)
	}
	slices.Sort(names)
	for _, m := range names {
		s := server[m]
		if s == nil && len(server) == 1 && (m == "" || server[""] != nil) {
			for _, s = range server {
			}
		}
		if s != nil {
			fn(m, client[m], s)
		}
	}
}

// faster is the share of the server's time between tokens below which a client's
// cannot be chance: means of the same tokens differ by little.
const faster = 0.8

func (c Consistency) inversion(v *view, p *sensor.Profile) {
	models(v.clientITL, v.serverITL, func(model string, client, server []*sensor.Series) {
		for _, s := range client {
			about := s.About()
			if about.Owner.IsZero() {
				continue
			}
			own := secondsPer(s.Unit)
			hits := p.Trials(c.key(KindInversion, about.Owner, model, "1"))
			values := make([]float64, len(s.Points))
			for i, pt := range s.Points {
				sum, n := 0.0, 0.0
				for _, o := range server {
					if x, ok := near(o.Points, pt.Time); ok {
						sum, n = sum+x*secondsPer(o.Unit), n+1
					}
				}
				if n == 0 {
					continue
				}
				values[i] = pt.Value
				hits.Add(pt.Value*own < faster*sum/n, record.Item{Time: sensor.Time(pt.Time), Text: about.Selector, Value: &values[i]})
			}
		}
	})
}

func secondsPer(unit string) float64 {
	switch unit {
	case "ms":
		return 1e-3
	case "us":
		return 1e-6
	}
	return 1
}

// level is the mean of rates.
func level(points []sensor.Point) float64 {
	sum := 0.0
	for _, p := range points {
		sum += p.Value
	}
	return sum / float64(len(points))
}

func (c Consistency) mismatch(v *view, p *sensor.Profile) {
	models(v.clientTokens, v.serverTokens, func(model string, client, server []*sensor.Series) {
		a, b := 0.0, 0.0
		for _, s := range client {
			a += level(s.Points)
		}
		for _, s := range server {
			b += level(s.Points)
		}
		const most = 100 // of which nothing arrives, too
		if a <= 0 && b <= 0 {
			return
		}
		owner := server[0].About().Owner
		if owner.Kind == record.EntityPod && len(server) > 1 {
			owner = record.Entity{Kind: record.EntityModel, Name: sensor.Owners(server[0].Labels)[record.EntityModel]}
		}
		if owner.Name == "" {
			return
		}
		last := client[0].Points[len(client[0].Points)-1]
		p.Value(c.key(KindMismatch, owner, model, "1"), math.Min(most, math.Max(a, b)/math.Min(a, b)),
			record.Item{Time: sensor.Time(last.Time), Text: client[0].About().Selector, Value: &last.Value})
	})
}

func (c Consistency) growth(w *sensor.Window, p *sensor.Profile) {
	count := map[string]float64{}
	for i := range w.Series {
		s := &w.Series[i]
		if service := sensor.Owners(s.Labels)[record.EntityService]; service != "" && s.Query == "" {
			count[service]++
		}
	}
	at := sensor.Time(w.Range.To - 1)
	for service, n := range count {
		p.Value(c.key(KindGrowth, sensor.Service(service), "series", "{series}"), n, record.Item{
			Time: at, Text: `count({service_name="` + service + `"})`, Value: &n,
		})
	}
}
