package system

import (
	"math"
	"time"

	"inquest/lab/sim"
	"inquest/lab/stack"
	"inquest/lab/telemetry"
)

// Card is a model on a GPU that serves one batch at a time.
type Card struct {
	GPU   *stack.GPU
	Pod   *stack.Pod
	Model string
	// OnCPU has the model run on the processor; Leak is what a request leaves
	// behind, in bytes; Fragmentation is the allocator's.
	OnCPU               bool
	Leak, Fragmentation float64
	// Cold has the next requests compile their kernels first.
	Cold int

	turn         *sim.Pool
	hits, misses int
}

// slowOnCPU is how many times longer a processor takes.
const slowOnCPU = 25

func (s *System) card(p *stack.Pod, uuid string, total, weights float64, model string, _ *Card) *Card {
	k := &Card{Pod: p, Model: model, turn: s.World.Sim.NewPool(1)}
	k.GPU = s.World.AddGPU(uuid, p.Host(), p, total)
	k.GPU.Alloc(weights, 0)
	s.allocator(p, k.GPU)
	p.OnStart(func(proc *sim.Proc) {
		proc.Sleep(time.Duration(weights / (4 * gib) * 1e9))
		if k.OnCPU {
			p.Logf(telemetry.Warn, "CUDA is not available, falling back to CPU")
			p.Logf(telemetry.Info, "Loaded %s on cpu", model)
			return
		}
		p.Logf(telemetry.Info, "Loaded %s on cuda:0", model)
	})
	return k
}

func (k *Card) device() string {
	if k.OnCPU {
		return "cpu"
	}
	return "cuda:0"
}

// run computes for so long on the card, with so much memory for the time, under a
// span of the application, which sees the processor's side only.
func (k *Card) run(c *stack.Ctx, name string, d time.Duration, bytes float64) error {
	return c.In(name, telemetry.Internal, func(c *stack.Ctx, s *stack.SpanOf) error {
		s.Set("system.device", k.device(), "gen_ai.request.model", k.Model)
		if !k.turn.Acquire(c.P, c.Left()) {
			return stack.ErrTimeout
		}
		defer k.turn.Release()
		if k.OnCPU {
			c.Compute(slowOnCPU * d)
			return nil
		}
		if k.Cold > 0 {
			k.Cold--
			_ = c.In("compile kernels", telemetry.Internal, func(c *stack.Ctx, _ *stack.SpanOf) error {
				c.Logf(telemetry.Warn, "Triton kernel JIT compilation during inference: %s", name)
				c.P.Sleep(2500 * time.Millisecond)
				return nil
			})
		}
		if err := k.take(c, bytes); err != nil {
			return err
		}
		k.GPU.Compute(c, d)
		k.GPU.Free(bytes)
		if k.Leak > 0 {
			_ = k.GPU.Alloc(k.Leak, k.Fragmentation)
		}
		return nil
	})
}

// take has memory of the card, or fails as PyTorch does.
func (k *Card) take(c *stack.Ctx, bytes float64) error {
	if k.GPU.Alloc(bytes, k.Fragmentation) {
		return nil
	}
	g := k.GPU
	c.Logf(telemetry.Error, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate %.0f MiB. GPU 0 has a total capacity of %.2f GiB of which %.2f MiB is free. "+
		"Of the allocated memory %.2f GiB is allocated by PyTorch, and %.2f GiB is reserved by PyTorch but unallocated.",
		bytes/(1<<20), g.Total/gib, math.Max(0, g.Total-g.Reserved())/(1<<20), g.Allocated()/gib, (g.Reserved()-g.Allocated())/gib)
	return stack.StatusError(500)
}
