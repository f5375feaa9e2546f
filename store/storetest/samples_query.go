package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"

	"inquest/store"
)

func testQuerySamples(t *testing.T, s *sampleSuite) {
	s.take(s.gauge("g", 0, 1, 2, 3, 4, 5, 6))
	s.want("g", s.at(2), `{__name__="g"} 3`)
	s.want("g", s.at(-1))
	s.want("g offset 1m", s.at(2), `{__name__="g"} 2`)
	s.want("avg_over_time(g[10m])", s.at(5), "{} 3.5")
	s.want("g[2m]", s.at(5), `{__name__="g"} 5 @240000`, `{__name__="g"} 6 @300000`)
	s.want("1 + 1", s.at(0), "2")
	s.want(`"text"`, s.at(0), "text")

	res, err := s.QueryRange(t.Context(), "g * 10", s.at(1), s.at(5), 2*time.Minute)
	if err != nil {
		t.Fatalf("QueryRange: %v", err)
	}
	m, ok := res.Value.(promql.Matrix)
	if !ok || len(m) != 1 || len(m[0].Floats) != 3 {
		t.Fatalf("QueryRange: %v, want one series of 3 points", res.Value)
	}
	for i, p := range m[0].Floats {
		if p.T != s.at(1+2*i).UnixMilli() || p.F != float64(20+20*i) {
			t.Errorf("point %d: %v", i, p)
		}
	}
	// The result is the caller's: queries after it do not change it.
	before := m.String()
	for range 20 {
		if _, err := s.QueryRange(t.Context(), "g * 3", s.at(0), s.at(5), time.Minute); err != nil {
			t.Fatalf("QueryRange: %v", err)
		}
	}
	if after := m.String(); after != before {
		t.Errorf("result changed after later queries:\n%s\n%s", before, after)
	}
	if res, err = s.QueryRange(t.Context(), "g", s.at(3), s.at(3), time.Minute); err != nil || len(res.Value.(promql.Matrix)) != 1 {
		t.Errorf("range of one step: %v, %v", res.Value, err)
	}
	if res, err = s.QueryInstant(t.Context(), "rate(g[5m])", s.at(5)); err != nil || len(res.Warnings) == 0 {
		t.Errorf("rate of a gauge: %d warnings, error %v, want a warning", len(res.Warnings), err)
	}
}

func testBadSampleQuery(t *testing.T, s *sampleSuite) {
	s.take(s.gauge("g", 0, 1, 2))
	f := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, store.ErrQuery) {
			t.Errorf("%s: got %v, want ErrQuery", what, err)
		}
	}
	for _, expr := range []string{"", "g{", "sum(", "nosuch(g)", "g + on(", "{}", "g[5m", "rate(g)", `g{a=~"("}`, `"a" + 1`, "label_replace(g, \"a\", \"$1\", \"a\", \"(\")"} {
		_, err := s.QueryInstant(t.Context(), expr, s.at(1))
		f(expr, err)
		_, err = s.QueryRange(t.Context(), expr, s.at(0), s.at(1), time.Minute)
		f("range "+expr, err)
	}
	_, err := s.QueryRange(t.Context(), "g", s.at(0), s.at(1), 0)
	f("step 0", err)
	_, err = s.QueryRange(t.Context(), "g", s.at(1), s.at(0), time.Minute)
	f("end before start", err)
	_, err = s.QueryRange(t.Context(), "g[5m]", s.at(0), s.at(1), time.Minute)
	f("range of a range", err)
	_, err = s.QueryRange(t.Context(), "g", time.Unix(0, 0), s.at(0), time.Millisecond)
	f("too many steps", err)
	_, err = s.Series(t.Context(), []string{"g{"}, s.at(0), s.at(1), 0)
	f("selector", err)
	_, err = s.Series(t.Context(), []string{"{}"}, s.at(0), s.at(1), 0)
	f("empty selector", err)
	_, err = s.LabelNames(t.Context(), []string{"sum(g)"}, s.at(0), s.at(1), 0)
	f("selector that is an expression", err)
	_, err = s.LabelValues(t.Context(), "a", []string{"g["}, s.at(0), s.at(1), 0)
	f("selector of label values", err)
}

