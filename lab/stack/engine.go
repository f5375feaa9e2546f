package stack

import (
	"math"
	"math/rand/v2"
	"time"

	"inquest/lab/sim"
	"inquest/lab/telemetry"
)

// EngineOptions are the settings of an inference engine and the costs of its
// work. Zero fields get the defaults of [NewEngine].
type EngineOptions struct {
	Model        string
	MaxSequences int // that run at once
	StepTokens   int // that one step computes
	Blocks       int // of the key-value cache
	MaxContext   int // tokens of prompt and answer

	Weights    time.Duration // a step reads the weights
	PerToken   time.Duration // of a prompt
	PerContext time.Duration // for a million tokens of context that a step reads
	Launch     time.Duration // of kernels, in a step without a captured graph
	Schedule   time.Duration // on the processor, for a step
	PerOutput  time.Duration // on the processor, for a token that is sent
	Capture    time.Duration // of a graph for a new size of batch
	Activation float64       // bytes for a token that a step computes
}

// Engine is an inference engine with continuous batching: each step decodes one
// token of every running request and computes a part of the prompts beside them.
// The latest request is thrown out and computed again when the cache is full.
type Engine struct {
	EngineOptions
	Pod *Pod
	GPU *GPU

	// Graphs is whether steps of a captured size run without launching kernels;
	// Recapture is how long a captured graph lasts, 0 for ever.
	Graphs    bool
	Recapture time.Duration
	// Fragmentation is the share of the allocator's free pieces that are of no use,
	// Leak is how many bytes a request leaves behind.
	Fragmentation, Leak float64
	// Stuck stops the engine: it takes requests and computes nothing.
	Stuck bool
	// Device is where it computes: on "cpu" a step takes 30 times as long and the
	// card is idle.
	Device string
	// LoadRate is how fast weights are read when it starts again, in bytes a
	// second, and WeightBytes how many there are.
	LoadRate, WeightBytes float64
	// Adapters are those that requests may name; nil lets all names pass.
	Adapters map[string]*Adapter
	// Experts is how many a mixture has, 0 for none; ExpertSkew gives expert k a
	// share in proportion to k to the power of -ExpertSkew.
	Experts    int
	ExpertSkew float64
	// Degenerate is the share of answers that repeat themselves without an end.
	Degenerate float64

	proc             *sim.Proc
	kv               *kvCache
	waiting, running []*Generation
	captured         map[int]time.Duration
	wake             func()
	metrics          *engineMetrics
	preempted        int
	leaked           float64
	rng              *rand.Rand
	loading          time.Duration // of adapters, due in the next step
	stepBytes        float64       // of the step under way
	outOfMemory      int
}

// Generation is a request in an engine.
type Generation struct {
	ID       string
	Prompt   int      // tokens
	Output   int      // tokens that will be made
	Prefix   []uint64 // hashes of the prompt's pieces of 512 tokens
	Adapter  string
	Deadline time.Duration

	Arrived, Scheduled, First, Done time.Duration
	Preempted                       int
	Cached                          int // tokens of the prompt that were found
	Failed                          error

	// Temperature and MaxTokens are the request's; zero is the engine's own
	// temperature, and no bound.
	Temperature float64
	MaxTokens   int
	// Finish is stop or length; Entropy (in nats) and Repetition (0 to 1) are of
	// the answer; Effective is the adapter that took part in it.
	Finish              string
	Entropy, Repetition float64
	Effective           string

	computed, generated, blocks int
	last                        time.Duration // when the last token was made
	held                        []*piece
	token, end                  func()
}

// NewEngine starts an engine in a pod, on a card.
func (w *World) NewEngine(o EngineOptions, p *Pod, g *GPU) *Engine {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	number := func(n *int, v int) {
		if *n == 0 {
			*n = v
		}
	}
	number(&o.MaxSequences, 128)
	number(&o.StepTokens, 8192)
	number(&o.Blocks, 20_000)
	number(&o.MaxContext, 32_768)
	def(&o.Weights, 9*time.Millisecond)
	def(&o.PerToken, 25*time.Microsecond)
	def(&o.PerContext, 40*time.Millisecond)
	def(&o.Launch, 14*time.Millisecond)
	def(&o.Schedule, 1500*time.Microsecond)
	def(&o.PerOutput, 40*time.Microsecond)
	def(&o.Capture, 350*time.Millisecond)
	if o.Activation == 0 {
		o.Activation = 1.2e6
	}
	e := &Engine{
		EngineOptions: o, Pod: p, GPU: g, Graphs: true,
		kv: newKVCache(o.Blocks), captured: map[int]time.Duration{},
	}
	e.metrics = newEngineMetrics(e)
	e.proc = w.Sim.Go(e.loop)
	e.rest(w)
	return e
}

