package stack

import (
	"time"

	"inquest/lab/sim"
	"inquest/lab/telemetry"
)

// slowCPU is how many times longer a step takes without a card.
const slowCPU = 30

// rest is what the engine does beside its steps: it dies with its pod, starts
// again, cold, and writes its statistics.
func (e *Engine) rest(w *World) {
	e.Pod.OnCrash(func() {
		e.proc.Kill()
		e.waiting, e.running, e.wake = nil, nil, nil
		sharing, salt := e.kv.sharing, e.kv.salt
		e.kv = newKVCache(e.Blocks)
		e.kv.sharing, e.kv.salt = sharing, salt
		clear(e.captured)
		e.GPU.Free(e.leaked + e.stepBytes)
		e.GPU.reserved = e.GPU.allocated
		e.leaked, e.stepBytes = 0, 0
	})
	e.Pod.OnStart(func(p *sim.Proc) {
		if e.Device == "cpu" {
			e.Pod.Logf(telemetry.Warn, "UserWarning: CUDA initialization: CUDA unknown error - this may be due to an incorrectly set up environment. Setting the available devices to be zero.")
		}
		if e.LoadRate > 0 {
			d := time.Duration(e.WeightBytes / e.LoadRate * 1e9)
			p.Sleep(d)
			e.Pod.Logf(telemetry.Info, "Loading weights took %.2f seconds", d.Seconds())
			e.Pod.Logf(telemetry.Info, "Model loading took %.4f GiB memory and %.6f seconds", e.WeightBytes/(1<<30), d.Seconds())
		}
		e.Pod.Logf(telemetry.Info, "GPU KV cache size: %d tokens", e.Blocks*blockTokens)
		if e.proc.Alive() {
			e.proc.Kill()
			e.GPU.Free(e.stepBytes)
			e.stepBytes = 0
			e.kv.clear()
		}
		clear(e.captured)
		e.proc = w.Sim.Go(e.loop)
	})
	const each = 10 * time.Second
	var prompt, made float64
	w.Sim.Every(each, func() {
		if e.Pod.Down() {
			return
		}
		p, g := e.metrics.prompt.Total(), e.metrics.generated.Total()
		severity := telemetry.Info
		if p <= prompt && g <= made && len(e.running)+len(e.waiting) == 0 {
			severity = telemetry.Debug
		}
		hits := 0.0
		if e.kv.queried > 0 {
			hits = 100 * float64(e.kv.hit) / float64(e.kv.queried)
		}
		e.Pod.Logf(severity, "Engine 000: Avg prompt throughput: %.1f tokens/s, Avg generation throughput: %.1f tokens/s, Running: %d reqs, Waiting: %d reqs, GPU KV cache usage: %.1f%%, Prefix cache hit rate: %.1f%%",
			max(0, p-prompt)/each.Seconds(), max(0, g-made)/each.Seconds(), len(e.running), len(e.waiting), 100*e.kv.usage(), hits)
		prompt, made = p, g
	})
}
