package admit

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/storage/remote/otlptranslator/prometheusremotewrite"
	"github.com/prometheus/prometheus/tsdb"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"inquest/record"
)

// prometheus tells what a Prometheus database says to md by itself.
func prometheus(t *testing.T, md pmetric.Metrics) error {
	t.Helper()
	opts := tsdb.DefaultOptions()
	opts.OutOfOrderTimeWindow = time.Hour.Milliseconds()
	db, err := tsdb.Open(t.TempDir(), slog.New(slog.DiscardHandler), nil, opts, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	app := db.AppenderV2(context.Background())
	_, err = prometheusremotewrite.NewPrometheusConverter(app).FromMetrics(context.Background(), md, prometheusremotewrite.Settings{
		AddMetricSuffixes: true, AllowDeltaTemporality: true,
		PromoteResourceAttributes: prometheusremotewrite.NewPromoteResourceAttributes(config.OTLPConfig{PromoteAllResourceAttributes: true}),
	})
	if err != nil {
		_ = app.Rollback()
		return err
	}
	return app.Commit()
}

func gauge(m pmetric.Metric) pmetric.NumberDataPoint {
	p := m.SetEmptyGauge().DataPoints().AppendEmpty()
	p.SetTimestamp(at(arrival))
	p.SetIntValue(1)
	return p
}

func sum(m pmetric.Metric) pmetric.NumberDataPoint {
	m.SetEmptySum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	p := m.Sum().DataPoints().AppendEmpty()
	p.SetTimestamp(at(arrival))
	p.SetDoubleValue(1)
	return p
}

func histogram(m pmetric.Metric, bounds []float64, counts []uint64) pmetric.HistogramDataPoint {
	m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
	p := m.Histogram().DataPoints().AppendEmpty()
	p.SetTimestamp(at(arrival))
	p.ExplicitBounds().FromRaw(bounds)
	p.BucketCounts().FromRaw(counts)
	return p
}

func exponential(m pmetric.Metric, count uint64, scale, offset int32, counts ...uint64) pmetric.ExponentialHistogramDataPoint {
	m.SetEmptyExponentialHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	p := m.ExponentialHistogram().DataPoints().AppendEmpty()
	p.SetTimestamp(at(arrival))
	p.SetCount(count)
	p.SetScale(scale)
	p.Positive().SetOffset(offset)
	p.Positive().BucketCounts().FromRaw(counts)
	return p
}

func summary(m pmetric.Metric, quantiles ...float64) {
	p := m.SetEmptySummary().DataPoints().AppendEmpty()
	p.SetTimestamp(at(arrival))
	for i, q := range quantiles {
		v := p.QuantileValues().AppendEmpty()
		v.SetQuantile(q)
		v.SetValue(float64(i))
	}
}

// onMetrics admits one metric after change. It also checks that Prometheus takes
// what was kept and, where refused says so, that it would not have taken the rest.
func onMetrics(t *testing.T, change func(pmetric.ResourceMetrics, pmetric.Metric), kept int, refused bool, want string) {
	t.Helper()
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("m")
	change(rm, m)
	if refused {
		raw := pmetric.NewMetrics()
		md.CopyTo(raw)
		if err := prometheus(t, raw); err == nil {
			t.Error("Prometheus takes it all")
		}
	}
	total := md.DataPointCount()
	rep := &Report{}
	n := Metrics(md, bounds, received, rep)
	if n != kept || n != md.DataPointCount() || n+rep.Rejected() != total {
		t.Errorf("kept %d, want %d; left %d, rejected %d of %d", n, kept, md.DataPointCount(), rep.Rejected(), total)
	}
	if n == 0 && md.ResourceMetrics().Len() != 0 {
		t.Error("an empty resource is left")
	}
	check(t, rep, want)
	if err := prometheus(t, md); err != nil {
		t.Errorf("Prometheus refuses what was kept: %v", err)
	}
}

// onMetric is onMetrics for changes of the metric alone.
func onMetric(t *testing.T, change func(pmetric.Metric), kept int, refused bool, want string) {
	t.Helper()
	onMetrics(t, func(_ pmetric.ResourceMetrics, m pmetric.Metric) { change(m) }, kept, refused, want)
}

type M = pmetric.Metric

func TestMetrics(t *testing.T) {
	on := func(change func(M), kept int, refused bool, want string) {
		t.Helper()
		onMetric(t, change, kept, refused, want)
	}
	// all types as they should be
	on(func(m M) { gauge(m) }, 1, false, "")
	on(func(m M) { sum(m) }, 1, false, "")
	on(func(m M) { histogram(m, []float64{1, 2}, []uint64{1, 0, 2}) }, 1, false, "")
	on(func(m M) { histogram(m, nil, nil).SetCount(3) }, 1, false, "")
	on(func(m M) { histogram(m, []float64{1, math.Inf(1)}, []uint64{1, 2, 0}).SetCount(3) }, 1, false, "")
	on(func(m M) { exponential(m, 6, 20, -5, 1, 2, 3) }, 1, false, "")
	on(func(m M) { exponential(m, 7, 0, 0, 1, 2, 3).SetSum(math.NaN()) }, 1, false, "")
	on(func(m M) { exponential(m, 0, 0, 0).SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true)) }, 1, false, "")
	on(func(m M) { summary(m, 0, 0.5, 1) }, 1, false, "")
	on(func(m M) { sum(m); m.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityDelta) }, 1, false, "")
	// metrics
	on(func(pmetric.Metric) {}, 0, true, `metric "m" was left out, since it has no data of a type`)
	on(func(m M) { m.SetEmptyGauge() }, 0, false, `metric "m" was left out, since it has no points`)
	on(func(m M) { gauge(m); m.SetName("") }, 0, true, `metric name ""`)
	on(func(m M) { gauge(m); m.SetName("§_") }, 0, true, `metric name "§_"`)
	on(func(m M) { sum(m); m.Sum().SetAggregationTemporality(0) }, 0, true, `metric "m" has no aggregation temporality`)
	on(func(m M) { histogram(m, nil, nil); m.Histogram().SetAggregationTemporality(0) }, 0, true, "no aggregation temporality")
	on(func(m M) {
		exponential(m, 0, 0, 0)
		m.ExponentialHistogram().SetAggregationTemporality(0)
	}, 0, true, "no aggregation temporality")
	// resources
	f := func(change func(pmetric.ResourceMetrics, M), kept int, refused bool, want string) {
		t.Helper()
		onMetrics(t, change, kept, refused, want)
	}
	f(func(rm pmetric.ResourceMetrics, m M) { gauge(m); rm.Resource().Attributes().PutStr("", "x") }, 1, true, `1 noted: resource attribute ""`)
	f(func(rm pmetric.ResourceMetrics, m M) { gauge(m); nest(rm.Resource().Attributes().PutEmpty("k"), 40) }, 0, false, "nested deeper")
}

