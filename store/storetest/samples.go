package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"inquest/store"
)

// OpenSamples opens a store in dir.
type OpenSamples func(t testing.TB, dir string) store.Samples

// Samples checks a [store.Samples].
func Samples(t *testing.T, open OpenSamples) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T, s *sampleSuite)
	}{
		{"Names", testNames},
		{"Types", testTypes},
		{"Resource", testResource},
		{"AppendAgain", testAppendAgain},
		{"Rejections", testRejections},
		{"Untranslatable", testUntranslatable},
		{"Bounds", testSampleBounds},
		{"FutureFirst", testFutureFirst},
		{"PastFirst", testPastFirst},
		{"OldIncident", testOldIncident},
		{"SyncSurvives", testSamplesSyncSurvive},
		{"AppliedAgainAfterCrash", testSamplesAppliedAgain},
		{"Query", testQuerySamples},
		{"BadQuery", testBadSampleQuery},
		{"QueryEnds", testSampleQueryEnds},
		{"Series", testSeries},
		{"Labels", testLabels},
		{"Metadata", testMetadata},
		{"Stats", testSampleStats},
		{"Concurrent", testSamplesConcurrent},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &sampleSuite{t: t, open: open, dir: t.TempDir(), now: time.Now().Truncate(time.Minute).Add(-time.Hour)}
			s.Samples = open(t, s.dir)
			defer func() {
				if err := s.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
			}()
			c.run(t, s)
		})
	}
}

// sampleSuite is a store under test, with short ways of asking it.
type sampleSuite struct {
	store.Samples
	t    *testing.T
	open OpenSamples
	dir  string
	now  time.Time
}

func (s *sampleSuite) reopen() {
	s.t.Helper()
	if err := s.Close(); err != nil {
		s.t.Fatalf("Close: %v", err)
	}
	s.Samples = s.open(s.t, s.dir)
}

// at returns a time i minutes after the start of the test's data.
func (s *sampleSuite) at(i int) time.Time { return s.now.Add(time.Duration(i) * time.Minute) }

// append stores md and returns how many points were rejected.
func (s *sampleSuite) append(md pmetric.Metrics) int {
	s.t.Helper()
	rejected, err := s.AppendMetrics(s.t.Context(), md)
	if err != nil {
		s.t.Fatalf("AppendMetrics: %v", err)
	}
	n := 0
	for _, r := range rejected {
		if r.Points < 1 || r.Reason == "" {
			s.t.Errorf("rejection without points or reason: %+v", r)
		}
		n += r.Points
	}
	return n
}

// take stores md, of which nothing may be rejected.
func (s *sampleSuite) take(md pmetric.Metrics) {
	s.t.Helper()
	rejected, err := s.AppendMetrics(s.t.Context(), md)
	if err != nil || len(rejected) > 0 {
		s.t.Fatalf("AppendMetrics: error %v, rejections %+v", err, rejected)
	}
}

func (s *sampleSuite) sync() {
	s.t.Helper()
	if err := s.Sync(s.t.Context()); err != nil {
		s.t.Fatalf("Sync: %v", err)
	}
}

// instant returns the answer as lines, sorted where it is a vector.
func (s *sampleSuite) instant(expr string, at time.Time) []string {
	s.t.Helper()
	res, err := s.QueryInstant(s.t.Context(), expr, at)
	if err != nil {
		s.t.Fatalf("QueryInstant(%q): %v", expr, err)
	}
	var out []string
	switch v := res.Value.(type) {
	case promql.Vector:
		for _, p := range v {
			line := fmt.Sprintf("%s %v", p.Metric, p.F)
			if p.H != nil {
				line = fmt.Sprintf("%s count %v sum %v", p.Metric, p.H.Count, p.H.Sum)
			}
			out = append(out, line)
		}
		slices.Sort(out)
	case promql.Matrix:
		for _, series := range v {
			for _, p := range series.Floats {
				out = append(out, fmt.Sprintf("%s %v @%d", series.Metric, p.F, p.T-s.now.UnixMilli()))
			}
			for _, p := range series.Histograms {
				out = append(out, fmt.Sprintf("%s count %v sum %v @%d", series.Metric, p.H.Count, p.H.Sum, p.T-s.now.UnixMilli()))
			}
		}
	case promql.Scalar:
		out = append(out, fmt.Sprint(v.V))
	default:
		out = append(out, v.String())
	}
	return out
}

func (s *sampleSuite) want(expr string, at time.Time, want ...string) {
	s.t.Helper()
	if got := s.instant(expr, at); !slices.Equal(got, want) {
		s.t.Errorf("%s at %v:\n got %q\nwant %q", expr, at.UTC(), got, want)
	}
}

// gauge makes a gauge with one point for each value, a minute apart, from the
// start-th minute on.
func (s *sampleSuite) gauge(name string, start int, values ...float64) pmetric.Metrics {
	md, m := metric(name)
	g := m.SetEmptyGauge()
	for i, v := range values {
		number(g.DataPoints(), s.at(start+i), v)
	}
	return md
}

// metric makes a metric without points, of a resource without attributes.
func metric(name string) (pmetric.Metrics, pmetric.Metric) {
	md := pmetric.NewMetrics()
	m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName(name)
	return md, m
}

// number adds a point with attributes given as name, value, ….
func number(points pmetric.NumberDataPointSlice, at time.Time, v float64, attributes ...string) {
	p := points.AppendEmpty()
	p.SetTimestamp(stamp(at))
	p.SetDoubleValue(v)
	for i := 0; i < len(attributes); i += 2 {
		p.Attributes().PutStr(attributes[i], attributes[i+1])
	}
}
