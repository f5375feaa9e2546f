package stack

import (
	"time"

	"inquest/lab/telemetry"
)

// Buckets of vLLM's histograms.
var (
	firstTokenBuckets = []float64{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560}
	perTokenBuckets   = []float64{0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}
	requestBuckets    = []float64{0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680}
	lengthBuckets     = []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000}
)

// engineMetrics are those of vLLM, under its names and in its units.
type engineMetrics struct {
	e                                            *Engine
	prompt, generated                            *telemetry.Series
	success                                      map[string]*telemetry.Series
	firstToken, perToken, whole, queued, lengths *telemetry.Series
}

func newEngineMetrics(e *Engine) *engineMetrics {
	m := e.Pod.Meter
	labels := []any{"model_name", e.Model, "engine", "0"}
	gauge := func(name string, read func() float64) { m.Gauge(name, "", read, labels...) }
	gauge("vllm:num_requests_running", func() float64 { return float64(len(e.running)) })
	gauge("vllm:num_requests_waiting", func() float64 { return float64(len(e.waiting)) })
	gauge("vllm:kv_cache_usage_perc", func() float64 { return e.kv.usage() })
	count := func(name string, read func() float64) { m.CounterFunc(name, "", read, labels...) }
	count("vllm:num_preemptions", func() float64 { return float64(e.preempted) })
	count("vllm:prefix_cache_queries", func() float64 { return float64(e.kv.queried) })
	count("vllm:prefix_cache_hits", func() float64 { return float64(e.kv.hit) })
	x := &engineMetrics{
		e:          e,
		prompt:     m.Counter("vllm:prompt_tokens", "", labels...),
		generated:  m.Counter("vllm:generation_tokens", "", labels...),
		firstToken: m.Histogram("vllm:time_to_first_token_seconds", "", firstTokenBuckets, labels...),
		perToken:   m.Histogram("vllm:inter_token_latency_seconds", "", perTokenBuckets, labels...),
		whole:      m.Histogram("vllm:e2e_request_latency_seconds", "", requestBuckets, labels...),
		queued:     m.Histogram("vllm:request_queue_time_seconds", "", requestBuckets, labels...),
		lengths:    m.Histogram("vllm:request_prompt_tokens", "", lengthBuckets, labels...),
		success:    map[string]*telemetry.Series{},
	}
	for _, reason := range []string{"stop", "length", "abort", "error"} {
		x.success[reason] = m.Counter("vllm:request_success", "", append(append([]any(nil), labels...), "finished_reason", reason)...)
	}
	return x
}

func (m *engineMetrics) first(g *Generation) {
	m.firstToken.Observe((g.First - g.Arrived).Seconds())
	m.queued.Observe((g.Scheduled - g.Arrived).Seconds())
}

// tokenTime notes the time since the token before, of each request that made one.
func (m *engineMetrics) tokenTime(decode []*Generation, now time.Duration) {
	for _, g := range decode {
		if g.last > 0 {
			m.perToken.Observe((now - g.last).Seconds())
		}
		g.last = now
	}
}

func (m *engineMetrics) finished(g *Generation, reason string, now time.Duration) {
	m.success[reason].Add(1)
	m.lengths.Observe(float64(g.Prompt))
	if reason == "stop" || reason == "length" {
		m.whole.Observe((now - g.Arrived).Seconds())
	}
}