func TestPoints(t *testing.T) {
	on := func(change func(M), kept int, refused bool, want string) {
		t.Helper()
		onMetric(t, change, kept, refused, want)
	}
	on(func(m M) { gauge(m).SetTimestamp(0) }, 0, false, "has no timestamp")
	on(func(m M) { summary(m); m.Summary().DataPoints().At(0).SetTimestamp(9) }, 0, false, "metric point of 1970-01-01T00:00:00.000000009Z is older")
	on(func(m M) { gauge(m).SetTimestamp(at(arrival.AddDate(74, 0, 0))) }, 0, false, "is later than")
	on(func(m M) { m.SetEmptyGauge().DataPoints().AppendEmpty().SetTimestamp(at(arrival)) }, 0, false, "has no value")
	on(func(m M) {
		p := m.SetEmptyGauge().DataPoints().AppendEmpty()
		p.SetTimestamp(at(arrival))
		p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	}, 1, false, "")
	on(func(m M) { gauge(m).Attributes().PutStr("", "v") }, 0, true, `attribute name ""`)
	on(func(m M) { gauge(m).Attributes().PutStr("__", "v") }, 0, true, `attribute name "__"`)
	on(func(m M) { gauge(m).Attributes().PutStr("a.b", "v") }, 1, false, "")
	on(func(m M) { nest(gauge(m).Attributes().PutEmpty("k"), MaxDepth+1) }, 0, false, "nested deeper")
	on(func(m M) { gauge(m).Attributes().PutStr("k", strings.Repeat("x", record.MaxRowSize)) }, 0, false, "above the limit")
	on(func(m M) { histogram(m, []float64{1}, []uint64{1}) }, 0, false, "1 bucket counts for 1 bounds")
	on(func(m M) { histogram(m, []float64{2, 2}, []uint64{1, 2, 3}) }, 0, false, "bound 2 where")
	on(func(m M) { histogram(m, []float64{2, 1}, []uint64{1, 2, 3}) }, 0, false, "bound 1 where")
	on(func(m M) { histogram(m, []float64{math.NaN()}, []uint64{1, 2}) }, 0, false, "bound NaN")
	on(func(m M) { exponential(m, 6, -5, 0, 1, 2, 3) }, 0, true, "scale -5")
	on(func(m M) { exponential(m, 5, 0, 0, 1, 2, 3) }, 0, true, "count 5 and 6 observations")
	on(func(m M) { exponential(m, 5, 0, 0, 1<<63, 1<<63, 5) }, 0, true, "observations")
	on(func(m M) { exponential(m, 6, 0, math.MaxInt32-1, 1, 2, 3) }, 0, false, "32-bit")
	on(func(m M) { summary(m, 0.5, 0.5) }, 0, false, "quantile 0.5")
	// one bad point takes no other along
	on(func(m M) {
		exponential(m, 6, -5, 0, 1, 2, 3)
		exp := m.ExponentialHistogram().DataPoints()
		exp.At(0).CopyTo(exp.AppendEmpty())
		exp.At(1).SetScale(1)
	}, 1, true, "1 rejected: a point of exponential")
}

