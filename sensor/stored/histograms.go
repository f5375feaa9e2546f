package stored

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser/posrange"

	"inquest/sensor"
	"inquest/store"
)

// maxBuckets bounds the bucket series that are read for a window, taking each
// histogram to have usualBuckets. The histograms with the fewest series come
// first: those with the most are split by labels that bear no percentile.
const (
	maxBuckets   = 20_000
	usualBuckets = 16
)

// bucketUnit is the unit of what a histogram observes.
func bucketUnit(base string, meta map[string]store.Metadata) string {
	if u := ucum(meta[base].Unit); u != "" {
		return u
	}
	return unitOf(base)
}

// buckets reads those of the histograms in counts, which holds the number of
// series of each.
func (s *Source) buckets(ctx context.Context, r sensor.Range, counts map[string]int, meta map[string]store.Metadata, fn func(sensor.Series) error) error {
	names := make([]string, 0, len(counts))
	for n := range counts {
		names = append(names, n)
	}
	slices.SortFunc(names, func(a, b string) int {
		if d := counts[a] - counts[b]; d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	left := maxBuckets
	var parts []string
	for _, n := range names {
		if left -= counts[n] * usualBuckets; left < 0 {
			break
		}
		parts = append(parts, regexp.QuoteMeta(n)+"_bucket")
	}
	if len(parts) == 0 {
		return nil
	}
	matrix, err := s.points(ctx, `__name__=~"`+strings.ReplaceAll(strings.Join(parts, "|"), `\`, `\\`)+`",alias_source=""`, r)
	if err != nil {
		return err
	}
	for _, series := range matrix {
		if len(series.Floats) == 0 {
			continue
		}
		out := describe(series.Metric, meta)
		out.Unit = bucketUnit(strings.TrimSuffix(out.Name, "_bucket"), meta)
		out.Points = pointsOf(series.Floats)
		if err := fn(out); err != nil {
			return err
		}
	}
	return nil
}

// native gives a native histogram as what a classic one is read for: its count
// and sum, and its 99th percentile between each two points.
func native(of sensor.Series, points []promql.HPoint, fn func(sensor.Series) error) error {
	of.Counter, of.Gauge = true, false
	sum, count := of, of
	sum.Name, count.Name = of.Name+"_sum", of.Name+"_count"
	selector := sensor.Selector(&of)
	tail := of
	tail.Name, tail.Counter = sensor.TailName(of.Name), false
	tail.Query = "histogram_quantile(0.99, rate(" + selector + "[5m]))"
	class, wanted := sensor.TailClass(of.Name, of.Unit, of.Labels)
	tail.Class = class
	for i, p := range points {
		t := p.T * int64(time.Millisecond)
		sum.Points = append(sum.Points, sensor.Point{Time: t, Value: p.H.Sum})
		count.Points = append(count.Points, sensor.Point{Time: t, Value: p.H.Count})
		if i == 0 || !wanted {
			continue
		}
		d := p.H
		if before := points[i-1].H; !p.H.DetectReset(before) {
			var err error
			if d, _, _, err = p.H.Copy().Sub(before); err != nil {
				continue // other buckets than before
			}
		}
		if d.Count <= 0 {
			continue
		}
		q, _ := promql.HistogramQuantile(0.99, d, of.Name, posrange.PositionRange{})
		tail.Points = append(tail.Points, sensor.Point{Time: t, Value: q})
	}
	for _, s := range []sensor.Series{sum, count, tail} {
		if len(s.Points) == 0 {
			continue
		}
		if err := fn(s); err != nil {
			return err
		}
	}
	return nil
}
