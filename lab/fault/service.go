package fault

import (
	"time"

	"inquest/lab/sim"
	"inquest/lab/stack"
	"inquest/lab/system"
	"inquest/lab/telemetry"
)

func onlyLog(p *stack.Pod, severity telemetry.Severity, line string) func(*sim.Proc) {
	return func(*sim.Proc) { p.Logf(severity, "%s", line) }
}

func gc(service string, o stack.GC) func(*system.System) {
	return func(s *system.System) {
		for _, p := range s.Services[service].Pods {
			p.SetGC(o)
		}
	}
}

// leak has a pod take memory at a rate in bytes a second, until it is killed.
func leak(service string, rate float64) func(*system.System) {
	return func(s *system.System) {
		p := s.Services[service].Pods[0]
		s.World.Sim.Every(second, func() {
			if !p.Down() {
				p.Hold(rate)
			}
		})
	}
}

// canary brings a version out on the last pod only.
func canary(service, version string, share float64, fn func(*system.System, *stack.Pod)) func(*system.System) {
	return func(s *system.System) {
		v := s.Services[service]
		p := v.Pods[len(v.Pods)-1]
		p.Event(telemetry.Info, "ScalingReplicaSet", "Scaled up replica set "+service+"-canary to 1")
		p.Deploy(version, "registry.local/"+service+":"+version, 5*second)
		v.Canary = share
		s.World.Sim.After(5*second, func() { fn(s, p) })
	}
}