func TestExemplars(t *testing.T) {
	f := func(change func(pmetric.Exemplar), left int, refused bool, want string) {
		t.Helper()
		var exs pmetric.ExemplarSlice
		onMetric(t, func(m M) {
			p := histogram(m, nil, nil)
			exs = p.Exemplars()
			e := exs.AppendEmpty()
			e.SetTimestamp(at(arrival))
			e.SetDoubleValue(1)
			change(e)
		}, 1, refused, want)
		if exs.Len() != left {
			t.Errorf("%d exemplars are left, want %d", exs.Len(), left)
		}
	}
	f(func(pmetric.Exemplar) {}, 1, false, "")
	f(func(e pmetric.Exemplar) { e.SetTimestamp(0) }, 1, false, "")
	f(func(e pmetric.Exemplar) { pmetric.NewExemplar().CopyTo(e) }, 0, true, "1 noted: an exemplar of metric \"m\" was left out of its point: it has no value")
	f(func(e pmetric.Exemplar) { e.SetTimestamp(5) }, 0, false, "its time 1970")
	f(func(e pmetric.Exemplar) { nest(e.FilteredAttributes().PutEmpty("k"), 40) }, 0, false, "nested deeper")
	f(func(e pmetric.Exemplar) { e.FilteredAttributes().PutStr("k", strings.Repeat("x", record.MaxRowSize)) }, 0, false, "above the limit")
}

// TestNoOtherPointIsLost mixes good and bad points of all types.
func TestNoOtherPointIsLost(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 2))
		md := pmetric.NewMetrics()
		want, bad := "", 0
		for range 1 + r.IntN(3) {
			rm := md.ResourceMetrics().AppendEmpty()
			for range r.IntN(3) {
				sm := rm.ScopeMetrics().AppendEmpty()
				for range r.IntN(4) {
					m := sm.Metrics().AppendEmpty()
					m.SetName("m")
					gauge(m)
					for id := range r.IntN(6) {
						p := m.Gauge().DataPoints().AppendEmpty()
						p.SetTimestamp(at(arrival))
						p.SetIntValue(int64(id))
						if r.IntN(3) == 0 {
							p.SetTimestamp(pcommon.Timestamp(r.IntN(2)))
							bad++
						}
					}
					for _, p := range m.Gauge().DataPoints().All() {
						if p.Timestamp() > 1 {
							want += fmt.Sprint(p.IntValue(), ",")
						}
					}
				}
			}
		}
		rep := &Report{}
		kept := Metrics(md, bounds, received, rep)
		got := ""
		for _, rm := range md.ResourceMetrics().All() {
			for _, sm := range rm.ScopeMetrics().All() {
				for _, m := range sm.Metrics().All() {
					for _, p := range m.Gauge().DataPoints().All() {
						got += fmt.Sprint(p.IntValue(), ",")
					}
				}
			}
		}
		if got != want || kept != strings.Count(want, ",") || rep.Rejected() != bad {
			t.Fatalf("seed %d: %q, want %q; kept %d, rejected %d of %d bad", seed, got, want, kept, rep.Rejected(), bad)
		}
	}
}
