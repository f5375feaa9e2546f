package scenario

import (
	"fmt"
	"time"

	"inquest/lab/fault"
	"inquest/lab/system"
	"inquest/lab/telemetry"
)

// Singles returns each fault once, in the variant that the seed chooses.
func Singles(seed uint64) []Scenario {
	var out []Scenario
	for i, f := range fault.All() {
		v := int((seed + uint64(i)) % uint64(len(f.Variants)))
		out = append(out, Single(f, v, seed))
	}
	return out
}

// Single is one fault alone.
func Single(f fault.Fault, variant int, seed uint64) Scenario {
	p := Part{f, variant}
	return Scenario{Name: p.Label(), Seed: seed*1009 + uint64(len(f.ID))*31 + uint64(variant), Parts: []Part{p}}
}

// pairs are faults that happen at one time, far enough apart that each has symptoms
// of its own.
var pairs = [][2]string{
	{"gpu-kernel-slow", "vector-pool-exhaustion"},
	{"gc-pauses", "cache-bypass-size"},
	{"kv-preemption-storm", "nan-input"},
	{"network-cut", "degeneration"},
	{"silent-truncation", "bad-canary"},
	{"oom-kill", "wrong-normalisation"},
	{"expert-skew", "ray-actor-stuck"},
	{"tcp-retransmits", "gpu-memory-leak"},
	{"prompt-injection", "unseen-category"},
	{"gpu-hardware", "feature-default"},
}

// Pairs returns pairs of simultaneous faults.
func Pairs(seed uint64) []Scenario {
	var out []Scenario
	for i, p := range pairs {
		a, _ := fault.Get(p[0])
		b, _ := fault.Get(p[1])
		va, vb := int((seed+uint64(i))%uint64(len(a.Variants))), int((seed/3+uint64(i))%uint64(len(b.Variants)))
		parts := []Part{{a, va}, {b, vb}}
		out = append(out, Scenario{Name: parts[0].Label() + " + " + parts[1].Label(), Seed: seed*2003 + uint64(i)*17 + 5, Parts: parts})
	}
	return out
}

// decoys are things that happen in healthy runs.
var decoys = []struct {
	name string
	do   func(*system.System)
}{
	{"nothing", nil},
	{"deploy that changes nothing", func(s *system.System) {
		for i, p := range s.Services["chat-api"].Pods {
			s.World.Sim.After(time.Duration(i)*20*time.Second, func() {
				p.Event(telemetry.Info, "ScalingReplicaSet", "Scaled up replica set chat-api-5.8.1 to 1")
				p.Deploy("5.8.1", "registry.local/chat-api:5.8.1", 5*time.Second)
			})
		}
	}},
	{"noisy but innocent card", func(s *system.System) {
		g := s.Engines[1].GPU
		host := s.Engines[1].Pod.Host()
		rng := s.World.Sim.Rand("decoy")
		s.World.Sim.Every(20*time.Second, func() { g.Temperature = 70 + 14*rng.Float64() })
		s.World.Sim.Every(70*time.Second, func() {
			host.Kernel(telemetry.Warn, "NVRM: Xid (PCI:0000:18:00): 13, pid=777, name=nvtop, Graphics Exception: ESR 0x504648=0x10e")
		})
	}},
	{"load peak within capacity", func(s *system.System) { s.Load *= 1.35 }},
	{"bulk ingestion", func(s *system.System) { s.Mix = [3]float64{0.45, 0.26, 0.13} }},
	{"restart of a replica", func(s *system.System) {
		p := s.Services["recommender"].Pods[1]
		p.Deploy(p.Version, "registry.local/recommender:"+p.Version, 4*time.Second)
	}},
}

// Healthy returns runs in which nothing breaks.
func Healthy(seed uint64) []Scenario {
	var out []Scenario
	for i, d := range decoys {
		out = append(out, Scenario{Name: "healthy/" + d.name, Seed: seed*3001 + uint64(i)*13 + 7, Decoy: d.do})
	}
	return out
}

// Find returns the scenario of a fault in the form FAULT or FAULT/VARIANT.
func Find(name string, seed uint64) (Scenario, error) {
	for _, f := range fault.All() {
		for v := range f.Variants {
			p := Part{f, v}
			if p.Label() == name || f.ID == name && v == int(seed%uint64(len(f.Variants))) {
				s := Single(f, v, seed)
				s.Asked = seed
				return s, nil
			}
		}
	}
	for _, s := range Healthy(seed) {
		if s.Name == name {
			s.Asked = seed
			return s, nil
		}
	}
	return Scenario{}, fmt.Errorf("there is no fault %q in the laboratory: see inquest lab list", name)
}
