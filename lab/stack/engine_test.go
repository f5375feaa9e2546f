package stack

import (
	"strings"
	"testing"
	"time"

	"inquest/lab/sim"
)

// bench runs an engine alone under a load.
type load struct {
	rate    float64 // requests a second
	prompt  int
	output  int
	shared  int           // pieces of the prompt that all have
	limit   time.Duration // of the callers
	seconds int
}

type outcome struct {
	done, failed   int
	first, perStep time.Duration // means: to the first token, and between tokens
	e              *Engine
}

func runEngine(t *testing.T, o EngineOptions, l load, change func(*World, *Engine)) outcome {
	t.Helper()
	w := NewWorld(5)
	defer w.Sim.Close()
	n := w.AddNode("node-1", 64)
	p := w.AddPod(PodOptions{Service: "vllm", Node: n, CPU: 8, Memory: 64 << 30, Idle: 8 << 30}, 0)
	g := w.AddGPU("GPU-1", n, p, 80<<30)
	if !g.Alloc(70<<30, 0) {
		t.Fatal("no room for the weights")
	}
	o.Model = "m"
	e := w.NewEngine(o, p, g)
	if change != nil {
		change(w, e)
	}
	var out outcome
	rng := w.Sim.Rand("load")
	w.Sim.Go(func(proc *sim.Proc) {
		for i := range int(l.rate * float64(l.seconds)) {
			proc.Sleep(time.Duration(rng.ExpFloat64() / l.rate * 1e9))
			w.Sim.Go(func(proc *sim.Proc) {
				c := &Ctx{P: proc, Pod: p}
				if l.limit > 0 {
					c.Deadline = proc.Now() + l.limit
				}
				g := &Generation{Prompt: l.prompt, Output: l.output}
				for k := range l.prompt / prefixTokens {
					h := uint64(k)
					if k >= l.shared {
						h = uint64(i+1)<<32 + uint64(k)
					}
					g.Prefix = append(g.Prefix, h)
				}
				if err := e.Generate(c, g, func() {}); err != nil {
					out.failed++
					return
				}
				out.done++
				out.first += g.First - g.Arrived
				out.perStep += (g.Done - g.First) / time.Duration(max(1, g.Output-1))
			})
		}
	})
	w.Run(time.Duration(l.seconds)*time.Second + 10*time.Minute)
	if out.done > 0 {
		out.first /= time.Duration(out.done)
		out.perStep /= time.Duration(out.done)
	}
	out.e = e
	if len(e.running)+len(e.waiting) != 0 || e.kv.used != 0 {
		t.Errorf("when all is over %d run, %d wait, %d blocks are used", len(e.running), len(e.waiting), e.kv.used)
	}
	for _, p := range e.kv.pieces {
		if p.users != 0 {
			t.Errorf("a piece has %d users when all is over", p.users)
		}
	}
	return out
}

