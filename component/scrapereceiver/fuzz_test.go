package scrapereceiver

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/scrape"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/storage/remote/otlptranslator/prometheusremotewrite"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"inquest/admit"
)

// stored is what the store of samples makes of a batch: values by series and
// time, each as often as it comes.
type stored struct {
	storage.AppenderV2
	values map[string][]string
}

func (s *stored) Append(_ storage.SeriesRef, ls labels.Labels, _, t int64, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram, _ storage.AOptions) (storage.SeriesRef, error) {
	s.add(ls, t, v, h, fh)
	return 0, nil
}

func (s *stored) add(ls labels.Labels, t int64, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram) {
	b := labels.NewBuilder(ls)
	for _, name := range []string{"service_name", "service_instance_id", "url_scheme", "server_address", "server_port"} {
		b.Del(name)
	}
	for _, name := range []string{"le", "quantile"} {
		if v, ok := number(ls.Get(name)); ok {
			b.Set(name, plain(v)) // 1.0 and 1 are one bound
		}
	}
	text := fmt.Sprint(v)
	switch {
	case h != nil && value.IsStaleNaN(h.Sum), value.IsStaleNaN(v):
		text = "end"
	case h != nil:
		text = h.ToFloat(nil).Compact(0).String()
	case fh != nil:
		text = fh.Copy().Compact(0).String()
	}
	key := fmt.Sprint(b.Labels(), t)
	s.values[key] = append(s.values[key], text)
}

// store does what store/local does with scraped metrics.
func store(md pmetric.Metrics) (*stored, error) {
	s := &stored{values: map[string][]string{}}
	_, err := prometheusremotewrite.NewPrometheusConverter(s).FromMetrics(context.Background(), md, prometheusremotewrite.Settings{
		PromoteResourceAttributes:            prometheusremotewrite.NewPromoteResourceAttributes(config.OTLPConfig{PromoteAllResourceAttributes: true}),
		DisableTargetInfo:                    true,
		LabelNamePreserveMultipleUnderscores: true,
	})
	return s, err
}

func testTarget() *target {
	return newTarget(scrape.NewTarget(labels.FromStrings(
		"job", "j", "instance", "i:1", model.AddressLabel, "i:1", model.SchemeLabel, "http", model.MetricsPathLabel, "/metrics", model.ScrapeIntervalLabel, "15s",
	), &config.ScrapeConfig{}, nil, nil))
}

// script makes samples of bytes.
type script []byte

func (s *script) next(n int) int {
	if len(*s) == 0 {
		return 0
	}
	b := (*s)[0]
	*s = (*s)[1:]
	return int(b) % n
}

var (
	fuzzTypes  = []model.MetricType{model.MetricTypeCounter, model.MetricTypeGauge, model.MetricTypeHistogram, model.MetricTypeSummary, model.MetricTypeUnknown, model.MetricTypeInfo, model.MetricTypeGaugeHistogram, ""}
	fuzzSuffix = []string{"", "_bucket", "_sum", "_count", "_total", "_info"}
	fuzzBounds = []string{"", "1.0", "0.5", "+Inf", "NaN", "-Inf", "1e+06", "x", "1", "-0.0"}
	fuzzValues = []float64{0, 1, 2, 3, 5, 8, 1.5, -1, math.Inf(1), math.NaN(), 1e300, math.Float64frombits(value.StaleNaN)}
)

