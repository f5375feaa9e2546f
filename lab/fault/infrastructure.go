package fault

import (
	"time"

	"inquest/lab/system"
	"inquest/lab/telemetry"
)

// infrastructure are faults of networks, machines and of telemetry itself.
func infrastructure() []Fault {
	return []Fault{
		{ID: "tls-stall", Variants: []Variant{
			{Name: "revocation check", At: "service:chat-api service:llm-router", Apply: func(s *system.System) {
				w := s.Ways["chat-api llm-router"]
				w.OCSP, w.KeepAlive = 2*second, 0
			}},
			{Name: "long check, some connections", At: "service:chat-api service:llm-router", Apply: func(s *system.System) {
				w := s.Ways["chat-api llm-router"]
				w.OCSP, w.KeepAlive = 6*second, 300*time.Millisecond
			}},
			{Name: "without phases in spans", At: "service:chat-api service:llm-router", Also: []string{"network-delay"}, Prepare: func(s *system.System) {
				for _, p := range s.Services["chat-api"].Pods {
					p.HTTPPhases = false
				}
			}, Apply: func(s *system.System) {
				w := s.Ways["chat-api llm-router"]
				w.OCSP, w.KeepAlive = 3*second, 0
			}},
		}},
		{ID: "tcp-retransmits", Variants: []Variant{
			{Name: "recommender to features", At: "service:features service:recommender", Apply: lossy("recommender features", 0.12, 0.02)},
			{Name: "resets to vllm", At: "service:vllm service:llm-router", Apply: lossy("llm-router vllm", 0.05, 0.15)},
			{Name: "chat-api to retriever", At: "service:chat-api service:retriever", Apply: lossy("chat-api retriever", 0.2, 0)},
		}},
		{ID: "network-cut", Variants: []Variant{
			{Name: "node-3", At: "node:node-3", Apply: func(s *system.System) { s.Nodes["node-3"].Cut(4 * time.Minute) }},
			{Name: "gpu-1, two minutes", At: "node:gpu-1", Apply: func(s *system.System) { s.Nodes["gpu-1"].Cut(2 * time.Minute) }},
			{Name: "node-5", At: "node:node-5", Apply: func(s *system.System) { s.Nodes["node-5"].Cut(3 * time.Minute) }},
		}},
		{ID: "cpu-throttling-neighbour", Variants: []Variant{
			{Name: "node-3", At: "node:node-3", Apply: neighbour("node-3", 15.4)},
			{Name: "node-4", At: "node:node-4", Apply: neighbour("node-4", 15.5)},
			{Name: "node-5", At: "node:node-5", Apply: neighbour("node-5", 15.7)},
		}},
		{ID: "broken-context", Variants: []Variant{
			{Name: "recommender", At: "service:recommender", Apply: loses("recommender", 1)},
			{Name: "llm-router, half", At: "service:llm-router", Apply: loses("llm-router", 0.5)},
			{Name: "retriever", At: "service:retriever", Apply: loses("retriever", 0.8)},
		}},
		{ID: "clock-skew", Variants: []Variant{
			{Name: "1.5 s ahead", At: "node:node-4", Apply: func(s *system.System) { s.Nodes["node-4"].Clock += 1500 * time.Millisecond }},
			{Name: "0.6 s behind", At: "node:node-3", Apply: func(s *system.System) { s.Nodes["node-3"].Clock -= 600 * time.Millisecond }},
			{Name: "drifts", At: "node:node-2", Apply: func(s *system.System) { drift(s, "node-2", 4*time.Millisecond) }},
		}},
		{ID: "telemetry-lost", Variants: []Variant{
			{Name: "full queue in vllm", At: "service:vllm", Apply: drops("vllm", 0.6)},
			{Name: "full queue in recommender", At: "service:recommender", Apply: drops("recommender", 0.4)},
			{Name: "dies with what it had", At: "service:retriever", Apply: func(s *system.System) {
				for i := range 6 {
					p := s.Services["retriever"].Pods[i%2]
					s.World.Sim.After(time.Duration(i)*45*second, func() { p.Crash("Error", 2*second) })
				}
			}},
		}},
	}
}

func lossy(way string, loss, reset float64) func(*system.System) {
	return func(s *system.System) { s.Ways[way].Loss, s.Ways[way].Reset = loss, reset }
}

func neighbour(node string, cores float64) func(*system.System) {
	return func(s *system.System) {
		s.HoldNeighbours = true
		s.Nodes[node].Steal(cores)
	}
}

func loses(service string, share float64) func(*system.System) {
	return func(s *system.System) {
		for _, p := range s.Services[service].Pods {
			s.LoseContext[p] = share
		}
	}
}

func drift(s *system.System, node string, each time.Duration) {
	s.World.Sim.Every(second, func() { s.Nodes[node].Clock += each })
}

// drops has an exporter whose queue is full lose a share of what the pods tell.
func drops(service string, share float64) func(*system.System) {
	return func(s *system.System) {
		rng := s.World.Sim.Rand("drops " + service)
		for _, p := range s.Services[service].Pods {
			p.DropSpans(func() bool { return rng.Float64() < share })
			p.Logf(telemetry.Warn, "Queue is full, likely spans will be dropped.")
			s.World.Sim.Every(20*second, func() { p.Logf(telemetry.Warn, "Queue is full, likely spans will be dropped.") })
		}
	}
}