// Generate makes a request's answer and calls token at its first token. It
// returns when the answer is done, the request failed, or the caller's time is
// over: then the engine drops the request at its next step.
func (e *Engine) Generate(c *Ctx, g *Generation, token func()) error {
	g.Arrived = c.P.Now()
	g.Deadline = c.Deadline
	if g.Prompt+g.Output > e.MaxContext {
		c.Logf(telemetry.Error, "This model's maximum context length is %d tokens. However, you requested %d tokens (%d in the messages, %d in the completion). Please reduce the length of the messages or completion.",
			e.MaxContext, g.Prompt+g.Output, g.Prompt, g.Output)
		return StatusError(400)
	}
	if err := e.prepare(c, g); err != nil {
		return err
	}
	g.token, g.end = token, c.P.Waker()
	e.waiting = append(e.waiting, g)
	if e.wake != nil {
		e.wake()
	}
	if !c.P.Wait(c.Left()) {
		g.Failed = ErrTimeout
	}
	return g.Failed
}

func (e *Engine) loop(p *sim.Proc) {
	for {
		if len(e.waiting)+len(e.running) == 0 || e.Stuck {
			e.wake = p.Waker()
			wait := sim.Forever
			if e.Stuck {
				wait = time.Second
			}
			p.Wait(wait)
			e.wake = nil
			continue
		}
		e.abort(p.Now())
		decode, prefill := e.schedule(p.Now())
		e.step(p, decode, prefill)
	}
}

// abort drops requests for which nobody waits.
func (e *Engine) abort(now time.Duration) {
	late := func(g *Generation) bool { return g.Failed != nil || g.Deadline != 0 && now >= g.Deadline }
	keep := e.waiting[:0]
	for _, g := range e.waiting {
		if late(g) {
			e.metrics.finished(g, "abort", now)
		} else {
			keep = append(keep, g)
		}
	}
	e.waiting = keep
	keep = e.running[:0]
	for _, g := range e.running {
		if late(g) {
			e.release(g)
			e.metrics.finished(g, "abort", now)
		} else {
			keep = append(keep, g)
		}
	}
	e.running = keep
}

func (e *Engine) release(g *Generation) {
	e.kv.give(g.blocks)
	e.kv.drop(g.held)
	g.blocks, g.held = 0, nil
}

// grow gives a request the blocks for n more tokens, and throws out later ones
// where there is no room. It returns false when it was thrown out itself.
func (e *Engine) grow(g *Generation, n int) bool {
	own := g.computed - len(g.held)*prefixTokens + g.generated + n
	need := (max(own, 0)+blockTokens-1)/blockTokens - g.blocks
	for need > 0 && !e.kv.take(need) {
		last := e.running[len(e.running)-1]
		e.running = e.running[:len(e.running)-1]
		e.release(last)
		// What it has made so far is computed again as a part of its prompt.
		last.computed = 0
		last.Preempted++
		e.preempted++
		e.waiting = append([]*Generation{last}, e.waiting...)
		if last == g {
			return false
		}
	}
	if need > 0 {
		g.blocks += need
	}
	return true
}

// target is how many tokens have to be computed before the next one is made.
func (g *Generation) target() int {
	if g.Preempted > 0 {
		return g.Prompt + g.generated
	}
	return g.Prompt
}

// schedule chooses what the next step computes.
func (e *Engine) schedule(now time.Duration) (decode []*Generation, prefill map[*Generation]int) {
	budget := e.StepTokens
	prefill = map[*Generation]int{}
	for i := 0; i < len(e.running) && budget > 0; i++ {
		g := e.running[i]
		if g.computed < g.target() {
			n := min(budget, g.target()-g.computed)
			if !e.grow(g, n) {
				break
			}
			prefill[g] = n
			budget -= n
			continue
		}
		if !e.grow(g, 1) {
			break
		}
		decode = append(decode, g)
		budget--
	}
	for len(e.waiting) > 0 && len(e.running) < e.MaxSequences && budget > 0 {
		g := e.waiting[0]
		if g.computed == 0 && g.held == nil {
			g.held, g.computed = e.kv.share(g.Prefix, g.Prompt)
			if g.Preempted == 0 {
				g.Cached = g.computed
			}
		}
		n := min(budget, g.target()-g.computed)
		need := (n + blockTokens - 1) / blockTokens
		// One block in twenty is left for those that run.
		if e.kv.used+need > e.kv.total*19/20 && len(e.running) > 0 || !e.kv.take(need) {
			e.kv.drop(g.held)
			g.held, g.computed = nil, 0
			break
		}
		g.blocks += need
		e.waiting = e.waiting[1:]
		e.running = append(e.running, g)
		if g.Scheduled == 0 {
			g.Scheduled = now
		}
		prefill[g] = n
		budget -= n
	}
	return decode, prefill
}

