package stack

import (
	"fmt"
	"math"
	"time"

	"inquest/lab/telemetry"
)

// Adapter is a set of low-rank weights beside the model's.
type Adapter struct {
	// Load is how long all requests wait at its first use.
	Load time.Duration
	// Broken changes nothing: the answers are those of the model alone, and
	// nothing tells of it.
	Broken bool

	loaded bool
}

// usualTemperature is the engine's own.
const usualTemperature = 0.7

// prepare decides what a request's answer will be like.
func (e *Engine) prepare(c *Ctx, g *Generation) error {
	if a := e.Adapters[g.Adapter]; a != nil {
		if !a.loaded {
			a.loaded = true
			e.loading += a.Load
			e.Pod.Logf(telemetry.Info, "Loaded new LoRA adapter: name '%s'", g.Adapter)
		}
		if !a.Broken {
			g.Effective = g.Adapter
		}
	} else if g.Adapter != "" && e.Adapters != nil {
		c.Logf(telemetry.Error, "The model `%s` does not exist.", g.Adapter)
		return StatusError(404)
	}
	if e.rng == nil {
		e.rng = c.Pod.world.Sim.Rand("sampling " + e.Pod.Name)
	}
	noise, lot := e.rng.NormFloat64(), e.rng.Float64()
	t := g.Temperature
	if t == 0 {
		t = usualTemperature
	}
	g.Entropy = max(0.02, (0.25+0.9*t)*(1+0.08*noise))
	g.Repetition = max(0, 0.04+0.01*noise)
	if t > 1.2 { // it finds its end later
		g.Output = int(float64(g.Output) * (1 + 0.8*(t-1.2)))
	}
	most := e.MaxContext - g.Prompt
	if g.MaxTokens > 0 {
		most = min(most, g.MaxTokens)
	}
	if lot < e.Degenerate {
		g.Output, g.Entropy, g.Repetition = most, 0.12+0.02*math.Abs(noise), min(0.95, 0.75+0.05*math.Abs(noise))
	}
	g.Finish = "stop"
	if g.Output >= most {
		g.Output, g.Finish = most, "length"
	}
	return nil
}

// adapterTime is how long the next step waits for adapters.
func (e *Engine) adapterTime() time.Duration {
	d := e.loading
	e.loading = 0
	return d
}

// ExpertShare is the share of tokens that go to expert k.
func (e *Engine) ExpertShare(k int) float64 {
	if k < 0 || k >= e.Experts {
		return 0
	}
	sum := 0.0
	for i := range e.Experts {
		sum += math.Pow(float64(i+1), -e.ExpertSkew)
	}
	return math.Pow(float64(k+1), -e.ExpertSkew) / sum
}

// expertPart is the part of a step that experts take.
const expertPart = 0.5

// imbalance is how many times longer a step takes because the busiest expert has
// more to do than the mean.
func (e *Engine) imbalance() float64 {
	if e.Experts == 0 {
		return 1
	}
	return 1 + expertPart*(e.ExpertShare(0)*float64(e.Experts)-1)
}

// WatchExperts adds the metric of the experts' shares.
func (e *Engine) WatchExperts() {
	for k := range e.Experts {
		e.Pod.Meter.Gauge("moe.expert.share", "1", func() float64 { return e.ExpertShare(k) }, "model_name", e.Model, "expert", fmt.Sprint(k))
	}
}
