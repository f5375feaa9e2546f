package stats

import (
	"math"
	"testing"
)

func near(a, b, tol float64) bool {
	return math.Abs(a-b) <= tol || (math.IsNaN(a) && math.IsNaN(b))
}

func TestQuantiles(t *testing.T) {
	f := func(x []float64, p, want float64) {
		t.Helper()
		if got := Quantile(x, p); !near(got, want, 1e-12) {
			t.Errorf("Quantile(%v, %v) = %v, want %v", x, p, got, want)
		}
	}
	f(nil, 0.5, math.NaN())
	f([]float64{7}, 0.1, 7)
	f([]float64{4, 1, 3, 2}, 0.5, 2.5)
	f([]float64{4, 1, 3, 2}, 0.25, 1.75) // type 7, as R and NumPy have it
	f([]float64{1, 2, 3, math.NaN(), math.Inf(1)}, 0.5, 2)
	f([]float64{1, 2, 3}, 1, 3)
}

func TestSpread(t *testing.T) {
	f := func(x []float64, iqr, mad float64) {
		t.Helper()
		if got := IQR(x); !near(got, iqr, 1e-12) {
			t.Errorf("IQR(%v) = %v, want %v", x, got, iqr)
		}
		if got := MAD(x); !near(got, mad, 1e-12) {
			t.Errorf("MAD(%v) = %v, want %v", x, got, mad)
		}
	}
	f([]float64{1, 1, 2, 2, 4, 6, 9}, 3.5, 1) // MAD: the textbook example
	f([]float64{5, 5, 5}, 0, 0)
	f([]float64{1, 2, 3, 4, 1000}, 2, 1)
}

func TestClean(t *testing.T) {
	f := func(x []float64, maxShare float64, want int) {
		t.Helper()
		if got := Clean(x, 5, maxShare); len(got) != want {
			t.Errorf("Clean(%v) keeps %d, want %d", x, len(got), want)
		}
	}
	f([]float64{1, 2, 3, 2, 1, 3, 2, 500}, 0.25, 7)
	f([]float64{1, 2, 3, 2, 1, 3, 2, 500}, 0.05, 8) // more than it may remove
	f([]float64{1, 1, 1}, 0.25, 3)
	f(nil, 0.25, 0)
}

func TestEmpirical(t *testing.T) {
	f := func(b []float64, v, want float64) {
		t.Helper()
		if got := Empirical(b, v); !near(got, want, 1e-12) {
			t.Errorf("Empirical(%v, %v) = %v, want %v", b, v, got, want)
		}
	}
	nine := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9}
	f(nine, 5, 1)
	f(nine, 9, 0.3)
	f(nine, 1, 0.3) // two-sided
	f(nine, 100, 0.1)
	f(nil, 3, 1)
}

func TestShift(t *testing.T) {
	base := make([]float64, 0, 40)
	for i := range 40 {
		base = append(base, 10+float64(i%8)/4)
	}
	f := func(v, floor, maxP, minP float64) {
		t.Helper()
		if p, _ := Shift(base, v, floor); p > maxP || p < minP {
			t.Errorf("Shift(%v) = %v, want between %v and %v", v, p, minP, maxP)
		}
	}
	f(10.9, 0, 1, 0.5)
	f(500, 0, 1e-8, 0)
	f(-500, 0, 1e-8, 0) // a drop is as telling as a rise
	f(500, 1000, 1, 0.3)
	f(math.NaN(), 0, 1, 1)
	if p, z := Shift([]float64{2, 2, 2, 2}, 3, 0); p != 0.2 || z != 2 {
		t.Errorf("constant baseline: p %v z %v, want 0.2 and 2", p, z)
	}
}

