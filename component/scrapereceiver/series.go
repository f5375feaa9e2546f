package scrapereceiver

import (
	"math"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
)

// part is what a series is of its metric.
type part uint8

const (
	partGauge part = iota // also all that has no better type
	partCounter
	partNative // a native histogram, whole
	// Those from here on are parts of a group, which is one point.
	partBucket
	partQuantile
	partSum
	partCount
)

// series is one series of a target and what is remembered of it.
type series struct {
	ref    uint64
	labels labels.Labels
	name   string
	meta   metadata.Metadata
	family string
	part   part
	origin origin
	attrs  []labels.Label // without name, job, instance
	group  *group         // of parts of a group
	bound  float64        // of a bucket, or the quantile

	seen  uint64 // the appender that it was last in
	seenT int64  // ms, its time there
	last  int64  // ms, time of the newest sample that was committed
	start
	exemplar exemplar.Exemplar // the newest
}

// group is a classic histogram or a summary: several series with equal labels
// but le or quantile.
type group struct {
	summary bool
	family  string
	meta    metadata.Metadata
	origin  origin
	attrs   []labels.Label
	seen    uint64
	start
}

// start finds out when a series that only grows began.
type start struct {
	time  int64 // ms
	prev  float64
	prevT int64
}

// at returns the start of the stream that has the value v at t: what the target
// says, else the first scrape, or the last one before v fell.
func (s *start) at(told, t int64, v float64) int64 {
	switch {
	case s.time == 0:
		s.time = t
	case v < s.prev && t > s.prevT:
		s.time = s.prevT
	}
	s.prev, s.prevT = v, t
	if told > 0 && told <= t {
		return told
	}
	return min(s.time, t)
}

// find returns the series with these labels, and makes it when it is new or of
// another type than before. An end comes without metadata. It is called with mu
// held.
func (t *target) find(ref uint64, ls labels.Labels, family string, meta metadata.Metadata, native, end bool) *series {
	if s := t.series[ref]; ref != 0 && s != nil && labels.Equal(s.labels, ls) && (end || s.same(family, meta, native)) {
		return s
	}
	for ref = max(ls.Hash(), 1); ; ref++ {
		s := t.series[ref]
		if s == nil {
			s = t.newSeries(ls, family, meta, native)
			s.ref = ref
			t.series[ref] = s
			return s
		}
		if !labels.Equal(s.labels, ls) {
			continue
		}
		if !end && !s.same(family, meta, native) {
			fresh := t.newSeries(ls, family, meta, native)
			fresh.ref, fresh.seen, fresh.seenT, fresh.last = s.ref, s.seen, s.seenT, s.last
			*s = *fresh
		}
		return s
	}
}

func (s *series) same(family string, meta metadata.Metadata, native bool) bool {
	return s.meta == meta && s.family == family && native == (s.part == partNative)
}

func (t *target) newSeries(ls labels.Labels, family string, meta metadata.Metadata, native bool) *series {
	s := &series{
		labels: ls, name: ls.Get(model.MetricNameLabel), meta: meta, family: strings.Clone(family),
		origin: origin{ls.Get(model.JobLabel), ls.Get(model.InstanceLabel)},
	}
	without := ""
	s.part, s.bound, without = partOf(s.name, family, meta.Type, ls)
	if native {
		s.part, without = partNative, ""
	}
	ls.Range(func(l labels.Label) {
		switch l.Name {
		case model.MetricNameLabel, model.JobLabel, model.InstanceLabel:
		default:
			if l.Name != without {
				s.attrs = append(s.attrs, l)
			}
		}
	})
	if s.part >= partBucket {
		s.group = t.findGroup(s)
	}
	return s
}

func (t *target) findGroup(s *series) *group {
	var key strings.Builder
	for _, text := range []string{string(s.meta.Type), s.family, s.origin.job, s.origin.instance} {
		key.WriteString(text + "\xff")
	}
	for _, l := range s.attrs {
		key.WriteString(l.Name + "\xff" + l.Value + "\xff")
	}
	g := t.groups[key.String()]
	if g == nil {
		g = &group{
			summary: s.meta.Type == model.MetricTypeSummary,
			family:  s.family, origin: s.origin, attrs: s.attrs,
		}
		t.groups[key.String()] = g
	}
	g.meta = s.meta
	return g
}

// partOf tells what a series is of its family: its part, the bound of a bucket
// or quantile, and the label that holds the bound.
func partOf(name, family string, typ model.MetricType, ls labels.Labels) (p part, bound float64, label string) {
	suffix, in := strings.CutPrefix(name, family)
	if !in || family == "" {
		return partGauge, 0, ""
	}
	switch typ {
	case model.MetricTypeCounter:
		return partCounter, 0, ""
	case model.MetricTypeHistogram:
		switch suffix {
		case "_bucket":
			if bound, ok := number(ls.Get(labels.BucketLabel)); ok && bound > math.Inf(-1) {
				return partBucket, bound, labels.BucketLabel
			}
		case "_sum":
			return whole(ls, partSum, labels.BucketLabel)
		case "_count":
			return whole(ls, partCount, labels.BucketLabel)
		}
	case model.MetricTypeSummary:
		switch suffix {
		case "":
			if q, ok := number(ls.Get(model.QuantileLabel)); ok && !math.IsInf(q, 0) {
				return partQuantile, q, model.QuantileLabel
			}
		case "_sum":
			return whole(ls, partSum, model.QuantileLabel)
		case "_count":
			return whole(ls, partCount, model.QuantileLabel)
		}
	}
	return partGauge, 0, ""
}

// whole returns p for a sum or count. One with the label of a bound is something
// else.
func whole(ls labels.Labels, p part, label string) (part, float64, string) {
	if ls.Has(label) {
		return partGauge, 0, ""
	}
	return p, 0, ""
}

// number reads a bound. One that is not written as numbers usually are is none:
// two ways to write it are two series.
func number(text string) (float64, bool) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) {
		return 0, false
	}
	if v == 0 && math.Signbit(v) {
		return 0, false
	}
	return v, text == labels.FormatOpenMetricsFloat(v) || text == plain(v)
}

// plain writes a bound as the store does.
func plain(v float64) string {
	if math.IsInf(v, 1) {
		return "+Inf"
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}
