package local

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"inquest/record"
	"inquest/store"
	"inquest/store/storetest"
)

func openSamples(t testing.TB, o SamplesOptions) *Samples {
	t.Helper()
	s, err := OpenSamples(o)
	if err != nil {
		t.Fatalf("OpenSamples: %v", err)
	}
	return s
}

func TestSamplesConformance(t *testing.T) {
	storetest.Samples(t, func(t testing.TB, dir string) store.Samples {
		return openSamples(t, SamplesOptions{Dir: dir})
	})
}

func TestSamplesConformanceLongRetention(t *testing.T) {
	storetest.Samples(t, func(t testing.TB, dir string) store.Samples {
		return openSamples(t, SamplesOptions{Dir: dir, Retention: time.Since(time.Unix(0, 0)) + 48*time.Hour})
	})
}

// gauges makes n gauges with one point each.
func gauges(n int, at time.Time, v float64) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", "shop")
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("g")
	points := m.SetEmptyGauge().DataPoints()
	for i := range n {
		p := points.AppendEmpty()
		p.SetTimestamp(pcommon.NewTimestampFromTime(at))
		p.SetDoubleValue(v)
		p.Attributes().PutStr("i", fmt.Sprint(i))
	}
	return md
}

func count(t *testing.T, s *Samples, expr string, at time.Time) float64 {
	t.Helper()
	res, err := s.QueryInstant(t.Context(), expr, at)
	if err != nil {
		t.Fatal(err)
	}
	v := res.Value.(promql.Vector)
	if len(v) == 0 {
		return 0
	}
	return v[0].F
}