func testSampleQueryEnds(t *testing.T, s *sampleSuite) {
	s.take(s.gauge("g", 0, 1, 2))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, context.Canceled) || errors.Is(err, store.ErrQuery) {
			t.Errorf("%s: got %v, want context.Canceled", what, err)
		}
	}
	_, err := s.QueryInstant(ctx, "g", s.at(1))
	f("QueryInstant", err)
	_, err = s.QueryRange(ctx, "g", s.at(0), s.at(1), time.Second)
	f("QueryRange", err)
	_, err = s.Series(ctx, []string{"g"}, s.at(0), s.at(1), 0)
	f("Series", err)
	_, err = s.LabelNames(ctx, nil, s.at(0), s.at(1), 0)
	f("LabelNames", err)
	_, err = s.LabelValues(ctx, "__name__", nil, s.at(0), s.at(1), 0)
	f("LabelValues", err)
	_, err = s.Metadata(ctx)
	f("Metadata", err)

	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err = s.QueryInstant(ctx, "sum_over_time(vector(1)[5000000s:1s])", s.at(1))
	if err == nil || time.Since(start) > 5*time.Second {
		t.Errorf("query that runs long: %v after %v", err, time.Since(start))
	}
}

func testSeries(t *testing.T, s *sampleSuite) {
	for i := range 10 {
		md, m := metric("s")
		points := m.SetEmptyGauge().DataPoints()
		number(points, s.at(i), 1, "pod", fmt.Sprint(i), "zone", []string{"a", "b"}[i%2])
		s.take(md)
	}
	s.take(s.gauge("alone", 0, 1))
	f := func(selectors []string, from, to, limit int, want ...string) {
		t.Helper()
		series, err := s.Series(t.Context(), selectors, s.at(from), s.at(to), limit)
		if err != nil {
			t.Fatalf("Series(%q): %v", selectors, err)
		}
		var got []string
		for _, l := range series {
			got = append(got, l.Get("__name__")+l.Get("pod"))
		}
		if !slices.Equal(got, want) {
			t.Errorf("Series(%q, %d, %d, %d): got %q, want %q", selectors, from, to, limit, got, want)
		}
	}
	f([]string{`s`}, 0, 20, 0, "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9")
	f([]string{`s`}, 3, 5, 0, "s3", "s4", "s5")
	f([]string{`s`}, 3, 3, 0, "s3")
	f([]string{`s`}, 20, 30, 0)
	f([]string{`s`}, 0, 20, 3, "s0", "s1", "s2")
	f([]string{`s{zone="b"}`}, 0, 20, 2, "s1", "s3")
	f([]string{`s{zone="b"}`, `alone`, `s{pod="1"}`}, 0, 20, 0, "alone", "s1", "s3", "s5", "s7", "s9")
	f([]string{`s{zone="b"}`, `alone`}, 0, 20, 2, "alone", "s1")
	f([]string{`nothing`}, 0, 20, 0)
	if all, err := s.Series(t.Context(), []string{`{__name__=~".+"}`}, time.Time{}, time.Time{}, 0); err != nil || len(all) != 11 {
		t.Errorf("unbounded: %d series, %v, want 11", len(all), err)
	}
}

