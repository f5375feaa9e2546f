package alias

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

func mustParse(t *testing.T, own string) *Table {
	t.Helper()
	tab, err := Parse("own.yaml", []byte(own))
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

type point struct {
	labels map[string]any
	value  any // float64 or int
}

func addGauge(ms pmetric.MetricSlice, name string, points ...point) {
	m := ms.AppendEmpty()
	m.SetName(name)
	addPoints(m.SetEmptyGauge().DataPoints(), points)
}

func addSum(ms pmetric.MetricSlice, name string, t pmetric.AggregationTemporality, points ...point) {
	m := ms.AppendEmpty()
	m.SetName(name)
	s := m.SetEmptySum()
	s.SetAggregationTemporality(t)
	addPoints(s.DataPoints(), points)
}

func addPoints(dst pmetric.NumberDataPointSlice, points []point) {
	for _, p := range points {
		dp := dst.AppendEmpty()
		dp.SetTimestamp(5)
		switch v := p.value.(type) {
		case float64:
			dp.SetDoubleValue(v)
		case int:
			dp.SetIntValue(int64(v))
		}
		setAll(dp.Attributes(), p.labels)
	}
}

func setAll(dst pcommon.Map, labels map[string]any) {
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		_ = dst.PutEmpty(k).FromRaw(labels[k]) // strings and numbers
	}
}

// written is metrics as text, a line for each point, sorted.
func written(md pmetric.Metrics) string {
	var out []string
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				line := func(labels pcommon.Map, value any) {
					var ls []string
					for k, v := range labels.All() {
						ls = append(ls, k+"="+v.AsString())
					}
					slices.Sort(ls)
					out = append(out, fmt.Sprintf("%s %s {%s} %v", m.Name(), strings.ToLower(m.Type().String()), strings.Join(ls, ","), value))
				}
				numbers := func(dps pmetric.NumberDataPointSlice) {
					for _, p := range dps.All() {
						if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
							line(p.Attributes(), p.IntValue())
						} else {
							line(p.Attributes(), p.DoubleValue())
						}
					}
				}
				switch m.Type() {
				case pmetric.MetricTypeGauge:
					numbers(m.Gauge().DataPoints())
				case pmetric.MetricTypeSum:
					numbers(m.Sum().DataPoints())
				case pmetric.MetricTypeHistogram:
					for _, p := range m.Histogram().DataPoints().All() {
						line(p.Attributes(), fmt.Sprint(p.Count(), p.Sum(), p.Min(), p.Max(), p.ExplicitBounds().AsRaw(), p.BucketCounts().AsRaw()))
					}
				case pmetric.MetricTypeExponentialHistogram:
					for _, p := range m.ExponentialHistogram().DataPoints().All() {
						line(p.Attributes(), fmt.Sprint(p.Count(), p.Scale(), p.Exemplars().Len()))
					}
				}
			}
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

