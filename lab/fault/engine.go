package fault

import (
	"time"

	"inquest/lab/stack"
	"inquest/lab/system"
	"inquest/lab/telemetry"
)

const (
	llm    = "service:vllm model:llama-3.1-70b"
	gpuA   = "gpu:GPU-a100"
	gpuB   = "gpu:GPU-a101"
	second = time.Second
)

// engines does something to both engines, or to the first only.
func engines(all bool, fn func(*system.System, *stack.Engine)) func(*system.System) {
	return func(s *system.System) {
		for i, e := range s.Engines {
			if i == 0 || all {
				fn(s, e)
			}
		}
	}
}

// rollout brings a new version out, one pod after another, and fn with it.
func rollout(s *system.System, service, version string, fn func(i int, p *stack.Pod)) {
	for i, p := range s.Services[service].Pods {
		s.World.Sim.After(time.Duration(i)*15*second, func() {
			if i == 0 {
				p.Event(telemetry.Info, "ScalingReplicaSet", "Scaled up replica set "+service+"-"+version+" to 1")
			}
			if fn != nil {
				fn(i, p)
			}
			p.Deploy(version, "registry.local/"+service+":"+version, 6*second)
		})
	}
}

// inference are faults of the inference engine and its cards.
func inference() []Fault {
	return []Fault{
		{ID: "cold-start", Variants: []Variant{
			{Name: "slow disk", At: llm, Apply: engines(false, func(s *system.System, e *stack.Engine) {
				e.LoadRate, e.Capture = 0.7*gib, 900*time.Millisecond
				e.Pod.Crash("Error", 4*second)
			})},
			{Name: "both engines restart", At: llm, Apply: func(s *system.System) {
				for i, e := range s.Engines {
					s.World.Sim.After(time.Duration(i)*70*second, func() {
						e.LoadRate, e.Capture = 1.2*gib, 1500*time.Millisecond
						e.Pod.Crash("Error", 3*second)
					})
				}
			}},
			{Name: "kernels compiled in first requests", At: "service:vision", Apply: func(s *system.System) {
				s.VisionCard.Cold = 14
				s.Services["vision"].Pods[0].Crash("Error", 2*second)
			}},
		}},
		{ID: "no-cuda-graph", Variants: []Variant{
			{Name: "both engines", At: llm, Apply: func(s *system.System) {
				rollout(s, "vllm", "0.11.3", func(i int, p *stack.Pod) { eager(s.Engines[i]) })
			}},
			{Name: "one engine", At: llm, Apply: engines(false, func(s *system.System, e *stack.Engine) {
				eager(e)
				e.Pod.Deploy("0.11.2", "registry.local/vllm:0.11.2", 6*second)
			})},
			{Name: "low load", At: llm, Prepare: load(0.6), Apply: func(s *system.System) {
				rollout(s, "vllm", "0.11.2", func(i int, p *stack.Pod) { eager(s.Engines[i]) })
			}},
		}},
		{ID: "graph-recapture", Variants: []Variant{
			{Name: "each 2 s", At: llm, Apply: engines(true, recapture(2*second, 350*time.Millisecond))},
			{Name: "each 5 s", At: llm, Apply: engines(true, recapture(5*second, 700*time.Millisecond))},
			{Name: "one engine", At: llm, Apply: engines(false, recapture(2*second, 500*time.Millisecond))},
		}},
		{ID: "gpu-memory-leak", Variants: []Variant{
			{Name: "engine", At: llm + " " + gpuA, Apply: engines(false, func(_ *system.System, e *stack.Engine) { e.Leak = 90 << 20 })},
			{Name: "vision", At: "service:vision gpu:GPU-7d1f", Apply: func(s *system.System) { s.VisionCard.Leak = 160 << 20 }},
			{Name: "embedder", At: "service:embedder gpu:GPU-7d1e", Apply: func(s *system.System) { s.EmbedCard.Leak = 90 << 20 }},
		}},
		{ID: "gpu-fragmentation", Variants: []Variant{
			{Name: "engine", At: llm + " " + gpuA, Apply: engines(false, func(_ *system.System, e *stack.Engine) { e.Fragmentation = 0.97; e.Activation = 2.2e6 })},
			{Name: "both engines", At: llm + " " + gpuA + " " + gpuB, Apply: engines(true, func(_ *system.System, e *stack.Engine) { e.Fragmentation = 0.99; e.Activation = 1.8e6 })},
			{Name: "vision", At: "service:vision gpu:GPU-7d1f", Apply: func(s *system.System) { s.VisionCard.Fragmentation = 0.97 }},
		}},
		{ID: "kv-preemption-storm", Variants: []Variant{
			{Name: "small cache", At: llm, Apply: engines(true, func(_ *system.System, e *stack.Engine) { e.Resize(360) })},
			{Name: "one engine", At: llm, Apply: engines(false, func(_ *system.System, e *stack.Engine) { e.Resize(260) })},
			{Name: "long chats", At: llm, Apply: func(s *system.System) {
				s.History = 1.9
				for _, e := range s.Engines {
					e.Resize(560)
				}
			}},
		}},
		{ID: "prefix-cache-collapse", Variants: []Variant{
			{Name: "upgrade without sharing", At: llm, Apply: func(s *system.System) {
				rollout(s, "vllm", "0.12.0", func(i int, p *stack.Pod) { s.Engines[i].Share(false, 0) })
			}},
			{Name: "hashes change", At: llm, Apply: func(s *system.System) {
				n := uint64(0)
				s.World.Sim.Every(3*second, func() {
					n++
					for _, e := range s.Engines {
						e.Share(true, n)
					}
				})
			}},
			{Name: "one engine", At: llm, Apply: engines(false, func(_ *system.System, e *stack.Engine) { e.Share(false, 0) })},
		}},
		{ID: "lora-adapter-mismatch", Variants: []Variant{
			{Name: "silent", At: llm + " adapter:support-de", Apply: engines(true, func(_ *system.System, e *stack.Engine) { e.Adapters["support-de"].Broken = true })},
			{Name: "missing", At: llm + " adapter:legal-v3", Apply: engines(true, func(_ *system.System, e *stack.Engine) { delete(e.Adapters, "legal-v3") })},
			{Name: "silent, both adapters", At: llm, Apply: engines(true, func(_ *system.System, e *stack.Engine) {
				for _, a := range e.Adapters {
					a.Broken = true
				}
			})},
		}},
		{ID: "expert-skew", Variants: []Variant{
			{Name: "strong", At: llm, Apply: engines(true, func(_ *system.System, e *stack.Engine) { e.ExpertSkew = 1.3 })},
			{Name: "moderate", At: llm, Apply: engines(true, func(_ *system.System, e *stack.Engine) { e.ExpertSkew = 0.8 })},
			{Name: "one engine", At: llm, Apply: engines(false, func(_ *system.System, e *stack.Engine) { e.ExpertSkew = 1.1 })},
		}},
		{ID: "degeneration", Variants: []Variant{
			{Name: "a third", At: llm + " service:chat-api", Apply: engines(true, func(_ *system.System, e *stack.Engine) { e.Degenerate = 0.33 })},
			{Name: "one in eight", At: llm + " service:chat-api", Apply: engines(true, func(_ *system.System, e *stack.Engine) { e.Degenerate = 0.13 })},
			{Name: "one engine", At: llm + " service:chat-api", Apply: engines(false, func(_ *system.System, e *stack.Engine) { e.Degenerate = 0.4 })},
		}},
		{ID: "gpu-hardware", Variants: []Variant{
			{Name: "thermal", At: llm + " " + gpuB, Apply: func(s *system.System) { s.Engines[1].GPU.Temperature = 97 }},
			{Name: "fallen off the bus", At: llm + " " + gpuA, Apply: func(s *system.System) {
				e := s.Engines[0]
				e.GPU.XID = 79
				e.Pod.Host().Kernel(telemetry.Error, "NVRM: Xid (PCI:0000:17:00): 79, pid=4242, name=python, GPU has fallen off the bus.")
				e.LoadRate = 1.5 * gib
				e.Pod.Logf(telemetry.Error, "RuntimeError: CUDA error: unspecified launch failure")
				e.Pod.Crash("Error", 20*second)
			}},
			{Name: "uncorrectable memory errors", At: "service:vision gpu:GPU-7d1f", Apply: func(s *system.System) {
				k := s.VisionCard
				bad := 0
				s.World.Sim.Every(25*second, func() {
					bad++
					k.GPU.XID = 63
					k.GPU.ECC += 3
					k.Pod.Host().Kernel(telemetry.Error, "NVRM: Xid (PCI:0000:65:00): 63, pid='<unknown>', name=<unknown>, Row Remapper: New row marked for remapping, reset gpu to activate.")
					if bad%2 == 1 {
						k.GPU.XID = 48
						k.Pod.Logf(telemetry.Error, "RuntimeError: CUDA error: uncorrectable ECC error encountered")
						k.Pod.Crash("Error", 6*second)
					}
				})
			}},
		}},
	}
}

const gib = 1 << 30

func eager(e *stack.Engine) {
	e.Graphs = false
	e.Pod.OnStart(onlyLog(e.Pod, telemetry.Warn, "Enforce eager mode: CUDA graph is disabled (enforce_eager=True)"))
}

func recapture(each, takes time.Duration) func(*system.System, *stack.Engine) {
	return func(_ *system.System, e *stack.Engine) { e.Recapture, e.Capture = each, takes }
}

func load(factor float64) func(*system.System) {
	return func(s *system.System) { s.Load = factor }
}
