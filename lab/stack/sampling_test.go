package stack

import (
	"errors"
	"testing"
	"time"

	"inquest/lab/sim"
)

func TestSampling(t *testing.T) {
	one := func(change func(*Engine), g *Generation) error {
		w := NewWorld(1)
		defer w.Sim.Close()
		n := w.AddNode("node-1", 8)
		p := w.AddPod(PodOptions{Service: "vllm", Node: n, CPU: 8}, 0)
		e := w.NewEngine(EngineOptions{Model: "m"}, p, w.AddGPU("GPU-1", n, p, 80<<30))
		change(e)
		var err error
		w.Sim.Go(func(proc *sim.Proc) { err = e.Generate(&Ctx{P: proc, Pod: p}, g, func() {}) })
		w.Run(time.Hour)
		return err
	}
	none := func(*Engine) {}
	usual := &Generation{Prompt: 100, Output: 100, MaxTokens: 1000}
	hot := &Generation{Prompt: 100, Output: 100, MaxTokens: 1000, Temperature: 1.7}
	bad := &Generation{Prompt: 100, Output: 100, MaxTokens: 1000}
	skewed := &Generation{Prompt: 100, Output: 100}
	for _, err := range []error{
		one(none, usual), one(none, hot), one(func(e *Engine) { e.Degenerate = 1 }, bad),
		one(func(e *Engine) { e.Experts, e.ExpertSkew = 8, 1 }, skewed),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if usual.Finish != "stop" || hot.Finish != "stop" || hot.Entropy < 1.5*usual.Entropy || hot.Output <= usual.Output {
		t.Errorf("at a high temperature %+v, usually %+v", hot, usual)
	}
	if bad.Finish != "length" || bad.Output != 1000 || bad.Repetition < 0.5 || bad.Done < 5*usual.Done {
		t.Errorf("degenerate: %+v", bad)
	}
	if float64(skewed.Done) < 1.3*float64(usual.Done) {
		t.Errorf("with a busy expert %s, usually %s", skewed.Done, usual.Done)
	}
}

func TestAdapters(t *testing.T) {
	w := NewWorld(1)
	defer w.Sim.Close()
	n := w.AddNode("node-1", 8)
	p := w.AddPod(PodOptions{Service: "vllm", Node: n, CPU: 8}, 0)
	e := w.NewEngine(EngineOptions{Model: "m"}, p, w.AddGPU("GPU-1", n, p, 80<<30))
	e.Adapters = map[string]*Adapter{"a": {Load: 3 * time.Second}, "b": {Broken: true}}
	var gs []*Generation
	var errs []error
	w.Sim.Go(func(proc *sim.Proc) {
		for _, name := range []string{"a", "a", "b", "c"} {
			g := &Generation{Prompt: 100, Output: 10, Adapter: name}
			gs, errs = append(gs, g), append(errs, e.Generate(&Ctx{P: proc, Pod: p}, g, func() {}))
		}
	})
	w.Run(time.Hour)
	if first, second := gs[0].First-gs[0].Arrived, gs[1].First-gs[1].Arrived; first < 3*time.Second || second > time.Second {
		t.Errorf("the first use takes %s, the second %s", first, second)
	}
	if gs[0].Effective != "a" || gs[2].Effective != "" || errs[2] != nil || !errors.Is(errs[3], StatusError(404)) {
		t.Errorf("%q, %q, %v", gs[0].Effective, gs[2].Effective, errs)
	}
}
