package storetest

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

func stamp(t time.Time) pcommon.Timestamp { return pcommon.NewTimestampFromTime(t) }

func testNames(t *testing.T, s *sampleSuite) {
	md := pmetric.NewMetrics()
	ms := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
	add := func(name, unit string) pmetric.Metric {
		m := ms.AppendEmpty()
		m.SetName(name)
		m.SetUnit(unit)
		return m
	}
	number(add("gpu.memory.used", "By").SetEmptyGauge().DataPoints(), s.at(0), 1)
	number(add("gpu.utilization", "1").SetEmptyGauge().DataPoints(), s.at(0), 0.5, "gpu.id", "0", "数", "東京 🚀", "empty", "")
	sum := add("http.requests", "{request}").SetEmptySum()
	sum.SetIsMonotonic(true)
	sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	number(sum.DataPoints(), s.at(0), 3, "code", "200")
	updown := add("queue.length", "").SetEmptySum()
	updown.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	number(updown.DataPoints(), s.at(0), -4)
	number(add("温度", "Cel").SetEmptyGauge().DataPoints(), s.at(0), 70)
	s.take(md)
	s.want("gpu_memory_used_bytes", s.at(0), "{__name__=\"gpu_memory_used_bytes\"} 1")
	s.want(`gpu_utilization_ratio{gpu_id="0"} * 2`, s.at(0), `{`+s.other("gpu_utilization_ratio", "gpu_id")+`="東京 🚀", gpu_id="0"} 1`)
	s.want("http_requests_total", s.at(0), `{__name__="http_requests_total", code="200"} 3`)
	s.want("queue_length", s.at(0), `{__name__="queue_length"} -4`)
	s.want(`count({__name__=~".*_celsius"} == 70)`, s.at(0), "{} 1")
}

// other returns the one label that a metric has besides its name and the given
// one: how a name without ASCII letters is written is up to the store.
func (s *sampleSuite) other(name, known string) string {
	s.t.Helper()
	names, err := s.LabelNames(s.t.Context(), []string{name}, s.at(0), s.at(0), 0)
	if err != nil {
		s.t.Fatalf("LabelNames: %v", err)
	}
	names = slices.DeleteFunc(names, func(n string) bool { return n == known || n == "__name__" })
	if len(names) != 1 {
		s.t.Fatalf("labels %q, want one besides %s", names, known)
	}
	return names[0]
}

func testTypes(t *testing.T, s *sampleSuite) {
	md := pmetric.NewMetrics()
	ms := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
	h := ms.AppendEmpty()
	h.SetName("latency")
	h.SetUnit("s")
	hist := h.SetEmptyHistogram()
	hist.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	p := hist.DataPoints().AppendEmpty()
	p.SetTimestamp(stamp(s.at(0)))
	p.ExplicitBounds().FromRaw([]float64{0.1, 1})
	p.BucketCounts().FromRaw([]uint64{2, 3, 4})
	p.SetCount(9)
	p.SetSum(12.5)

	e := ms.AppendEmpty()
	e.SetName("tokens")
	exp := e.SetEmptyExponentialHistogram()
	exp.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	x := exp.DataPoints().AppendEmpty()
	x.SetTimestamp(stamp(s.at(0)))
	x.SetScale(1)
	x.SetCount(6)
	x.SetSum(20)
	x.Positive().BucketCounts().FromRaw([]uint64{1, 2, 3})

	q := ms.AppendEmpty()
	q.SetName("wait")
	y := q.SetEmptySummary().DataPoints().AppendEmpty()
	y.SetTimestamp(stamp(s.at(0)))
	y.SetCount(5)
	y.SetSum(10)
	v := y.QuantileValues().AppendEmpty()
	v.SetQuantile(0.5)
	v.SetValue(1.5)

	d := ms.AppendEmpty()
	d.SetName("delta")
	delta := d.SetEmptySum()
	delta.SetIsMonotonic(true)
	delta.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
	number(delta.DataPoints(), s.at(0), 7)

	n := ms.AppendEmpty()
	n.SetName("odd")
	g := n.SetEmptyGauge().DataPoints()
	number(g, s.at(0), math.NaN(), "v", "nan")
	number(g, s.at(0), math.Inf(1), "v", "inf")
	number(g, s.at(0), math.Copysign(0, -1), "v", "zero")
	i := g.AppendEmpty()
	i.SetTimestamp(stamp(s.at(0)))
	i.SetIntValue(1 << 40)
	s.take(md)

	for le, want := range map[string]string{"+Inf": "{} 9", "0.1": "{} 2", "1|1.0": "{} 5"} {
		s.want(`sum(latency_seconds_bucket{le=~"`+strings.ReplaceAll(le, "+", `\\+`)+`"})`, s.at(0), want)
	}
	s.want(`latency_seconds_count`, s.at(0), `{__name__="latency_seconds_count"} 9`)
	s.want(`latency_seconds_sum`, s.at(0), `{__name__="latency_seconds_sum"} 12.5`)
	s.want(`tokens`, s.at(0), `{__name__="tokens"} count 6 sum 20`)
	s.want(`histogram_count(tokens)`, s.at(0), `{} 6`)
	s.want(`wait{quantile="0.5"}`, s.at(0), `{__name__="wait", quantile="0.5"} 1.5`)
	s.want(`wait_count`, s.at(0), `{__name__="wait_count"} 5`)
	s.want(`{__name__=~"delta.*"}`, s.at(0), `{__name__="delta_total"} 7`)
	s.want(`odd`, s.at(0), `{__name__="odd", v="inf"} +Inf`, `{__name__="odd", v="nan"} NaN`, `{__name__="odd", v="zero"} -0`, `{__name__="odd"} 1.099511627776e+12`)

	end, m := metric("odd")
	last := m.SetEmptyGauge().DataPoints().AppendEmpty()
	last.SetTimestamp(stamp(s.at(1)))
	last.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	s.take(end)
	s.want(`odd{v=""}`, s.at(0), `{__name__="odd"} 1.099511627776e+12`)
	s.want(`odd{v=""}`, s.at(1))
}

