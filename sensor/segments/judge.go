package segments

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"inquest/record"
	"inquest/sensor"
	"inquest/stats"
)

// Kinds of findings. Each service whose requests differ in some dimension has one
// of each that could be examined, so that absence counts. Observed is the share of
// requests of the segment that fail, that are slower than nine in ten of the same
// operation usually are, or whose answers are as poor as the poorest tenth.
const (
	KindErrors  = "segment_errors"
	KindLatency = "segment_latency"
	KindQuality = "segment_quality"
)

// kinds are what is compared, and how the text calls it.
var kinds = []struct{ kind, what string }{
	{KindErrors, "fail"}, {KindLatency, "are slow"}, {KindQuality, "have poor answers"},
}

// tail is the share of the baseline's requests that counts as slow, or as poor.
const tail = 0.1

// Judge compares the segments of an incident with those of a baseline.
func Judge(base []*sensor.Profile, inc *sensor.Profile) []sensor.Compared {
	if len(base) < leastSlices {
		return nil
	}
	all := append(slices.Clone(base), inc)
	by := map[string]*serviceCells{}
	var names []string
	for slice, p := range all {
		for i := range p.Segments {
			s := &p.Segments[i]
			c := by[s.Service]
			if c == nil {
				c = &serviceCells{slices: make([][]*sensor.Segment, len(all))}
				by[s.Service] = c
				names = append(names, s.Service)
			}
			c.slices[slice] = append(c.slices[slice], s)
		}
	}
	slices.Sort(names)
	var out []sensor.Compared
	for _, name := range names {
		out = append(out, judge(name, by[name], inc.Range)...)
	}
	return out
}

// leastSlices is the number of slices from which a baseline means anything.
const leastSlices = 3

// serviceCells are the segments of one service, by slice; the last is the incident.
type serviceCells struct{ slices [][]*sensor.Segment }

func (c *serviceCells) incident() []*sensor.Segment { return c.slices[len(c.slices)-1] }

func judge(service string, c *serviceCells, r sensor.Range) []sensor.Compared {
	d := newDims(c)
	if !d.any() {
		return nil
	}
	limits := newLimits(c)
	var out []sensor.Compared
	for _, k := range kinds {
		s := newSearch(c, d, func(x *sensor.Segment) stats.Share { return limits.share(k.kind, x) })
		if s.whole.now.N < leastVisits || s.whole.before.N < leastVisits {
			continue
		}
		out = append(out, finding(service, k.kind, k.what, s, s.best(), r))
	}
	return out
}

// limits are from where a request is slow or an answer poor, by operation.
type limits struct{ slow, poor map[string]float32 }

func newLimits(c *serviceCells) limits {
	l := limits{map[string]float32{}, map[string]float32{}}
	own, quality := map[string][]float64{}, map[string][]float64{}
	for _, slice := range c.slices[:len(c.slices)-1] {
		for _, s := range slice {
			op := operation(s)
			for _, v := range s.Own {
				own[op] = append(own[op], float64(v))
			}
			for _, v := range s.Quality {
				quality[op] = append(quality[op], float64(v))
			}
		}
	}
	for op, v := range own {
		l.slow[op] = float32(stats.Quantile(v, 1-tail))
	}
	for op, v := range quality {
		l.poor[op] = float32(stats.Quantile(v, tail))
	}
	return l
}

func operation(s *sensor.Segment) string { return value(s, dimOperation) }

func value(s *sensor.Segment, name string) string {
	for i := range s.Dimensions {
		if s.Dimensions[i].Name == name {
			return s.Dimensions[i].Value
		}
	}
	return ""
}

// share returns how many of a segment's requests show the kind.
func (l limits) share(kind string, s *sensor.Segment) stats.Share {
	var h stats.Share
	switch kind {
	case KindErrors:
		return stats.Share{K: float64(s.Failures), N: float64(s.Visits)}
	case KindLatency:
		slow, ok := l.slow[operation(s)]
		if !ok {
			return h // the operation is new
		}
		for _, v := range s.Own {
			if v > slow {
				h.K++
			}
		}
		h.N = float64(len(s.Own))
	case KindQuality:
		poor, ok := l.poor[operation(s)]
		if !ok {
			return h
		}
		for _, v := range s.Quality {
			if v < poor {
				h.K++
			}
		}
		h.N = float64(len(s.Quality))
	}
	return h
}

// finding says which combination was found, or that none was.
func finding(service, kind, what string, s *search, b *candidate, r sensor.Range) sensor.Compared {
	k := sensor.Key{Quadrant: record.QuadrantTraces, Sensor: Name, Kind: kind, Entity: sensor.Service(service), Unit: "1"}
	if b == nil {
		whole := s.compare(k, combination{}, r)
		whole.Strength, whole.Effect = 1, 0
		whole.Distance = 0
		for i := range whole.Past {
			whole.Past[i].P, whole.Past[i].Distance = 1, 0
		}
		whole.Evidence = sensor.Evidence(k, r, nil)
		return whole
	}
	parts := s.dims.names(b.combination)
	for i, d := range parts {
		if i > 0 {
			k.Subject += ","
		}
		k.Subject += d.Name + "=" + d.Value
	}
	out := s.compare(k, b.combination, r)
	out.Strength = b.p
	var conds []string
	for _, d := range parts {
		conds = append(conds, d.Name+"="+d.Value)
	}
	rest := s.whole.now
	rest.K, rest.N = rest.K-b.now.K, rest.N-b.now.N
	out.Text = fmt.Sprintf("%s of requests to %s with %s %s (usual: %s), %s of the others",
		percent(out.Observed), service, strings.Join(conds, " and "), what, percent(out.Expected), percent(rest.Rate()))
	out.Evidence = evidence(k, parts, r, s.items(b.combination, kind))
	return out
}

func percent(v float64) string {
	return strconv.FormatFloat(100*v, 'g', 3, 64) + " %"
}

// fields are the dimensions that every span of a service tells, and their fields.
var fields = map[string]string{
	dimOperation: record.FieldName, dimPod: "k8s.pod.name", dimNode: "k8s.node.name", dimVersion: dimVersion,
	"cloud.region": "cloud.region",
}

// evidence leads to the requests of a segment. Dimensions that may stand at another
// span of the request are left out of the query; the items show them.
func evidence(k sensor.Key, parts []sensor.Dimension, r sensor.Range, items []record.Item) []record.Reference {
	k.Subject = ""
	out := sensor.Evidence(k, r, items)
	for _, d := range parts {
		// A name was shortened where it has a star.
		if f := fields[d.Name]; f != "" && !strings.Contains(d.Value, "*") {
			out[0].Query += " " + strconv.Quote(f) + ":=" + strconv.Quote(d.Value)
		}
	}
	return out
}
