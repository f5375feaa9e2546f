package resources

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"inquest/record"
	"inquest/sensor"
)

// The stretch of these tests: an hour of baseline in six slices, ten minutes of
// incident, a point every 15 s.
const (
	step     = 15
	baseline = 3600
	incident = 600
)

var inc = sensor.Range{From: baseline * 1e9, To: (baseline + incident) * 1e9}

func slicesOf() []sensor.Range {
	var out []sensor.Range
	for i := range int64(6) {
		out = append(out, sensor.Range{From: i * 600e9, To: (i + 1) * 600e9})
	}
	return out
}

// drawn is a series whose value at each second is given; NaN means no point.
func drawn(name, unit string, labels map[string]string, at func(second float64) float64) sensor.Series {
	s := sensor.Series{Name: name, Unit: unit, Labels: labels}
	for sec := 0; sec < baseline+incident; sec += step {
		if v := at(float64(sec)); !math.IsNaN(v) {
			s.Points = append(s.Points, sensor.Point{Time: int64(sec) * 1e9, Value: v})
		}
	}
	return s
}

func windowOf(t testing.TB, series ...sensor.Series) *sensor.Window {
	t.Helper()
	w, err := sensor.Gather(context.Background(), &sensor.Memory{AllSeries: series}, sensor.Range{From: 0, To: inc.To}, sensor.DefaultLimits, record.QuadrantMetrics)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func only(t *testing.T, found []sensor.Compared, kind string) sensor.Compared {
	t.Helper()
	var out []sensor.Compared
	for _, f := range found {
		if f.Kind == kind {
			out = append(out, f)
		}
	}
	if len(out) != 1 {
		t.Fatalf("%d findings of kind %s: %+v", len(out), kind, found)
	}
	return out[0]
}

var pod = map[string]string{"k8s.pod.name": "llm-0", "service.name": "llm"}

func noise() func() float64 {
	r := rand.New(rand.NewPCG(7, 8))
	return r.NormFloat64
}

func TestTrends(t *testing.T) {
	n := noise()
	after := func(sec float64) float64 { return max(0, sec-baseline) }
	f := func(what string, most, least float64, at func(sec float64) float64) sensor.Compared {
		t.Helper()
		c := only(t, Trends(windowOf(t, drawn("k8s.pod.memory.usage", "By", pod, at)), slicesOf(), inc), "memory_trend")
		if c.Strength > most || c.Strength < least {
			t.Errorf("%s: p %v, want between %v and %v: %s", what, c.Strength, least, most, c.Text)
		}
		if c.Entity != sensor.Pod("llm-0") || c.Quadrant != record.QuadrantResources || len(c.Evidence) != 1 {
			t.Errorf("%s: %+v", what, c.Finding)
		}
		return c
	}
	const g = 1 << 30
	c := f("a leak that began long before", 1e-5, 0, func(s float64) float64 { return g*(2+s/3600) + 0.05*g*n() })
	if math.Abs(c.Observed/g-1) > 0.1 || c.Direction != record.DirectionUp || c.Unit != "By/h" {
		t.Errorf("slope %v GiB/h, want 1 (%+v)", c.Observed/g, c.Finding)
	}
	if !strings.Contains(c.Text, "grows steadily") || !strings.Contains(c.Text, "GiB") {
		t.Errorf("text %q", c.Text)
	}
	c = f("a leak of the incident", 0.01, 0, func(s float64) float64 { return g*(2+3*after(s)/600) + 0.05*g*n() })
	if len(c.Past) != 6 || math.Abs(c.Observed/g-18) > 2 {
		t.Errorf("slope %v GiB/h, want 18; past %v", c.Observed/g, c.Past)
	}
	f("a level", 1, 0.02, func(float64) float64 { return 2*g + 0.05*g*n() })
	f("constant", 1, 1, func(float64) float64 { return 2 * g })
	f("a wave", 1, 0.02, func(s float64) float64 { return g * (2 + math.Sin(s/600)) })
	f("a heap with garbage collection", 1, 0.02, func(s float64) float64 { return g*(2+math.Mod(s, 300)/300) + 0.01*g*n() })
	f("a step at the incident", 1, 0.02, func(s float64) float64 {
		if s >= baseline {
			return 4*g + 0.02*g*n()
		}
		return 2*g + 0.02*g*n()
	})
	f("warming up", 1, 0.02, func(s float64) float64 { return g*(2-math.Exp(-s/400)) + 0.005*g*n() })
	f("a growth of 2 %", 1, 0.9, func(s float64) float64 { return g * (2 + 0.04*s/4200) })

	c = f("shrinking", 1e-3, 0, func(s float64) float64 { return g*(9-s/600) + 0.05*g*n() })
	if c.Direction != record.DirectionDown {
		t.Errorf("direction %s", c.Direction)
	}
}

func TestTrendForecast(t *testing.T) {
	leak := drawn("k8s.pod.memory.usage", "By", pod, func(s float64) float64 { return 1e9 * (2 + s/3600) })
	limit := drawn("k8s.container.memory_limit", "By", pod, func(float64) float64 { return 4e9 })
	found := Trends(windowOf(t, leak, limit), slicesOf(), inc)
	if len(found) != 2 {
		t.Fatalf("%d findings, want one of the usage and one of its share", len(found))
	}
	for _, c := range found {
		if c.Unit != "1/h" {
			continue
		}
		// 3.15 of 4 GB in the last block, a GB an hour: 51 minutes are left.
		if !strings.Contains(c.Text, "reaches its limit in 51 min") || c.Strength > 1e-5 {
			t.Errorf("%v %q", c.Strength, c.Text)
		}
		return
	}
	t.Error("no finding of the share of the limit")
}

func TestSawteeth(t *testing.T) {
	n := noise()
	f := func(what string, most, least float64, at func(sec float64) float64) sensor.Compared {
		t.Helper()
		w := windowOf(t, drawn("redis_connected_clients", "", map[string]string{"service": "redis"}, at))
		c := only(t, Sawteeth(w, slicesOf(), inc), "connections_sawtooth")
		if c.Strength > most || c.Strength < least {
			t.Errorf("%s: p %v, want between %v and %v: %s", what, c.Strength, least, most, c.Text)
		}
		return c
	}
	saw := func(s float64) float64 { return 40 + 40*math.Mod(s, 120)/120 + n() }
	quiet := func() float64 { return 60 + 5*n() }
	c := f("a saw of the incident", 0.01, 0, func(s float64) float64 {
		if s < baseline {
			return quiet()
		}
		return saw(s)
	})
	if !strings.Contains(c.Text, "period of 2 min") && !strings.Contains(c.Text, "period of 120 s") {
		t.Errorf("text %q", c.Text)
	}
	if len(c.Past) != 6 {
		t.Errorf("past %v", c.Past)
	}
	f("a saw that was always there", 1, 0.1, saw)
	f("noise", 1, 0.05, func(float64) float64 { return quiet() })
	f("growth", 1, 1, func(s float64) float64 { return 10 + s })
	f("constant", 1, 1, func(float64) float64 { return 10 })

	sparse := drawn("redis_connected_clients", "", map[string]string{"service": "redis"}, func(s float64) float64 {
		if math.Mod(s, 90) != 0 {
			return math.NaN()
		}
		return saw(s)
	})
	if got := Sawteeth(windowOf(t, sparse), slicesOf(), inc); len(got) != 0 {
		t.Errorf("7 points in the incident show a wave: %+v", got)
	}
}

func TestGaps(t *testing.T) {
	level := func(float64) float64 { return 1 }
	silent := func(from, to float64) func(float64) float64 {
		return func(s float64) float64 {
			if s >= from && s < to {
				return math.NaN()
			}
			return 1
		}
	}
	of := func(p string, at func(float64) float64) []sensor.Series {
		l := map[string]string{"k8s.pod.name": p, "service.name": "llm"}
		return []sensor.Series{drawn("vllm:num_requests_running", "", l, at), drawn("vllm:num_requests_waiting", "", l, at)}
	}
	strengths := func(series ...sensor.Series) map[string]float64 {
		out := map[string]float64{}
		for _, c := range Gaps(windowOf(t, series...), slicesOf(), inc) {
			if c.Kind != KindGap {
				t.Errorf("kind %s", c.Kind)
			}
			out[c.Entity.Name] = c.Strength
		}
		return out
	}
	one := append(of("llm-0", silent(3700, 1e9)), of("llm-1", level)...)
	got := strengths(one...)
	if got["llm-0"] > 0.01 || got["llm-1"] != 1 || len(got) != 2 {
		t.Errorf("one of two falls silent: %v", got)
	}
	for _, c := range Gaps(windowOf(t, one...), slicesOf(), inc) {
		if c.Entity.Name == "llm-0" && (c.Onset == nil || c.Onset.Sub(time.Unix(3690, 0)).Abs() > 15*time.Second ||
			!strings.Contains(c.Text, "all 2 series of llm-0 from llm")) {
			t.Errorf("onset %v, text %q", c.Onset, c.Text)
		}
	}
	if got := strengths(append(of("llm-0", silent(3700, 3800)), of("llm-1", level)...)...); got["llm-0"] > 0.05 {
		t.Errorf("a hole of 100 s: %v", got)
	}
	if got := strengths(append(of("llm-0", silent(3700, 1e9)), of("llm-1", silent(3700, 1e9))...)...); got["llm-0"] != 1 || got["llm-1"] != 1 {
		t.Errorf("all telemetry ends: %v", got)
	}
	series := append(of("llm-0", level), of("llm-1", level)...)
	series[0] = drawn(series[0].Name, "", series[0].Labels, silent(3700, 1e9))
	if got := strengths(series...); got["llm-0"] != 1 {
		t.Errorf("one of two series of a pod ends: %v", got)
	}
	// One that comes and goes is not missed.
	flicker := func(s float64) float64 {
		if math.Mod(s, 900) > 300 {
			return math.NaN()
		}
		return 1
	}
	if got := strengths(append(of("llm-0", flicker), of("llm-1", level)...)...); got["llm-0"] < 0.1 {
		t.Errorf("one that comes and goes: %v", got)
	}
}

func TestUp(t *testing.T) {
	w := windowOf(t, drawn("up", "", pod, func(s float64) float64 {
		if s >= 3900 {
			return 0
		}
		return 1
	}))
	var base []*sensor.Profile
	for _, r := range slicesOf() {
		p := sensor.NewProfile(r)
		Up{}.Measure(w.Part(r), p)
		base = append(base, p)
	}
	p := sensor.NewProfile(inc)
	Up{}.Measure(w.Part(inc), p)
	c := only(t, sensor.Compare(base, p), KindGap)
	if c.Strength > 1e-4 || c.Observed != 0.5 || c.Direction != record.DirectionAppeared {
		t.Errorf("%+v", c.Finding)
	}
}

func TestLimitOfTwoSeries(t *testing.T) {
	w := windowOf(t,
		drawn("redis_connected_clients", "", map[string]string{"service": "redis"}, func(s float64) float64 { return s / 42 }),
		drawn("redis_config_maxclients", "", map[string]string{"service": "redis"}, func(float64) float64 { return 100 }))
	p := sensor.NewProfile(inc)
	Limit{}.Measure(w.Part(inc), p)
	if len(p.Shares) != 1 {
		t.Fatalf("measured %v", p.Shares)
	}
	for k, h := range p.Shares {
		if k.Kind != "connections_at_limit" || k.Entity != sensor.Service("redis") || h.K != 28 || h.N != 40 {
			t.Errorf("%v: %v of %v", k, h.K, h.N) // 90 are reached at 3780 s
		}
	}
	usage := sensor.NewProfile(inc)
	Usage{}.Measure(w.Part(inc), usage)
	if len(usage.Values) != 1 {
		t.Errorf("a usage and its share of the limit count twice: %v", usage.Values)
	}
}

func BenchmarkJudge(b *testing.B) {
	n := noise()
	names := []string{"k8s.pod.memory.usage", "DCGM_FI_DEV_GPU_UTIL", "http.server.request.duration", "redis_connected_clients", "k8s.pod.network.io"}
	var series []sensor.Series
	for i := range 5000 {
		l := map[string]string{"service.name": "s" + string(rune('a'+i%20)), "k8s.pod.name": "p" + string(rune('a'+i%200)), "path": string(rune('a' + i))}
		series = append(series, drawn(names[i%5], "", l, func(float64) float64 { return 100 + 10*n() }))
	}
	w := windowOf(b, series...)
	b.Run("trends", func(b *testing.B) {
		for b.Loop() {
			Trends(w, slicesOf(), inc)
		}
	})
	b.Run("sawteeth", func(b *testing.B) {
		for b.Loop() {
			Sawteeth(w, slicesOf(), inc)
		}
	})
	b.Run("gaps", func(b *testing.B) {
		for b.Loop() {
			Gaps(w, slicesOf(), inc)
		}
	})
}
