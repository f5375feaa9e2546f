package scrapereceiver

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// A Go service that is asked for protobuf: native histogram, exemplar, start.
func TestProtobuf(t *testing.T) {
	reg := prometheus.NewRegistry()
	hist := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "work_seconds", Help: "Work.", NativeHistogramBucketFactor: 2, NativeHistogramMaxExemplars: 4})
	count := prometheus.NewCounter(prometheus.CounterOpts{Name: "work_total"})
	reg.MustRegister(hist, count)
	trace := prometheus.Labels{"trace_id": "5b8efff798038103d269b633813fc60c"}
	for _, v := range []float64{0.3, 0.3, 3, -3, 0} {
		hist.(prometheus.ExemplarObserver).ObserveWithExemplar(v, trace)
	}
	count.(prometheus.ExemplarAdder).AddWithExemplar(2, trace)
	server := httptest.NewServer(promhttp.HandlerFor(reg, promhttp.HandlerOpts{}))
	defer server.Close()
	r := begin(t, func(c *Config) {
		c.ScrapeConfigs = []map[string]any{{
			"job_name": "go", "scrape_native_histograms": true,
			"static_configs": []any{map[string]any{"targets": []any{strings.TrimPrefix(server.URL, "http://")}}},
		}}
	})
	until(t, "a scrape", func() bool { _, ok := r.newest("work_seconds"); return ok })
	m, _ := r.newest("work_seconds")
	if m.Type() != pmetric.MetricTypeExponentialHistogram {
		t.Fatalf("work_seconds is a %v", m.Type())
	}
	p := m.ExponentialHistogram().DataPoints().At(0)
	// With scale 0 the bucket i is (2^i, 2^(i+1)]: 0.3 in −2, 3 in 1.
	got := []any{p.Scale(), p.Count(), p.ZeroCount(), p.Positive().Offset(), p.Negative().Offset(), p.StartTimestamp() > 0 && p.StartTimestamp() < p.Timestamp()}
	want := []any{int32(0), uint64(5), uint64(1), int32(-2), int32(1), true}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("point has %v, want %v", got, want)
			break
		}
	}
	if counts := p.Positive().BucketCounts().AsRaw(); len(counts) != 4 || counts[0] != 2 || counts[3] != 1 {
		t.Errorf("buckets are %v", counts)
	}
	exemplars := map[string]int{}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, md := range r.batches {
		for _, m := range md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
			switch m.Name() {
			case "work_seconds":
				exemplars[m.Name()] += m.ExponentialHistogram().DataPoints().At(0).Exemplars().Len()
			case "work_total":
				exemplars[m.Name()] += m.Sum().DataPoints().At(0).Exemplars().Len()
			}
		}
	}
	// The client keeps the newest of four exemplars of the histogram.
	if exemplars["work_total"] != 1 || exemplars["work_seconds"] == 0 || exemplars["work_seconds"] > 4 {
		t.Errorf("exemplars are %v", exemplars)
	}
}

func TestNativeRefused(t *testing.T) {
	f := func(h *histogram.Histogram, fh *histogram.FloatHistogram) {
		t.Helper()
		app := newAppender(testTarget(), func(*batch) error { t.Error("a batch is sent"); return nil }, func(string) {})
		_, err := app.Append(0, labels.FromStrings("__name__", "h"), 0, 1, 0, h, fh, storage.AOptions{MetricFamilyName: "h"})
		if !errors.Is(err, storage.ErrOutOfBounds) {
			t.Errorf("answer is %v", err)
		}
		if err := app.Commit(); err != nil {
			t.Error(err)
		}
	}
	f(&histogram.Histogram{Count: 1, PositiveSpans: []histogram.Span{{Length: 2}}, PositiveBuckets: []int64{1}}, nil)
	f(&histogram.Histogram{Count: 2, PositiveSpans: []histogram.Span{{Length: 1}, {Offset: 1 << 30, Length: 1}}, PositiveBuckets: []int64{1, 0}}, nil)
	f(nil, &histogram.FloatHistogram{Count: 1, PositiveSpans: []histogram.Span{{Length: 1}}, PositiveBuckets: []float64{-1}})
	f(nil, &histogram.FloatHistogram{Schema: histogram.CustomBucketsSchema, Count: 1, CustomValues: []float64{1}, PositiveSpans: []histogram.Span{{Length: 3}}, PositiveBuckets: []float64{1, 0, 0}})
}

// One with bounds of its own is the classic histogram that it was.
func TestNativeCustom(t *testing.T) {
	fh := &histogram.FloatHistogram{
		Schema: histogram.CustomBucketsSchema, Count: 6, Sum: 9, CustomValues: []float64{1, 2, 5},
		PositiveSpans: []histogram.Span{{Offset: 1, Length: 1}, {Offset: 1, Length: 1}}, PositiveBuckets: []float64{4, 2},
	}
	app := newAppender(testTarget(), func(b *batch) error {
		got, err := store(b.md)
		if err != nil {
			return err
		}
		for key, want := range map[string]string{
			`{__name__="h_bucket", le="1"} 1`: "0", `{__name__="h_bucket", le="2"} 1`: "4", `{__name__="h_bucket", le="5"} 1`: "4",
			`{__name__="h_bucket", le="+Inf"} 1`: "6", `{__name__="h_sum"} 1`: "9", `{__name__="h_count"} 1`: "6",
		} {
			if v := got.values[key]; len(v) != 1 || v[0] != want {
				t.Errorf("%s is %q, want %q", key, v, want)
			}
		}
		return nil
	}, func(string) {})
	if _, err := app.Append(0, labels.FromStrings("__name__", "h"), 0, 1, 0, nil, fh, storage.AOptions{MetricFamilyName: "h"}); err != nil {
		t.Fatal(err)
	}
	if err := app.Commit(); err != nil {
		t.Fatal(err)
	}
}
