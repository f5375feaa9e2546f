package metrics

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"inquest/record"
	"inquest/sensor"
)

// An hour of baseline in six slices, ten minutes of incident, a point every 15 s.
const baseline, incident, step = 3600, 600, 15

var inc = sensor.Range{From: baseline * 1e9, To: (baseline + incident) * 1e9}

func slicesOf() []sensor.Range {
	var out []sensor.Range
	for i := range int64(6) {
		out = append(out, sensor.Range{From: i * 600e9, To: (i + 1) * 600e9})
	}
	return out
}

func drawn(name, unit string, labels map[string]string, at func(second float64) float64) sensor.Series {
	s := sensor.Series{Name: name, Unit: unit, Labels: labels}
	for sec := 0; sec < baseline+incident; sec += step {
		if v := at(float64(sec)); !math.IsNaN(v) {
			s.Points = append(s.Points, sensor.Point{Time: int64(sec) * 1e9, Value: v})
		}
	}
	return s
}

// counter integrates a rate.
func counter(name string, labels map[string]string, rate func(second float64) float64) sensor.Series {
	sum := 0.0
	s := drawn(name, "", labels, func(sec float64) float64 { sum += step * rate(sec); return sum })
	s.Counter = true
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

// compared measures all slices with the sensors of this package and returns the
// one finding of a kind.
func compared(t *testing.T, kind string, series ...sensor.Series) sensor.Compared {
	t.Helper()
	w := windowOf(t, series...)
	measure := func(r sensor.Range) *sensor.Profile {
		p := sensor.NewProfile(r)
		for _, s := range All() {
			s.Measure(w.Part(r), p)
		}
		return p
	}
	var base []*sensor.Profile
	for _, r := range slicesOf() {
		base = append(base, measure(r))
	}
	var out []sensor.Compared
	for _, c := range sensor.Compare(base, measure(inc)) {
		if c.Kind == kind {
			out = append(out, c)
		}
	}
	if len(out) != 1 {
		t.Fatalf("%d findings of kind %s", len(out), kind)
	}
	return out[0]
}

func during(before, in float64) func(float64) float64 {
	return func(s float64) float64 {
		if s >= baseline {
			return in
		}
		return before
	}
}

var engine = map[string]string{"k8s.pod.name": "llm-0", "service.name": "llm", "model_name": "org/m", "engine": "0"}

func TestStalled(t *testing.T) {
	running := func(v float64) sensor.Series {
		return drawn("vllm:num_requests_running", "", engine, func(float64) float64 { return v })
	}
	c := compared(t, KindStalled, running(1), counter("vllm:generation_tokens_total", engine, during(50, 0)))
	if c.Strength > 1e-4 || c.Entity != sensor.Pod("llm-0") || c.Observed < 0.9 || c.Expected > 0.1 {
		t.Errorf("%+v", c.Finding)
	}
	if c := compared(t, KindStalled, running(0), counter("vllm:generation_tokens_total", engine, during(0, 0))); c.Strength < 0.5 {
		t.Errorf("idle is taken for stalled: %+v", c.Finding)
	}
	if c := compared(t, KindStalled, running(3), counter("vllm:generation_tokens_total", engine, during(50, 20))); c.Strength < 0.5 {
		t.Errorf("slow is taken for stalled: %+v", c.Finding)
	}
	sg := map[string]string{"service": "sg", "model_name": "m"}
	c = compared(t, KindStalled, drawn("sglang:num_running_reqs", "", sg, during(2, 2)), drawn("sglang:gen_throughput", "", sg, during(70, 0)))
	if c.Strength > 1e-4 || c.Entity != sensor.Service("sg") {
		t.Errorf("%+v", c.Finding)
	}
}

// histogram gives the sum and count of a histogram with a mean and a rate.
func histogram(name string, labels map[string]string, mean, rate func(float64) float64) []sensor.Series {
	return []sensor.Series{
		counter(name+"_sum", labels, func(s float64) float64 { return mean(s) * rate(s) }),
		counter(name+"_count", labels, rate),
	}
}

func TestInversion(t *testing.T) {
	one := func(float64) float64 { return 10 }
	client := map[string]string{"service.name": "gateway", "gen_ai.request.model": "m"}
	f := func(in float64) sensor.Compared {
		return compared(t, KindInversion, append(
			histogram("vllm:inter_token_latency_seconds", engine, during(0.02, 0.02), one),
			histogram("gen_ai_client_operation_time_per_output_chunk_seconds", client, during(0.021, in), one)...)...)
	}
	if c := f(0.002); c.Strength > 1e-4 || c.Entity != sensor.Service("gateway") || c.Observed != 1 {
		t.Errorf("tokens come in bursts: %+v", c.Finding)
	}
	if c := f(0.2); c.Strength < 0.5 {
		t.Errorf("a slow client: %+v", c.Finding)
	}
}

func TestTokenMismatch(t *testing.T) {
	client := map[string]string{"service.name": "gateway", "gen_ai.request.model": "m", "gen_ai.token.type": "output"}
	f := func(in float64) sensor.Compared {
		return compared(t, KindMismatch, append(
			histogram("gen_ai.client.token.usage", client, during(100, in), func(float64) float64 { return 2 }),
			counter("vllm:generation_tokens_total", engine, func(float64) float64 { return 200 }))...)
	}
	if c := f(60); c.Strength > 0.01 || math.Abs(c.Observed-1/0.6) > 0.02 || c.Direction != record.DirectionUp || c.Entity != sensor.Pod("llm-0") {
		t.Errorf("40 %% of the tokens are lost: %+v", c.Finding)
	}
	if c := f(100); c.Strength < 0.5 {
		t.Errorf("nothing is lost: %+v", c.Finding)
	}
}

func TestSeriesGrowth(t *testing.T) {
	var series []sensor.Series
	for i := range 60 {
		l := map[string]string{"service.name": "proxy", "end_user": fmt.Sprint(i)}
		series = append(series, drawn("litellm_spend_metric", "", l, func(s float64) float64 {
			if i >= 20 && s < baseline {
				return math.NaN()
			}
			return 1
		}))
	}
	c := compared(t, KindGrowth, series...)
	if c.Strength > 0.01 || c.Observed != 60 || c.Expected != 20 || c.Entity != sensor.Service("proxy") {
		t.Errorf("%+v", c.Finding)
	}
}

func TestTailIsMeasured(t *testing.T) {
	le := func(b string) map[string]string { return map[string]string{"service.name": "llm", "le": b} }
	// One request of 20 takes up to 10 s in the incident; the mean hardly moves.
	slow := during(0, 0.5)
	c := compared(t, "latency_tail",
		counter("ttft_seconds_bucket", le("1"), func(s float64) float64 { return 10 - slow(s) }),
		counter("ttft_seconds_bucket", le("10"), func(float64) float64 { return 10 }),
		counter("ttft_seconds_bucket", le("+Inf"), func(float64) float64 { return 10 }))
	if c.Strength > 0.01 || c.Expected > 1 || c.Observed < 8 || c.Quadrant != record.QuadrantMetrics {
		t.Errorf("%+v", c.Finding)
	}
}

func TestChanges(t *testing.T) {
	info := func(size string, from, to float64) sensor.Series {
		return drawn("vllm:cache_config_info", "", map[string]string{
			"service.name": "llm", "k8s.pod.name": fmt.Sprint("llm-", size), "block_size": size, "enable_prefix_caching": "True",
		}, func(s float64) float64 {
			if s < from || s >= to {
				return math.NaN()
			}
			return 1
		})
	}
	f := func(series ...sensor.Series) []sensor.Compared {
		return Changes(windowOf(t, series...), slicesOf(), inc)
	}
	got := f(info("16", 0, 3750), info("32", 3750, 1e9))
	if len(got) != 1 {
		t.Fatalf("%d findings", len(got))
	}
	c := got[0]
	if c.Strength > 1e-4 || c.Kind != KindChange || c.Entity != sensor.Service("llm") || c.Direction != record.DirectionAppeared ||
		c.Onset == nil || !c.Onset.Equal(time.Unix(3750, 0).UTC()) || !strings.Contains(c.Text, `block_size "16" → "32"`) ||
		strings.Contains(c.Text, "prefix") {
		t.Errorf("%+v", c.Finding)
	}
	// A copy that comes anew with the same configuration changes nothing.
	if got := f(info("16", 0, 3750), info("16", 3750, 1e9)); len(got) != 1 || got[0].Strength < 0.5 {
		t.Errorf("%+v", got)
	}
	// Two that are there at once, such as of a canary, are both known.
	if got := f(info("16", 0, 1e9), info("32", 0, 1e9)); len(got) != 1 || got[0].Strength < 0.5 {
		t.Errorf("%+v", got)
	}

	pool := map[string]string{"service.name": "api", "db.client.connection.pool.name": "main"}
	got = f(drawn("db.client.connection.max", "", pool, during(50, 5)))
	if len(got) != 1 || got[0].Strength > 1e-4 || !strings.Contains(got[0].Text, "50 → 5") {
		t.Errorf("%+v", got)
	}

	version := func(v string, from, to float64) sensor.Series {
		l := map[string]string{"service.name": "llm", "k8s.pod.name": "llm-" + v, "service_version": v}
		return drawn("http.server.request.rate", "", l, func(s float64) float64 {
			if s < from || s >= to {
				return math.NaN()
			}
			return 1
		})
	}
	got = f(version("1.0", 0, 1e9), version("1.1", 3700, 1e9))
	if len(got) != 1 || got[0].Strength > 0.01 || !strings.Contains(got[0].Text, `service.version "1.0" → "1.1"`) || got[0].Entity != sensor.Service("llm") {
		t.Errorf("%+v", got)
	}
}

func BenchmarkMeasure(b *testing.B) {
	var series []sensor.Series
	names := []string{"vllm:num_requests_running", "http.server.request.duration", "k8s.pod.cpu.usage", "k8s.pod.memory.usage", "vllm:generation_tokens_total"}
	for i := range 5000 {
		l := map[string]string{
			"service.name": fmt.Sprint("s", i%50), "k8s.pod.name": fmt.Sprint("p", i%250), "k8s.node.name": fmt.Sprint("n", i%9), "path": fmt.Sprint(i),
		}
		s := sensor.Series{Name: names[i%5], Labels: l}
		for k := range int64(200) {
			s.Points = append(s.Points, sensor.Point{Time: k * 20e9, Value: float64((k*7 + int64(i)) % 13)})
		}
		series = append(series, s)
	}
	src := &sensor.Memory{AllSeries: series}
	r := sensor.Range{From: 0, To: 4000e9}
	gather := func() *sensor.Window {
		w, err := sensor.Gather(context.Background(), src, r, sensor.DefaultLimits, record.QuadrantMetrics)
		if err != nil {
			b.Fatal(err)
		}
		return w
	}
	w := gather()
	b.Run("gather", func(b *testing.B) {
		for b.Loop() {
			gather()
		}
	})
	b.Run("measure", func(b *testing.B) {
		for b.Loop() {
			for i := range int64(20) {
				part := sensor.Range{From: i * 200e9, To: (i + 1) * 200e9}
				p := sensor.NewProfile(part)
				for _, s := range All() {
					s.Measure(w.Part(part), p)
				}
			}
		}
	})
}
