package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

func times(n int) []float64 {
	t := make([]float64, n)
	for i := range t {
		t[i] = float64(i)
	}
	return t
}

func TestTheilSen(t *testing.T) {
	x := []float64{1, 3, 5, 7, 90, 11, 13, -40, 17}
	if l := TheilSen(times(len(x)), x); !near(l.Slope, 2, 1e-9) || !near(l.At(10), 21, 1e-9) {
		t.Errorf("line %+v, want 1 + 2 t", l)
	}
	if l := TheilSen([]float64{3, 3}, []float64{1, 5}); l.Slope != 0 || l.Intercept != 3 {
		t.Errorf("one time: %+v", l)
	}
}

func TestMannKendall(t *testing.T) {
	// Ten values in order: S = 45, variance 125, z = 44/√125.
	p, tau := MannKendall(times(10))
	if !near(p, 2*0.5*math.Erfc(44/math.Sqrt(125)/math.Sqrt2), 1e-6) || tau != 1 {
		t.Errorf("p %v tau %v", p, tau)
	}
	if p, tau := MannKendall([]float64{9, 8, 7, 6, 5, 4, 3, 2}); p > 0.01 || tau != -1 {
		t.Errorf("falling: p %v tau %v", p, tau)
	}
	if p, _ := MannKendall([]float64{4, 4, 4, 4, 4, 4}); p != 1 {
		t.Errorf("level: p %v", p)
	}
	// Of noise without a trend, and of random walks, few have a small p-value.
	r := rand.New(rand.NewPCG(1, 2))
	white, walk := 0, 0
	for range 400 {
		x, y := make([]float64, 40), make([]float64, 40)
		at := 0.0
		for i := range x {
			x[i] = r.NormFloat64()
			at += r.NormFloat64()
			y[i] = at
		}
		if p, _ := MannKendall(x); p < 0.01 {
			white++
		}
		if p, _ := MannKendall(y); p < 1e-6 {
			walk++
		}
	}
	if white > 12 || walk > 60 {
		t.Errorf("of 400, %d of noise are below 0.01 and %d random walks below 1e-6", white, walk)
	}
}

func TestSteadier(t *testing.T) {
	f := func(want bool, x ...float64) {
		t.Helper()
		tt := times(len(x))
		if got := Steadier(tt, x, TheilSen(tt, x)); got != want {
			t.Errorf("%v: %v", x, got)
		}
	}
	f(true, 1, 2.1, 2.9, 4, 5.2, 6, 7, 8.1)
	f(false, 1, 1.1, 1, 1.1, 8, 8.1, 8, 8.1)
}

func TestPeriodic(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	saw := make([]float64, 120)
	for i := range saw {
		saw[i] = 100 + float64(i%15) + 0.5*r.NormFloat64() + 0.1*float64(i)
	}
	w, ok := Periodic(saw, 4, 3)
	if !ok || math.Abs(w.Period-15) > 0.5 || w.Share < 0.6 || w.P > 1e-9 {
		t.Errorf("sawtooth: %+v", w)
	}
	if _, ok := Periodic([]float64{5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5}, 4, 3); ok {
		t.Error("a level has a period")
	}
	if _, ok := Periodic(saw[:11], 4, 3); ok {
		t.Error("two periods and a half are enough")
	}
	low := 0
	for range 400 {
		x := make([]float64, 60)
		for i := range x {
			x[i] = r.NormFloat64()
		}
		if w, _ := Periodic(x, 4, 3); w.P < 0.01 {
			low++
		}
	}
	if low > 16 {
		t.Errorf("of 400 of noise, %d have a p-value below 0.01", low)
	}
}