func TestBetaBinomial(t *testing.T) {
	// Uniform prior: each count 0..n is equally likely.
	b := BetaPrior{A: 1, B: 1}
	f := func(k, n, want float64) {
		t.Helper()
		if got, _ := b.Tail(k, n); !near(got, want, 1e-9) {
			t.Errorf("Tail(%v of %v) = %v, want %v", k, n, got, want)
		}
	}
	f(0, 9, 0.2)
	f(9, 9, 0.2)
	f(2, 9, 0.6)
	f(0, 0, 1)

	steady := []Share{{20, 20}, {20, 20}, {19, 20}, {20, 20}}
	if p, up := FitShares(steady).Tail(3, 20); p > 1e-9 || up {
		t.Errorf("3 of 20 where all were: p %v up %v", p, up)
	}
	// One slice with another fault does not excuse the incident.
	if p, _ := FitShares(append(steady, Share{2, 20})).Tail(3, 20); p > 1e-9 {
		t.Errorf("3 of 20 with one bad slice: p %v", p)
	}
	// A rate that always wanders does.
	wander := []Share{{2, 20}, {18, 20}, {10, 20}, {5, 20}, {15, 20}}
	if p, _ := FitShares(wander).Tail(3, 20); p < 0.1 {
		t.Errorf("3 of 20 where anything happens: p %v", p)
	}
}

func TestAny(t *testing.T) {
	f := func(p float64, m int, want float64) {
		t.Helper()
		if got := Any(p, m); !near(got, want, 1e-9) {
			t.Errorf("Any(%v, %d) = %v, want %v", p, m, got, want)
		}
	}
	f(0.05, 1, 0.05)
	f(0.05, 2, 0.0975)
	f(1, 5, 1)
}

func TestChangePoint(t *testing.T) {
	f := func(x []float64, want int, ok bool) {
		t.Helper()
		c, found := ChangePoint(x, 2)
		if found != ok || (ok && c.Index != want) {
			t.Errorf("ChangePoint(%v) = %+v %v, want index %d %v", x, c, found, want, ok)
		}
	}
	f([]float64{1, 2, 1, 2, 9, 8, 9, 8}, 4, true)
	f([]float64{9, 8, 9, 8, 1, 2, 1, 2}, 4, true)
	f([]float64{1, 50, 1, 1, 1, 9, 9, 9, 9}, 5, true) // one outlier does not attract it
	f([]float64{1, 1, 1, 1}, 0, false)
	f([]float64{1, 2}, 0, false)
}

func TestRuns(t *testing.T) {
	got := Runs([]bool{true, false, true, false, false, false, true}, 1)
	want := [][2]int{{0, 3}, {6, 7}}
	if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("Runs = %v, want %v", got, want)
	}
}

func TestCounts(t *testing.T) {
	// Gamma(1, 1) and time 1: the predictive distribution is geometric, 2^-(k+1).
	g := GammaPrior{A: 1, B: 1}
	f := func(k, want float64) {
		t.Helper()
		if got, _ := g.Tail(k, 1); !near(got, want, 1e-9) {
			t.Errorf("Tail(%v) = %v, want %v", k, got, want)
		}
	}
	f(0, 1)
	f(3, 0.25)
	f(6, 0.03125)

	never := make([]Count, 20)
	for i := range never {
		never[i].T = 60
	}
	if p, up := FitCounts(never, 0).Tail(10, 60); p > 1e-9 || !up {
		t.Errorf("10 events where none ever was: p %v up %v", p, up)
	}
	if p, _ := FitCounts(never, 0).Tail(1, 60); p < 0.01 {
		t.Errorf("1 event where none ever was: p %v", p)
	}
	busy := []Count{{100, 10}, {104, 10}, {96, 10}, {101, 10}, {99, 10}}
	if p, up := FitCounts(busy, 0).Tail(0, 10); p > 1e-9 || up {
		t.Errorf("silence: p %v up %v", p, up)
	}
	if p, _ := FitCounts(busy, 0.02).Tail(105, 10); p < 0.05 {
		t.Errorf("5 %% more: p %v", p)
	}
}

func TestTailsKeepTheirExtremes(t *testing.T) {
	base := []float64{5, 5.1, 4.9, 5, 5.2, 4.8, 5, 5.1, 4.9, 5, 5, 300}
	if p, _ := ShiftTail(base, 250, 0); p < 0.1 {
		t.Errorf("a tail that was there before: p %v", p)
	}
	if p, _ := Shift(base, 250, 0); p > 1e-4 {
		t.Errorf("a median that was there in one other incident: p %v", p)
	}
}