func TestRejectionsAreBounded(t *testing.T) {
	s := openSamples(t, SamplesOptions{Dir: t.TempDir()})
	rejected, err := s.AppendMetrics(t.Context(), gauges(3*maxRejections, time.Unix(0, 0), 1))
	if err != nil {
		t.Fatal(err)
	}
	points := 0
	for _, r := range rejected {
		points += r.Points
	}
	if len(rejected) != maxRejections+1 || points != 3*maxRejections {
		t.Errorf("%d rejections of %d points, want %d of %d", len(rejected), points, maxRejections+1, 3*maxRejections)
	}
	if r := rejected[0].Reason; !strings.Contains(r, `g{i="0"`) && !strings.Contains(r, `i="0"`) || !strings.Contains(r, "1970-01-01T00:00:00Z") {
		t.Errorf("reason does not name the point: %s", r)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestLateContradiction appends another value for an old sample: a query sees
// one of the two.
func TestLateContradiction(t *testing.T) {
	s := openSamples(t, SamplesOptions{Dir: t.TempDir()})
	now := time.Now()
	for i, v := range []float64{1, 2, 9} {
		at := now.Add(time.Duration(i%2) * time.Minute) // the last one is for the first time
		if _, err := s.AppendMetrics(t.Context(), gauges(1, at, v)); err != nil {
			t.Fatal(err)
		}
	}
	at := now.Add(2 * time.Minute)
	if got := count(t, s, "count_over_time(g[1h])", at); got != 2 {
		t.Errorf("%v samples, want 2", got)
	}
	if got := count(t, s, "sum_over_time(g[1h])", at); got != 3 && got != 11 {
		t.Errorf("sum %v, want 1+2 or 9+2", got)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestCompactLate imports more late samples than their log should hold.
func TestCompactLate(t *testing.T) {
	dir := t.TempDir()
	s := openSamples(t, SamplesOptions{Dir: dir})
	s.maxLate = 1
	now := time.Now().Truncate(time.Second)
	if _, err := s.AppendMetrics(t.Context(), gauges(10, now, 0)); err != nil {
		t.Fatal(err)
	}
	const times = 300
	for i := range times {
		at := now.Add(-48*time.Hour + time.Duration(i)*15*time.Second)
		if rejected, err := s.AppendMetrics(t.Context(), gauges(10, at, float64(i))); err != nil || len(rejected) > 0 {
			t.Fatal(rejected, err)
		}
		if i%50 == 49 {
			if err := s.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	for limit := time.Now().Add(10 * time.Second); len(s.db.Blocks()) == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatal("late samples were not compacted")
		}
		if err := s.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	check := func() {
		t.Helper()
		if got := count(t, s, "sum(count_over_time(g[12h]))", now.Add(-40*time.Hour)); got != 10*times {
			t.Errorf("%v samples, want %d", got, 10*times)
		}
	}
	check()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openSamples(t, SamplesOptions{Dir: dir})
	check()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestSampleQueryLimits(t *testing.T) {
	s := openSamples(t, SamplesOptions{Dir: t.TempDir(), MaxSamples: 100, QueryTimeout: 50 * time.Millisecond, MaxQueries: 1})
	now := time.Now()
	if _, err := s.AppendMetrics(t.Context(), gauges(200, now, 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.QueryInstant(t.Context(), "g", now); !errors.Is(err, store.ErrQuery) {
		t.Errorf("more samples than allowed: %v", err)
	}
	// Each step holds few samples, all steps take long.
	_, err := s.QueryInstant(t.Context(), "sum(sum_over_time(vector(1)[100000s:1s]))", now)
	if !errors.Is(err, store.ErrQuery) {
		t.Errorf("query beyond a limit: %v", err)
	}
	ctx, end, err := s.begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	if _, err := s.QueryInstant(short, "1", now); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("query beyond the number allowed: %v", err)
	}
	end()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := s.QueryInstant(t.Context(), "1", now); !errors.Is(err, errClosed) {
		t.Errorf("query after Close: %v", err)
	}
	if _, err := s.AppendMetrics(t.Context(), gauges(1, now, 1)); !errors.Is(err, errClosed) {
		t.Errorf("AppendMetrics after Close: %v", err)
	}
}

func BenchmarkSamplesAppend(b *testing.B) {
	s := openSamples(b, SamplesOptions{Dir: b.TempDir()})
	start := time.Now().Add(-time.Hour)
	const points = 1000
	cpu := cpuTime()
	for i := range b.N {
		if _, err := s.AppendMetrics(b.Context(), gauges(points, start.Add(time.Duration(i)*time.Second), float64(i))); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64((cpuTime()-cpu).Nanoseconds())/float64(b.N)/points, "cpu-ns/point")
	if err := s.Sync(b.Context()); err != nil {
		b.Fatal(err)
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkSamplesSync(b *testing.B) {
	s := openSamples(b, SamplesOptions{Dir: b.TempDir()})
	start := time.Now().Add(-time.Hour)
	var spent time.Duration
	for i := range b.N {
		if _, err := s.AppendMetrics(b.Context(), gauges(100, start.Add(time.Duration(i)*time.Millisecond), float64(i))); err != nil {
			b.Fatal(err)
		}
		before := time.Now()
		if err := s.Sync(b.Context()); err != nil {
			b.Fatal(err)
		}
		spent += time.Since(before)
	}
	b.ReportMetric(float64(spent.Microseconds())/1000/float64(b.N), "ms/sync")
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}

// Scraped metrics keep their names, others in the same batch get their suffixes.
func TestScrapedNames(t *testing.T) {
	s := openSamples(t, SamplesOptions{Dir: t.TempDir()})
	defer s.Close()
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	add := func(scope, name string) {
		sm := rm.ScopeMetrics().AppendEmpty()
		sm.Scope().SetName(scope)
		m := sm.Metrics().AppendEmpty()
		m.SetName(name)
		m.SetUnit("s")
		m.SetEmptySum().SetIsMonotonic(true)
		m.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		p := m.Sum().DataPoints().AppendEmpty()
		p.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
		p.SetIntValue(1)
		p.Attributes().PutStr("a__b", "x")
	}
	add(record.ScopeScraped, "ns:scraped__count")
	add("sdk", "sent.count")
	for range 2 { // again changes nothing
		if rejected, err := s.AppendMetrics(t.Context(), md); err != nil || len(rejected) > 0 {
			t.Fatal(rejected, err)
		}
	}
	got, err := s.Series(t.Context(), []string{`{__name__=~".+"}`}, time.Now().Add(-time.Minute), time.Now().Add(time.Minute), 0)
	if err != nil {
		t.Fatal(err)
	}
	want := `[{__name__="ns:scraped__count", a__b="x"} {__name__="sent_count_seconds_total", a_b="x"}]`
	if fmt.Sprint(got) != want {
		t.Errorf("series are %v, want %s", got, want)
	}
}