// graphSize is the size of batch whose graph serves n sequences.
func graphSize(n int) int {
	if n <= 4 {
		return n
	}
	return (n + 7) / 8 * 8
}

// step computes and sends tokens.
func (e *Engine) step(p *sim.Proc, decode []*Generation, prefill map[*Generation]int) {
	if len(decode) == 0 && len(prefill) == 0 {
		p.Sleep(time.Millisecond) // all wait for room that only time brings
		return
	}
	tokens, context := len(decode), 0
	for _, g := range decode {
		context += g.computed + g.generated
	}
	for _, g := range e.running { // in their order
		if n := prefill[g]; n > 0 {
			tokens += n
			context += g.computed / 8
		}
	}
	e.Pod.CPU.Run(p, e.Schedule)
	d := e.Weights + time.Duration(tokens-len(decode))*e.PerToken + time.Duration(float64(e.PerContext)*float64(context)/1e6)
	d = time.Duration(float64(d)*e.imbalance()) + e.adapterTime()
	d += e.launch(p.Now(), len(decode), len(prefill) > 0)
	bytes := float64(tokens) * e.Activation
	if !e.GPU.Alloc(bytes, e.Fragmentation) {
		e.memoryError(p, bytes)
		return
	}
	e.stepBytes = bytes
	if e.Device == "cpu" {
		p.Sleep(slowCPU * d)
	} else {
		p.Sleep(e.GPU.time(d))
	}
	e.GPU.Free(bytes)
	e.stepBytes = 0
	if sent := len(decode); sent > 0 {
		e.Pod.CPU.Run(p, time.Duration(sent)*e.PerOutput)
	}
	e.advance(p.Now(), decode, prefill)
}

// launch is the time that kernels take to start: none of note with a captured
// graph, and much while one is captured.
func (e *Engine) launch(now time.Duration, sequences int, prompts bool) time.Duration {
	if !e.Graphs || prompts {
		return e.Launch
	}
	size := graphSize(sequences)
	at, ok := e.captured[size]
	if ok && (e.Recapture == 0 || now-at < e.Recapture) {
		return 0
	}
	e.captured[size] = now
	if ok || e.Pod.Restarts > 0 {
		e.Pod.Logf(telemetry.Warn, "Triton kernel JIT compilation during inference: decode_bs%d. This causes a latency spike.", size)
	}
	return e.Capture
}

// advance notes what a step made.
func (e *Engine) advance(now time.Duration, decode []*Generation, prefill map[*Generation]int) {
	done := map[*Generation]bool{}
	made := func(g *Generation) {
		g.generated++
		e.metrics.generated.Add(1)
		if g.generated == 1 {
			g.First = now
			e.metrics.first(g)
			g.token()
		}
		if g.generated >= g.Output {
			done[g] = true
		}
	}
	for _, g := range append([]*Generation(nil), e.running...) {
		n := prefill[g]
		if n == 0 {
			continue
		}
		g.computed += n
		e.metrics.prompt.Add(float64(n))
		if g.computed >= g.target() {
			made(g)
		}
	}
	for _, g := range decode {
		made(g)
	}
	if len(decode) > 0 {
		e.metrics.tokenTime(decode, now)
	}
	keep := e.running[:0]
	for _, g := range e.running {
		if !done[g] {
			keep = append(keep, g)
			continue
		}
		e.release(g)
		e.kv.keep(g.Prefix, g.Cached, g.Prompt)
		g.Done = now
		e.metrics.finished(g, g.Finish, now)
		if e.Leak > 0 && e.GPU.Alloc(e.Leak, e.Fragmentation) {
			e.leaked += e.Leak
		}
		g.end()
	}
	e.running = keep
}

// memoryError is what a step does that finds no memory: all its requests fail.
func (e *Engine) memoryError(p *sim.Proc, bytes float64) {
	e.outOfMemory++
	free := e.GPU.Total - e.GPU.reserved
	e.Pod.Logf(17, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate %.0f MiB. GPU 0 has a total capacity of %.2f GiB of which %.2f MiB is free. "+
		"Of the allocated memory %.2f GiB is allocated by PyTorch, and %.2f GiB is reserved by PyTorch but unallocated.",
		bytes/(1<<20), e.GPU.Total/(1<<30), free/(1<<20), e.GPU.allocated/(1<<30), (e.GPU.reserved-e.GPU.allocated)/(1<<30))
	for _, g := range e.running {
		e.release(g)
		g.Failed = StatusError(500)
		e.metrics.finished(g, "error", p.Now())
		g.end()
	}
	e.running = nil
	p.Sleep(50 * time.Millisecond)
}

// Load is the share of the cache that running requests hold.
func (e *Engine) Load() float64 { return math.Min(1, e.kv.usage()) }