func testResource(t *testing.T, s *sampleSuite) {
	md := s.gauge("up", 0, 1)
	a := md.ResourceMetrics().At(0).Resource().Attributes()
	a.PutStr("service.name", "llm")
	a.PutStr("service.namespace", "prod")
	a.PutStr("service.instance.id", "pod-1")
	a.PutStr("k8s.pod.name", "llm-0")
	a.PutInt("gpu.count", 8)
	md.ResourceMetrics().At(0).ScopeMetrics().At(0).Scope().SetName("a.scope")
	s.take(md)
	s.want("up", s.at(0), `{__name__="up", gpu_count="8", instance="pod-1", job="prod/llm", k8s_pod_name="llm-0", service_instance_id="pod-1", service_name="llm", service_namespace="prod"} 1`)
	s.want(`{__name__!="up", __name__!=""}`, s.at(0))

	// A point's own attribute goes before its resource's.
	own, m := metric("down")
	own.ResourceMetrics().At(0).Resource().Attributes().PutStr("zone", "resource")
	number(m.SetEmptyGauge().DataPoints(), s.at(0), 1, "zone", "point")
	s.take(own)
	s.want("down", s.at(0), `{__name__="down", zone="point"} 1`)
}

func testAppendAgain(t *testing.T, s *sampleSuite) {
	md := s.gauge("g", 0, 1, 2, math.NaN(), 4)
	s.take(md)
	want := s.instant("g[1h]", s.at(10))
	if len(want) != 4 {
		t.Fatalf("got %q, want 4 samples", want)
	}
	check := func(what string) {
		t.Helper()
		s.want("g[1h]", s.at(10), want...)
		s.want("count_over_time(g[1h])", s.at(10), "{} 4")
	}
	s.take(md)
	check("again")
	s.take(s.gauge("g", 1, 2)) // one in the middle
	check("one again")
	s.reopen()
	s.take(md)
	check("again after reopening")
	s.sync()
	s.reopen()
	check("reopened")

	twice := s.gauge("twice", 0, 1)
	p := twice.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints()
	p.At(0).CopyTo(p.AppendEmpty())
	s.take(twice)
	s.want("count_over_time(twice[1h])", s.at(10), "{} 1")
}