// services are faults of services, their inputs and their pools.
func services() []Fault {
	return []Fault{
		{ID: "cache-bypass-size", Variants: []Variant{
			{Name: "base64 length as bytes", At: "service:vision gpu:GPU-7d1f", Apply: func(s *system.System) { s.SizeFactor = 4.0 / 3 }},
			{Name: "twice the length", At: "service:vision gpu:GPU-7d1f", Apply: func(s *system.System) { s.SizeFactor = 2 }},
			{Name: "low load", At: "service:vision gpu:GPU-7d1f", Prepare: load(0.7), Apply: func(s *system.System) { s.SizeFactor = 4.0 / 3 }},
		}},
		{ID: "cache-penetration", Variants: []Variant{
			{Name: "bots", At: "service:features service:feature-cache service:recommender", Apply: func(s *system.System) {
				s.GhostUsers, s.Load, s.Mix = 0.85, 1.9, [3]float64{0.26, 0.64, 0.08}
			}},
			{Name: "few clients allowed", At: "service:features service:feature-cache service:recommender", Prepare: func(s *system.System) { s.FeatureCache.MaxClients = 12 }, Apply: func(s *system.System) {
				s.GhostUsers, s.Load, s.Mix = 0.8, 2.2, [3]float64{0.22, 0.7, 0.06}
				s.FeaturePool.Resize(6)
			}},
			{Name: "usual load", At: "service:features service:feature-cache service:recommender", Apply: func(s *system.System) { s.GhostUsers = 0.9; s.FeaturePool.Resize(4) }},
		}},
		{ID: "gpu-kernel-slow", Variants: []Variant{
			{Name: "vision", At: "service:vision gpu:GPU-7d1f", Apply: func(s *system.System) { s.VisionCard.GPU.Slow = 6 }},
			{Name: "embedder", At: "service:embedder gpu:GPU-7d1e", Apply: func(s *system.System) { s.EmbedCard.GPU.Slow = 9 }},
			{Name: "vision, new version", At: "service:vision gpu:GPU-7d1f", Apply: func(s *system.System) {
				rollout(s, "vision", "1.13.0", nil)
				s.VisionCard.GPU.Slow = 4
			}},
		}},
		{ID: "gc-pauses", Variants: []Variant{
			{Name: "tokenizer on long text", At: "service:tokenizer", Apply: gc("tokenizer", stack.GC{Volume: 130 << 20, PerRequest: 12 << 20, Pause: 450 * time.Millisecond, PerGiB: 300 * time.Millisecond})},
			{Name: "chat-api", At: "service:chat-api", Apply: gc("chat-api", stack.GC{Volume: 60 << 20, PerRequest: 12 << 20, Pause: 700 * time.Millisecond})},
			{Name: "guardrail, rare and long", At: "service:guardrail", Apply: gc("guardrail", stack.GC{Volume: 300 << 20, PerRequest: 20 << 20, Pause: 1800 * time.Millisecond})},
		}},
		{ID: "vector-pool-exhaustion", Variants: []Variant{
			{Name: "leak", At: "service:retriever service:milvus", Apply: func(s *system.System) { s.MilvusPool.Leak = 0.3 }},
			{Name: "small pool", At: "service:retriever service:milvus", Apply: func(s *system.System) {
				s.MilvusPool.Resize(2)
				s.MilvusPool.Limit = 300 * time.Millisecond
				s.MilvusPool.Leak = 0.05
			}},
			{Name: "slow leak", At: "service:retriever service:milvus", Apply: func(s *system.System) { s.MilvusPool.Leak = 0.12 }},
		}},
		{ID: "oom-kill", Variants: []Variant{
			{Name: "reranker", At: "service:reranker", Apply: leak("reranker", 22<<20)},
			{Name: "retriever, fast", At: "service:retriever", Apply: leak("retriever", 60<<20)},
			{Name: "features", At: "service:features", Apply: leak("features", 11<<20)},
		}},
		{ID: "ray-actor-stuck", Variants: []Variant{
			{Name: "all", At: "service:ingest", Apply: func(s *system.System) { s.Stick(4) }},
			{Name: "all, more load", At: "service:ingest", Prepare: func(s *system.System) { s.Mix = [3]float64{0.45, 0.25, 0.12} }, Apply: func(s *system.System) { s.Stick(4) }},
			{Name: "one after another", At: "service:ingest", Apply: func(s *system.System) {
				for i := range 4 {
					s.World.Sim.After(time.Duration(i)*15*second, func() { s.Stick(1) })
				}
			}},
		}},
		{ID: "retry-storm", Variants: []Variant{
			{Name: "recommender to features", At: "service:recommender service:features", Apply: storm("recommender", "features", 12*time.Millisecond, 6)},
			{Name: "retriever to embedder", At: "service:retriever service:embedder", Apply: storm("retriever", "embedder", 14*time.Millisecond, 8)},
			{Name: "chat-api to retriever", At: "service:chat-api service:retriever", Apply: storm("chat-api", "retriever", 62*time.Millisecond, 5)},
		}},
		{ID: "bad-canary", Variants: []Variant{
			{Name: "errors", At: "service:recommender", Apply: canary("recommender", "7.3.0-rc1", 0.2, func(s *system.System, p *stack.Pod) { s.CanaryError[p] = 0.6 })},
			{Name: "slow", At: "service:recommender", Apply: canary("recommender", "7.3.0-rc1", 0.25, func(s *system.System, p *stack.Pod) { s.CanarySlow[p] = 0.6 })},
			{Name: "chat", At: "service:chat-api", Apply: canary("chat-api", "5.9.0-rc2", 0.2, func(s *system.System, p *stack.Pod) { s.CanaryError[p] = 0.9 })},
		}},
		{ID: "prompt-injection", Variants: []Variant{
			{Name: "a third", At: "service:guardrail service:chat-api", Apply: func(s *system.System) { s.Inject = 0.35 }},
			{Name: "one in seven", At: "service:guardrail service:chat-api", Apply: func(s *system.System) { s.Inject = 0.15 }},
			{Name: "with more traffic", At: "service:guardrail service:chat-api", Apply: func(s *system.System) { s.Inject, s.Load = 0.4, 1.4 }},
		}},
		{ID: "sampling-changed", Variants: []Variant{
			{Name: "hot", At: "service:llm-router service:vllm model:llama-3.1-70b", Apply: func(s *system.System) { s.Temperature = 1.7 }},
			{Name: "warm", At: "service:llm-router service:vllm model:llama-3.1-70b", Apply: func(s *system.System) { s.Temperature = 1.3 }},
			{Name: "cold, new version", At: "service:llm-router service:vllm model:llama-3.1-70b", Apply: func(s *system.System) {
				rollout(s, "llm-router", "1.7.0", nil)
				s.Temperature = 0.05
			}},
		}},
		{ID: "context-overflow", Variants: []Variant{
			{Name: "untrimmed history", At: "service:chat-api service:vllm model:llama-3.1-70b", Apply: func(s *system.System) { s.History = 4 }},
			{Name: "worse", At: "service:chat-api service:vllm model:llama-3.1-70b", Apply: func(s *system.System) { s.History = 7 }},
			{Name: "growing", At: "service:chat-api service:vllm model:llama-3.1-70b", Apply: func(s *system.System) {
				s.World.Sim.Every(20*second, func() { s.History = min(6, s.History+0.5) })
			}},
		}},
	}
}

// storm has a caller give up early and try again at once and often.
func storm(from, to string, timeout time.Duration, attempts int) func(*system.System) {
	return func(s *system.System) {
		w := s.Ways[from+" "+to]
		w.Timeout, w.Attempts, w.Backoff = timeout, attempts, time.Millisecond
		s.Slowdown[to] = 3 // what starts it: the callee becomes a little slow
	}
}