func testLabels(t *testing.T, s *sampleSuite) {
	md, m := metric("s")
	points := m.SetEmptyGauge().DataPoints()
	for i := range 5 {
		number(points, s.at(0), 1, "pod", fmt.Sprint(i), []string{"even", "odd"}[i%2], "東")
	}
	s.take(md)
	s.take(s.gauge("alone", 0, 1))
	names := func(limit int, selectors []string, want ...string) {
		t.Helper()
		got, err := s.LabelNames(t.Context(), selectors, s.at(-1), s.at(1), limit)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("LabelNames(%q, %d): got %q, %v, want %q", selectors, limit, got, err, want)
		}
	}
	names(0, nil, "__name__", "even", "odd", "pod")
	names(2, nil, "__name__", "even")
	names(0, []string{"alone"}, "__name__")
	names(0, []string{"alone", `s{pod="1"}`}, "__name__", "odd", "pod")
	names(2, []string{"alone", `s{pod="1"}`}, "__name__", "odd")
	names(0, []string{"nothing"})
	values := func(name string, limit int, selectors []string, want ...string) {
		t.Helper()
		got, err := s.LabelValues(t.Context(), name, selectors, s.at(-1), s.at(1), limit)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("LabelValues(%q, %q, %d): got %q, %v, want %q", name, selectors, limit, got, err, want)
		}
	}
	values("pod", 0, nil, "0", "1", "2", "3", "4")
	values("pod", 3, nil, "0", "1", "2")
	values("even", 0, nil, "東")
	values("__name__", 0, nil, "alone", "s")
	values("pod", 0, []string{`s{odd="東"}`}, "1", "3")
	values("pod", 0, []string{`s{odd="東"}`, `s{pod="4"}`}, "1", "3", "4")
	values("pod", 2, []string{`s{odd="東"}`, `s{pod="0"}`}, "0", "1")
	values("none", 0, nil)
	unbounded, err := s.LabelValues(t.Context(), "pod", nil, time.Time{}, time.Time{}, 0)
	if err != nil || len(unbounded) != 5 {
		t.Errorf("unbounded: %q, %v", unbounded, err)
	}
}

func testMetadata(t *testing.T, s *sampleSuite) {
	md, m := metric("latency")
	m.SetUnit("ms")
	m.SetDescription("How long it takes. 東京")
	m.SetEmptyHistogram().SetAggregationTemporality(1 + 1)
	p := m.Histogram().DataPoints().AppendEmpty()
	p.SetTimestamp(stamp(s.at(0)))
	s.take(md)
	s.take(s.gauge("g", 0, 1))
	want := map[string]store.Metadata{
		"latency_milliseconds": {Type: "histogram", Unit: "milliseconds", Help: "How long it takes. 東京"},
		"g":                    {Type: "gauge"},
	}
	check := func() {
		t.Helper()
		got, err := s.Metadata(t.Context())
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got %v, %v, want %v", got, err, want)
		}
		one, err := s.Metadata(t.Context(), "g", "nothing")
		if err != nil || len(one) != 1 || one["g"] != want["g"] {
			t.Errorf("of one name: %v, %v", one, err)
		}
	}
	check()
	s.sync()
	s.reopen()
	check()
	m.SetDescription("changed")
	s.take(md)
	if got, _ := s.Metadata(t.Context()); got["latency_milliseconds"].Help != "changed" {
		t.Errorf("changed description: %v", got)
	}
}

func testSampleStats(t *testing.T, s *sampleSuite) {
	if got := s.Stats(); got.Series != 0 || !got.Earliest.IsZero() {
		t.Errorf("empty store: %+v", got)
	}
	s.take(s.gauge("a", 0, 1, 2, 3))
	s.take(s.gauge("b", 0, 1))
	s.sync()
	got := s.Stats()
	if got.Series != 2 || got.DiskBytes == 0 || !got.Earliest.Equal(s.at(0)) || !got.Latest.Equal(s.at(2)) {
		t.Errorf("got %+v, want 2 series from %v to %v", got, s.at(0), s.at(2))
	}
}

func testSamplesConcurrent(t *testing.T, s *sampleSuite) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	stop := sync.OnceFunc(func() {
		close(done)
		wg.Wait()
	})
	defer stop() // also when a check ends the test
	for range 4 {
		wg.Go(func() {
			for {
				if _, err := s.QueryInstant(t.Context(), "sum(level) + count(late)", s.at(10)); err != nil {
					t.Errorf("QueryInstant: %v", err)
				}
				if _, err := s.Series(t.Context(), []string{"level", "late"}, s.at(0), s.at(60), 0); err != nil {
					t.Errorf("Series: %v", err)
				}
				if _, err := s.Metadata(t.Context()); err != nil {
					t.Errorf("Metadata: %v", err)
				}
				s.Stats()
				s.Bounds()
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for i := range 50 {
		s.take(s.mixed(i))
		s.take(s.gauge("late", -i, float64(i)))
		// What AppendMetrics took is visible at once.
		s.want("level", s.at(i), fmt.Sprintf(`{__name__="level"} %d`, i))
		if i%10 == 9 {
			s.sync()
		}
	}
	stop()
	s.wantMixed(50)
}
