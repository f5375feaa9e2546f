package verdict

import (
	"slices"
	"testing"

	"inquest/catalog"
	"inquest/record"
	"inquest/sensor"
)

// TestMetricsAwayAreTold takes away all series but those of resources: that there
// are series is no metric that was examined.
func TestMetricsAwayAreTold(t *testing.T) {
	for _, away := range []record.Quadrant{record.QuadrantMetrics, record.QuadrantResources} {
		src := build("cpu")
		all := len(src.AllSeries)
		src.AllSeries = slices.DeleteFunc(src.AllSeries, func(s sensor.Series) bool { return s.About().Class.Quadrant() == away })
		if len(src.AllSeries) == 0 || len(src.AllSeries) == all {
			t.Fatalf("%d of %d series left without %s: the world has too few for this test", len(src.AllSeries), all, away)
		}
		v := judge(t, src, ask())
		if !slices.ContainsFunc(v.NotExamined, func(m Missing) bool { return m.Quadrant == away }) {
			t.Errorf("%s are away and not told: %+v", away, v.NotExamined)
		}
		if slices.ContainsFunc(v.Examined, func(e Examined) bool { return e.Quadrant == away }) {
			t.Errorf("%s count as examined", away)
		}
	}
}

// TestAssumedIsSuspected takes away the quadrant of a fault's essential evidence:
// the fault may be suspected, never confirmed.
func TestAssumedIsSuspected(t *testing.T) {
	h := &hypothesis{pieces: []piece{{expect: essential(record.QuadrantLogs)}, {expect: essential(record.QuadrantTraces), examined: true, p: 1e-9}}}
	if !h.assumed() || h.unfounded() {
		t.Errorf("assumed %v and unfounded %v, want true and false: half of the essential evidence is there", h.assumed(), h.unfounded())
	}
	h.pieces[1].examined = false
	if !h.unfounded() {
		t.Error("nothing essential was looked at, and the fault is founded")
	}
	h = &hypothesis{pieces: []piece{{expect: plain(record.QuadrantLogs)}}}
	if h.assumed() || h.unfounded() {
		t.Error("a fault without essential evidence assumes none")
	}
}

func essential(q record.Quadrant) *catalog.Expectation {
	return &catalog.Expectation{Quadrant: q, Essential: true}
}

func plain(q record.Quadrant) *catalog.Expectation { return &catalog.Expectation{Quadrant: q} }