func TestCanonicalMetrics(t *testing.T) {
	tab := Default()
	f := func(want string, fill func(ms pmetric.MetricSlice)) {
		t.Helper()
		md := pmetric.NewMetrics()
		fill(md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics())
		before := written(md)
		out, any := tab.Canonical(md)
		if got := written(out); got != want || any != (want != "") {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		if written(md) != before {
			t.Error("what was sent is changed")
		}
	}
	const cumulative, delta = pmetric.AggregationTemporalityCumulative, pmetric.AggregationTemporalityDelta
	f("", func(ms pmetric.MetricSlice) { addGauge(ms, "http_requests", point{nil, 1}) })
	f("llm.engine.requests.running gauge {alias.source=vllm:num_requests_running,gen_ai.request.model=m} 3", func(ms pmetric.MetricSlice) {
		addGauge(ms, "vllm:num_requests_running", point{map[string]any{"model_name": "m"}, 3})
	})
	// The spellings of OTLP, of Prometheus and of those who pass it on.
	f("llm.engine.requests.running gauge {alias.source=ray_vllm_num_requests_running} 3", func(ms pmetric.MetricSlice) {
		addGauge(ms, "ray_vllm_num_requests_running", point{nil, 3})
	})
	// A counter without type comes as a gauge; units are converted exactly.
	f("llm.requests.duration sum {alias.source=nv_inference_request_duration_us,gen_ai.request.model=m,model.version=1} 0.003", func(ms pmetric.MetricSlice) {
		addGauge(ms, "nv_inference_request_duration_us", point{map[string]any{"model": "m", "version": "1"}, 3000})
	})
	// Points of one name go to different canonical ones by their labels.
	f("llm.requests.failed sum {alias.source=vllm:request_success_total,gen_ai.response.finish_reason=abort} 2\n"+
		"llm.requests.succeeded sum {alias.source=vllm:request_success_total,gen_ai.response.finish_reason=stop} 7", func(ms pmetric.MetricSlice) {
		addSum(ms, "vllm:request_success_total", cumulative, point{map[string]any{"finished_reason": "stop"}, 7}, point{map[string]any{"finished_reason": "abort"}, 2}, point{map[string]any{"finished_reason": "other"}, 1})
	})
	// A value that says that there is none.
	f("hw.gpu.utilization gauge {alias.source=DCGM_FI_DEV_GPU_UTIL,hw.id=GPU-1} 0.55", func(ms pmetric.MetricSlice) {
		addGauge(ms, "DCGM_FI_DEV_GPU_UTIL", point{map[string]any{"UUID": "GPU-1"}, 55}, point{map[string]any{"UUID": "GPU-2"}, 2147483632}, point{map[string]any{"UUID": "GPU-3"}, 2147483647.0})
	})
	// Of an old and a new name of one thing the one that stands first counts.
	f("llm.kv_cache.usage gauge {alias.source=vllm:kv_cache_usage_perc} 0.5", func(ms pmetric.MetricSlice) {
		addGauge(ms, "vllm:gpu_cache_usage_perc", point{nil, 0.4})
		addGauge(ms, "vllm:kv_cache_usage_perc", point{nil, 0.5})
	})
	// Where the canonical metric itself is sent, none is added.
	f("", func(ms pmetric.MetricSlice) {
		addGauge(ms, "llm.kv_cache.usage", point{nil, 0.5})
		addGauge(ms, "vllm:kv_cache_usage_perc", point{nil, 0.5})
	})
	// What a delta of a gauge would mean nobody knows.
	f("", func(ms pmetric.MetricSlice) { addSum(ms, "vllm:num_requests_running", delta, point{nil, 3}) })
	// A label that is there under its canonical name keeps it.
	f("llm.engine.requests.waiting gauge {alias.source=vllm:num_requests_waiting,gen_ai.request.model=own,model_name=other} 1", func(ms pmetric.MetricSlice) {
		addGauge(ms, "vllm:num_requests_waiting", point{map[string]any{"model_name": "other", "gen_ai.request.model": "own"}, 1})
	})
}

func TestCanonicalHistograms(t *testing.T) {
	tab := mustParse(t, `
version: 1
metrics:
  - {name: acme.wait, type: histogram, unit: s, description: d, from: [{name: acme_wait_ms, dialect: vllm, unit: ms}, {name: gw_wait, dialect: vllm, only: {kind: [a]}}]}
`)
	md := pmetric.NewMetrics()
	ms := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
	m := ms.AppendEmpty()
	m.SetName("acme_wait_ms")
	p := m.SetEmptyHistogram().DataPoints().AppendEmpty()
	p.SetCount(3)
	p.SetSum(1500)
	p.SetMin(1)
	p.SetMax(1000)
	p.ExplicitBounds().FromRaw([]float64{5, 500})
	p.BucketCounts().FromRaw([]uint64{1, 1, 1})
	p.Exemplars().AppendEmpty().SetDoubleValue(1)
	// By a factor the buckets of an exponential histogram are no longer true.
	e := ms.AppendEmpty()
	e.SetName("acme_wait_ms")
	e.SetEmptyExponentialHistogram().DataPoints().AppendEmpty().SetCount(1)
	out, _ := tab.Canonical(md)
	if got, want := written(out), "acme.wait histogram {alias.source=acme_wait_ms} 3 1.5 0.001 1 [0.005 0.5] [1 1 1]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}

	md = pmetric.NewMetrics()
	e = md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	e.SetName("gw_wait")
	dps := e.SetEmptyExponentialHistogram().DataPoints()
	for _, kind := range []string{"a", "b"} {
		ep := dps.AppendEmpty()
		ep.SetCount(4)
		ep.SetScale(2)
		ep.Exemplars().AppendEmpty()
		ep.Attributes().PutStr("kind", kind)
	}
	out, _ = tab.Canonical(md)
	if got, want := written(out), "acme.wait exponentialhistogram {alias.source=gw_wait,kind=a} 4 2 0"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A stale marker keeps its bits, and nothing is derived without a table.
func TestCanonicalKeepsBits(t *testing.T) {
	stale := math.Float64frombits(0x7ff0000000000002)
	md := pmetric.NewMetrics()
	addGauge(md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics(), "sglang:token_usage", point{nil, stale})
	out, _ := Default().Canonical(md)
	got := out.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0).DoubleValue()
	if math.Float64bits(got) != math.Float64bits(stale) {
		t.Errorf("the marker became %x", math.Float64bits(got))
	}
	if out, any := (*Table)(nil).Canonical(md); any || out.MetricCount() != 0 {
		t.Error("derived without a table")
	}
}
