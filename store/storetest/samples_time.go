package storetest

import (
	"fmt"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"
)

// testFutureFirst has a point of tomorrow before those of today.
func testFutureFirst(t *testing.T, s *sampleSuite) {
	_, latest := s.Bounds()
	future := time.Now().Add(24 * time.Hour)
	if future.After(latest) {
		future = latest.Add(-time.Minute)
	}
	md, m := metric("f")
	number(m.SetEmptyGauge().DataPoints(), future, 9)
	s.take(md)
	s.take(s.gauge("f", 0, 1, 2, 3))
	s.take(s.gauge("other", 0, 1))
	check := func() {
		t.Helper()
		s.want("f", s.at(1), `{__name__="f"} 2`)
		s.want("f", future, `{__name__="f"} 9`)
		s.want("other", s.at(0), `{__name__="other"} 1`)
	}
	check()
	s.sync()
	s.reopen()
	check()
	s.take(s.gauge("f", 3, 4))
	s.want("f", s.at(3), `{__name__="f"} 4`)
}

// testPastFirst has the oldest point possible before those of today.
func testPastFirst(t *testing.T, s *sampleSuite) {
	earliest, _ := s.Bounds()
	past := earliest.Add(time.Minute)
	md, m := metric("p")
	number(m.SetEmptyGauge().DataPoints(), past, 9)
	s.take(md)
	s.take(s.gauge("p", 0, 1, 2))
	check := func() {
		t.Helper()
		s.want("p", past, `{__name__="p"} 9`)
		s.want("p", s.at(1), `{__name__="p"} 2`)
	}
	check()
	s.sync()
	s.reopen()
	check()
}

// testOldIncident imports data of long ago beside live data, backwards.
func testOldIncident(t *testing.T, s *sampleSuite) {
	earliest, _ := s.Bounds()
	start := earliest.Add(time.Hour).Truncate(time.Minute)
	const points = 500
	s.take(s.gauge("live", 0, 1, 2, 3))
	for i := points - 1; i >= 0; i -= 10 {
		md, m := metric("old")
		g := m.SetEmptyGauge().DataPoints()
		for k := range 10 {
			number(g, start.Add(time.Duration(i-k)*15*time.Second), float64(i-k), "pod", fmt.Sprint(k%2))
		}
		s.take(md)
	}
	end := start.Add(points * 15 * time.Second)
	check := func() {
		t.Helper()
		s.want("sum(count_over_time(old[1d]))", end, fmt.Sprintf("{} %d", points))
		s.want("sum(sum_over_time(old[1d]))", end, fmt.Sprintf("{} %d", points*(points-1)/2))
		s.want("live", s.at(1), `{__name__="live"} 2`)
	}
	check()
	s.sync()
	s.reopen()
	check()
}

// mixed makes a request with counters, native and classic histograms at minute i.
func (s *sampleSuite) mixed(i int) pmetric.Metrics {
	md := s.gauge("level", i, float64(i))
	ms := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
	e := ms.AppendEmpty()
	e.SetName("native")
	exp := e.SetEmptyExponentialHistogram()
	exp.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	x := exp.DataPoints().AppendEmpty()
	x.SetTimestamp(stamp(s.at(i)))
	x.SetCount(uint64(i + 1))
	x.SetSum(float64(i))
	x.Positive().BucketCounts().FromRaw([]uint64{uint64(i + 1)})
	h := ms.AppendEmpty()
	h.SetName("classic")
	hist := h.SetEmptyHistogram()
	hist.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	p := hist.DataPoints().AppendEmpty()
	p.SetTimestamp(stamp(s.at(i)))
	p.ExplicitBounds().FromRaw([]float64{1})
	p.BucketCounts().FromRaw([]uint64{1, uint64(i)})
	p.SetCount(uint64(i + 1))
	return md
}

func (s *sampleSuite) wantMixed(n int) {
	s.t.Helper()
	s.want("count_over_time(level[1d])", s.at(60), fmt.Sprintf("{} %d", n))
	s.want("count_over_time(native[1d])", s.at(60), fmt.Sprintf("{} %d", n))
	s.want("count_over_time(classic_count[1d])", s.at(60), fmt.Sprintf("{} %d", n))
	s.want("native", s.at(n-1), fmt.Sprintf(`{__name__="native"} count %d sum %d`, n, n-1))
}

func testSamplesSyncSurvive(t *testing.T, s *sampleSuite) {
	const rounds, each = 4, 10
	for round := range rounds {
		for i := range each {
			n := round*each + i
			s.take(s.mixed(n))
			// Out of order, too.
			s.take(s.gauge("late", -n, float64(n)))
		}
		s.sync()
		dir := CopyDir(t, s.dir)
		crashed := &sampleSuite{t: t, open: s.open, dir: dir, now: s.now, Samples: s.open(t, dir)}
		n := (round + 1) * each
		crashed.wantMixed(n)
		crashed.want("count_over_time(late[1d])", s.at(60), fmt.Sprintf("{} %d", n))
		if got, err := crashed.Metadata(t.Context(), "native"); err != nil || got["native"].Type != "histogram" {
			t.Errorf("metadata after a crash: %v, %v", got, err)
		}
		if err := crashed.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	s.sync() // nothing to do
}

func testSamplesAppliedAgain(t *testing.T, s *sampleSuite) {
	const n = 40
	for i := range n {
		s.take(s.mixed(i))
		if i == n/2 {
			s.sync()
		}
	}
	dir := CopyDir(t, s.dir)
	crashed := &sampleSuite{t: t, open: s.open, dir: dir, now: s.now, Samples: s.open(t, dir)}
	defer func() { crashed.Close() }()
	for i := range n {
		crashed.take(crashed.mixed(i))
	}
	crashed.wantMixed(n)
	want := s.instant("level[1d]", s.at(60))
	crashed.want("level[1d]", s.at(60), want...)
	crashed.sync()
	crashed.reopen()
	crashed.wantMixed(n)
	crashed.want("level[1d]", s.at(60), want...)
}