func testRejections(t *testing.T, s *sampleSuite) {
	s.take(s.gauge("g", 0, 1))
	f := func(what string, md pmetric.Metrics, want int) {
		t.Helper()
		if got := s.append(md); got != want {
			t.Errorf("%s: %d points rejected, want %d", what, got, want)
		}
	}
	f("another value for the newest sample", s.gauge("g", 0, 2), 1)

	md, m := metric("mixed")
	points := m.SetEmptyGauge().DataPoints()
	number(points, s.at(0), 1)
	number(points, s.at(0), 2) // contradicts the one before
	number(points, time.Unix(1<<40, 0), 3)
	number(points, s.at(1), 4)
	number(points, s.at(1), 5, "big", strings.Repeat("x", 1<<20))
	number(points, s.at(2), 6)
	got := s.append(md)
	if big := s.instant(`count(mixed{big!=""})`, s.at(2)); len(big) > 0 {
		got++ // a store may take it
	}
	if got != 3 {
		t.Errorf("points of which 3 cannot be stored: %d rejected", got)
	}
	s.want(`mixed{big=""}[1h]`, s.at(10), `{__name__="mixed"} 1 @0`, `{__name__="mixed"} 4 @60000`, `{__name__="mixed"} 6 @120000`)

	// All samples of a histogram's point are one point.
	late, m := metric("h")
	hist := m.SetEmptyHistogram()
	hist.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	for _, when := range []time.Time{time.Unix(1<<40, 0), s.at(0), time.Unix(2<<40, 0)} {
		p := hist.DataPoints().AppendEmpty()
		p.SetTimestamp(stamp(when))
		p.ExplicitBounds().FromRaw([]float64{1, 2, 3})
		p.BucketCounts().FromRaw([]uint64{1, 1, 1, 1})
		p.SetCount(4)
	}
	f("histogram", late, 2)
	s.want("h_count", s.at(0), `{__name__="h_count"} 4`)
	f("nothing", pmetric.NewMetrics(), 0)
}

// testUntranslatable mixes points that have no form in Prometheus with others.
func testUntranslatable(t *testing.T, s *sampleSuite) {
	md := pmetric.NewMetrics()
	ms := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
	ms.AppendEmpty().SetName("no.type")
	sum := ms.AppendEmpty()
	sum.SetName("no.temporality")
	points := sum.SetEmptySum().DataPoints()
	number(points, s.at(0), 1)
	number(points, s.at(1), 1)
	good := ms.AppendEmpty()
	good.SetName("good")
	number(good.SetEmptyGauge().DataPoints(), s.at(0), 1)
	e := ms.AppendEmpty()
	e.SetName("e")
	exp := e.SetEmptyExponentialHistogram()
	exp.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	for i, scale := range []int32{2, -20, 3} {
		p := exp.DataPoints().AppendEmpty()
		p.SetTimestamp(stamp(s.at(i)))
		p.SetScale(scale)
		p.SetCount(1)
		p.Positive().BucketCounts().FromRaw([]uint64{1})
	}
	if got := s.append(md); got != 4 {
		t.Errorf("%d points rejected, want 4: no type, two without temporality, a scale of -20", got)
	}
	s.want("good", s.at(0), `{__name__="good"} 1`)
	s.want("count_over_time(e[1h])", s.at(10), "{} 2")
}

func testSampleBounds(t *testing.T, s *sampleSuite) {
	earliest, latest := s.Bounds()
	if now := time.Now(); !earliest.Before(now) || !latest.After(now) {
		t.Fatalf("bounds from %v to %v are not around now", earliest, latest)
	}
	at := func(when time.Time, v float64) int {
		md, m := metric("edge")
		number(m.SetEmptyGauge().DataPoints(), when, v)
		return s.append(md)
	}
	// In an order that makes each come after something newer.
	for i, when := range []time.Time{latest.Add(-time.Second), s.now, earliest.Add(time.Second), s.now.Add(-time.Hour)} {
		if at(when, float64(i)) != 0 {
			t.Errorf("a point of %v was rejected, within bounds", when)
		}
		want := []string{[]string{`{__name__="edge"} 0`, `{__name__="edge"} 1`, `{__name__="edge"} 2`, `{__name__="edge"} 3`}[i]}
		s.want("edge", when.Add(time.Millisecond), want...)
	}
	for _, when := range []time.Time{earliest.Add(-24 * time.Hour), latest.Add(24 * time.Hour), time.Unix(0, 1<<63-1)} {
		if at(when, 9) != 1 {
			t.Errorf("a point of %v was taken, beyond bounds", when)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.AppendMetrics(ctx, s.gauge("never", 0, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("AppendMetrics with an ended context: %v", err)
	}
	s.want("never", s.at(0))
}