func TestEngine(t *testing.T) {
	usual := load{rate: 4, prompt: 1024, output: 200, seconds: 120}
	base := runEngine(t, EngineOptions{}, usual, nil)
	if base.done != 480 || base.failed != 0 || base.e.preempted != 0 {
		t.Fatalf("%d done, %d failed, %d preempted", base.done, base.failed, base.e.preempted)
	}
	t.Logf("first token %s, each next %s", base.first, base.perStep)
	if base.first < 20*time.Millisecond || base.first > 300*time.Millisecond || base.perStep < 9*time.Millisecond || base.perStep > 40*time.Millisecond {
		t.Errorf("first token after %s, then one each %s", base.first, base.perStep)
	}
	again := runEngine(t, EngineOptions{}, usual, nil)
	if again.first != base.first || again.perStep != base.perStep {
		t.Error("two runs of one seed differ")
	}

	// Each mechanism shows where it should.
	f := func(name string, o EngineOptions, l load, change func(*World, *Engine), check func(outcome) bool) {
		t.Helper()
		got := runEngine(t, o, l, change)
		if !check(got) {
			t.Errorf("%s: %d done, %d failed, %d preempted, first token %s, each next %s (usually %s, %s)",
				name, got.done, got.failed, got.e.preempted, got.first, got.perStep, base.first, base.perStep)
		}
	}
	f("a small cache preempts and delays", EngineOptions{Blocks: 700}, usual, nil, func(o outcome) bool {
		return o.done == 480 && o.e.preempted > 20 && o.first > 2*base.first
	})
	shared := usual
	shared.shared = 1
	shared.prompt = 1400
	cold := shared
	cold.shared = 0
	unshared := runEngine(t, EngineOptions{}, cold, nil)
	f("shared prefixes are found", EngineOptions{}, shared, nil, func(o outcome) bool {
		return o.e.kv.hit > o.e.kv.queried/3 && o.first < unshared.first && unshared.e.kv.hit == 0
	})
	f("without graphs each step launches kernels", EngineOptions{}, usual, func(_ *World, e *Engine) { e.Graphs = false }, func(o outcome) bool {
		return o.perStep > base.perStep+8*time.Millisecond
	})
	f("graphs that do not last are captured again", EngineOptions{}, usual, func(_ *World, e *Engine) { e.Recapture = 2 * time.Second }, func(o outcome) bool {
		return o.perStep > base.perStep*12/10
	})
	f("a hot card is slow", EngineOptions{}, usual, func(_ *World, e *Engine) { e.GPU.Temperature = 95 }, func(o outcome) bool {
		return o.perStep > base.perStep*15/10
	})
	f("little processor is slow", EngineOptions{}, usual, func(w *World, _ *Engine) { w.nodes[0].Steal(63.5) }, func(o outcome) bool {
		return o.perStep > base.perStep*11/10
	})
	f("a leak ends in errors", EngineOptions{}, usual, func(_ *World, e *Engine) { e.Leak = 60 << 20 }, func(o outcome) bool {
		return o.failed > 20 && o.e.outOfMemory > 0 && o.done > 60
	})
	f("fragments end in errors", EngineOptions{Activation: 4e6}, usual, func(_ *World, e *Engine) { e.Fragmentation = 1 }, func(o outcome) bool {
		return o.failed > 20 && o.e.outOfMemory > 0
	})
	timed := usual
	timed.limit = 5 * time.Second
	f("a stuck engine answers nobody", EngineOptions{}, timed, func(w *World, e *Engine) {
		w.Sim.After(time.Minute, func() { e.Stuck = true })
		w.Sim.After(3*time.Minute, func() { e.Stuck = false }) // then it drops them all
	}, func(o outcome) bool {
		return o.failed > 200 && o.done > 200
	})
	overload := timed
	overload.rate, overload.output = 8, 200
	f("who waits too long is dropped", EngineOptions{MaxSequences: 16}, overload, nil, func(o outcome) bool {
		// Most of the work goes to requests that are dropped in the end.
		return o.failed > 700 && o.done > 20 && o.e.kv.used == 0
	})
	long := usual
	long.prompt = 40_000
	f("what is too long is refused", EngineOptions{}, long, nil, func(o outcome) bool { return o.failed == 480 })
}

func TestEngineLife(t *testing.T) {
	usual := load{rate: 4, prompt: 1024, output: 200, seconds: 120}
	base := runEngine(t, EngineOptions{}, usual, nil)
	cpu := runEngine(t, EngineOptions{}, load{rate: 0.05, prompt: 1024, output: 200, seconds: 120}, func(_ *World, e *Engine) { e.Device = "cpu" })
	if cpu.done == 0 || cpu.perStep < 15*base.perStep {
		t.Errorf("on a processor a token takes %s, on a card %s", cpu.perStep, base.perStep)
	}
	var world *World
	var loaded, lines int
	died := runEngine(t, EngineOptions{}, usual, func(w *World, e *Engine) {
		world = w
		e.LoadRate, e.WeightBytes = 1<<30, 16<<30
		w.Sim.After(30*time.Second, func() { e.Pod.Crash("Error", time.Second) })
	})
	for _, l := range world.Rec.Logs {
		if l.Body == "Loading weights took 16.00 seconds" && l.Time == 47*time.Second {
			loaded++
		}
		if strings.HasPrefix(l.Body, "Engine 000: Avg prompt throughput: ") {
			lines++
		}
	}
	if loaded != 1 || lines < 60 || died.done < 400 || died.e.Pod.Restarts != 1 || died.first < 2*base.first {
		t.Errorf("%d loads, %d lines, %d done, %d restarts, first token %s", loaded, lines, died.done, died.e.Pod.Restarts, died.first)
	}
}
