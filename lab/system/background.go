package system

import (
	"math"
	"time"

	"inquest/lab/telemetry"
)

// background is what goes on beside requests, whatever breaks: lines that say
// nothing, warnings that are always there, bursts at odd moments.
func (s *System) background() {
	rng := s.World.Sim.Rand("background")
	sim := s.World.Sim
	every := func(service string, mean time.Duration, fn func(pod int)) {
		v := s.Services[service]
		for i := range v.Pods {
			var next func()
			next = func() {
				sim.After(time.Duration(float64(mean)*math.Exp(0.3*rng.NormFloat64())), func() {
					if !v.Pods[i].Down() {
						fn(i)
					}
					next()
				})
			}
			next()
		}
	}
	line := func(service string, mean time.Duration, severity telemetry.Severity, format string, args ...func() any) {
		v := s.Services[service]
		every(service, mean, func(i int) {
			var values []any
			for _, a := range args {
				values = append(values, a())
			}
			v.Pods[i].Logf(severity, format, values...)
		})
	}
	number := func(most int) func() any { return func() any { return rng.IntN(most) } }
	line("vllm", 60*time.Second, telemetry.Info, "No available shared memory broadcast block found in 60 seconds. This typically happens when some processes are hanging or doing some time-consuming work.")
	line("chat-api", 45*time.Second, telemetry.Error, "Failed to detach context")
	line("usage", 20*time.Second, telemetry.Info, "flushed %d usage rows", number(90))
	line("gateway", 30*time.Second, telemetry.Info, "config reloaded: %d routes unchanged", number(40))
	line("auth", 90*time.Second, telemetry.Info, "rotated %d signing keys", number(4))
	line("milvus", 40*time.Second, telemetry.Info, "compaction of segment %d finished", number(100000))
	line("postgres", 60*time.Second, telemetry.Info, "checkpoint complete: wrote %d buffers", number(3000))
	line("redis", 60*time.Second, telemetry.Info, "%d changes in 60 seconds. Saving...", number(9000))
	line("audit", 70*time.Second, telemetry.Warn, "entry %d has no tenant, stored under default", number(1000000))
	line("recommender", 120*time.Second, telemetry.Warn, "FutureWarning: Downcasting object dtype arrays is deprecated")
	// A job that warns in bursts.
	every("usage", 150*time.Second, func(int) {
		for range 8 + rng.IntN(10) {
			s.Services["usage"].Pods[0].Logf(telemetry.Warn, "row %d has no price yet, deferred", rng.IntN(1_000_000))
		}
	})
	// Nodes have other things to do too.
	for _, name := range []string{"node-1", "node-2", "node-3", "node-4", "node-5"} {
		n := s.Nodes[name]
		sim.Every(30*time.Second, func() {
			if !s.HoldNeighbours {
				n.Steal(1.5 + rng.Float64())
			}
		})
	}
	s.traffic()
}

// traffic makes the load go up and down within minutes, as users do.
func (s *System) traffic() {
	rng := s.World.Sim.Rand("traffic")
	level := 0.0
	s.World.Sim.Every(20*time.Second, func() {
		level = 0.8*level + 0.06*rng.NormFloat64()
		s.wave = math.Exp(level)
	})
}