func (s *script) sample() (ls labels.Labels, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram, opts storage.AOptions) {
	family := []string{"a", "b:c", "d__e"}[s.next(3)]
	b := labels.NewBuilder(labels.FromStrings("job", "j", "instance", "i:1", "__name__", family+fuzzSuffix[s.next(len(fuzzSuffix))]))
	switch s.next(8) {
	case 0:
		b.Set("model", "m")
	case 1:
		b.Set("job", "other")
	case 2:
		b.Del("instance")
	}
	b.Set("le", fuzzBounds[s.next(len(fuzzBounds))])
	b.Set("quantile", fuzzBounds[s.next(len(fuzzBounds))])
	v = fuzzValues[s.next(len(fuzzValues))]
	if !value.IsStaleNaN(v) {
		opts.Metadata = metadata.Metadata{Type: fuzzTypes[s.next(len(fuzzTypes))], Unit: []string{"", "seconds"}[s.next(2)], Help: "h"}
		opts.MetricFamilyName = family
	}
	switch s.next(6) {
	case 0:
		opts.Exemplars = []exemplar.Exemplar{{Value: v, Labels: labels.FromStrings("trace_id", "5b8efff798038103d269b633813fc60c")}}
	case 1:
		h = &histogram.Histogram{
			Schema: int32(s.next(4)), ZeroCount: 1, Sum: v, ZeroThreshold: 1e-128,
			PositiveSpans: []histogram.Span{{Offset: int32(s.next(9)) - 4, Length: 2}, {Offset: int32(s.next(3)), Length: 1}}, PositiveBuckets: []int64{2, 1, -1},
			NegativeSpans: []histogram.Span{{Offset: int32(s.next(9)) - 4, Length: 1}}, NegativeBuckets: []int64{4},
		}
		h.Count = 1 + 2 + 3 + 2 + 4
		opts.MetricFamilyName = b.Get("__name__")
	}
	return b.Labels(), v, h, fh, opts
}

// Whatever order samples come in: what was appended is in the batch, once and
// with its value, and the recorder admits it.
func FuzzAppender(f *testing.F) {
	f.Add([]byte("abcdefghijklmnopqrstuvwxyz0123456789"))
	f.Add([]byte{0, 1, 9, 1, 0, 1, 2, 0, 9, 0, 1, 9, 3, 0, 1, 2, 0, 9, 0, 2, 9, 0, 0, 3, 2, 0, 9, 0, 3, 9, 0, 0, 1, 2, 0, 9})
	f.Add([]byte{0, 0, 9, 0, 1, 3, 3, 0, 9, 0, 2, 9, 0, 0, 3, 3, 0, 9, 0, 3, 9, 0, 0, 1, 3, 0, 9, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<12 {
			return
		}
		s := script(data)
		target := testTarget()
		for now := int64(1_700_000_000_000); len(s) > 0; now += 15_000 {
			want := &stored{values: map[string][]string{}}
			samples := 0
			app := newAppender(target, func(b *batch) error {
				checkBatch(t, b, want, samples)
				return nil
			}, func(string) {})
			refs := map[string]storage.SeriesRef{}
			for n := 1 + s.next(40); n > 0 && len(s) > 0; n-- {
				ls, v, h, fh, opts := s.sample()
				at := now - int64(s.next(3))*1000
				ref, err := app.Append(refs[ls.String()], ls, int64(s.next(2))*(now-5), at, v, h, fh, opts)
				if err != nil {
					continue
				}
				refs[ls.String()] = ref
				want.add(ls, at, v, h, fh)
				samples++
			}
			if s.next(5) == 0 {
				if err := app.Rollback(); err != nil {
					t.Fatal(err)
				}
				continue
			}
			if err := app.Commit(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func checkBatch(t *testing.T, b *batch, want *stored, samples int) {
	t.Helper()
	if b.samples != samples {
		t.Fatalf("batch counts %d samples, %d were appended", b.samples, samples)
	}
	report := &admit.Report{}
	points := b.md.DataPointCount()
	if kept := admit.Metrics(b.md, admit.Bounds{}, 1, report); kept != points || report.Rejected() > 0 {
		t.Fatalf("the recorder refuses: %s", report.Message())
	}
	got, err := store(b.md)
	if err != nil {
		t.Fatal(err)
	}
	for key, values := range want.values {
		have := map[string]int{}
		for _, v := range got.values[key] {
			have[v]++
		}
		for _, v := range values {
			if have[v]--; have[v] < 0 {
				t.Fatalf("%s = %s is missing, there is %q", key, v, got.values[key])
			}
		}
	}
}
