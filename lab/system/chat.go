package system

import (
	"time"

	"inquest/lab/sim"
	"inquest/lab/stack"
	"inquest/lab/telemetry"
)

// patience is how long users wait.
const patience = 60 * time.Second

// ask is one user's request, from the gateway on. What users see is no telemetry.
func (s *System) ask(p *sim.Proc, r *Request) {
	gateway := s.Services["gateway"]
	pod := gateway.pick()
	c := &stack.Ctx{P: p, Pod: pod, RequestID: r.ID, Deadline: p.Now() + patience}
	route := "/v1/" + string(r.Kind)
	start := p.Now()
	_ = pod.Serve(c, "POST "+route, gateway.serve(pod, route, func(c *stack.Ctx, span *stack.SpanOf) (err error) {
		defer func() {
			if !pod.Down() {
				pod.Access(c, route, status(err), p.Now()-start)
			}
		}()
		dims(span, r)
		s.work(c, 2*time.Millisecond)
		if err := s.call(c, "auth", "/check", [2]int{400, 300}, func(c *stack.Ctx, _ *stack.SpanOf) error {
			s.work(c, 3*time.Millisecond)
			return nil
		}); err != nil {
			return err
		}
		switch r.Kind {
		case Chat:
			return s.call(c, "chat-api", "/chat", [2]int{3000, 4000}, func(c *stack.Ctx, span *stack.SpanOf) error { return s.chat(c, span, r) })
		case Recommend:
			return s.call(c, "recommender", "/recommend", [2]int{800, 6000}, func(c *stack.Ctx, span *stack.SpanOf) error { return s.recommend(c, span, r) })
		case Vision:
			return s.call(c, "vision", "/classify", [2]int{r.ImageBytes * 4 / 3, 900}, func(c *stack.Ctx, span *stack.SpanOf) error { return s.vision(c, span, r) })
		}
		return s.call(c, "ingest", "/documents", [2]int{60_000, 200}, func(c *stack.Ctx, span *stack.SpanOf) error { return s.ingest(c, span, r) })
	}))
}

func (s *System) chat(c *stack.Ctx, span *stack.SpanOf, r *Request) error {
	dims(span, r)
	if err := s.canary(c); err != nil {
		return err
	}
	s.own(c, 8*time.Millisecond)
	if err := s.call(c, "session", "/load", [2]int{200, 3000}, func(c *stack.Ctx, _ *stack.SpanOf) error {
		s.work(c, 1*time.Millisecond)
		_, err := s.Redis.Get(c, s.way("session", "redis").Link, s.SessionPool, userKey("session", r.User))
		return err
	}); err != nil {
		return err
	}
	if err := s.call(c, "retriever", "/search", [2]int{600, 9000}, s.search); err != nil {
		s.info(c, "answering without documents: %v", err)
	}
	blocked, err := s.guard(c, r)
	if err != nil {
		return err
	}
	prompt := int(float64(r.Prompt) * s.History)
	prompt, err = s.tokenize(c, prompt)
	if err != nil {
		return err
	}
	span.Set("gen_ai.request.model", "llama-3.1-70b")
	g, err := s.generate(c, r, prompt)
	if err != nil {
		return err
	}
	for n := 0; blocked && n < 2; n++ { // the answer does not pass: a safer prompt, and again
		s.info(c, "guardrail rejected the answer, fallback to safe-template-%d", n+1)
		c.Pod.Count("llm.fallbacks")
		if g, err = s.generate(c, r, prompt+400); err != nil {
			return err
		}
		if blocked, err = s.guard(c, r); err != nil {
			return err
		}
	}
	if blocked {
		span.Set("guardrail.refused", true)
	} else {
		span.Set("guardrail.refused", false)
	}
	span.Set("llm.output.entropy", g.Entropy, "llm.output.repetition", g.Repetition)
	s.own(c, 4*time.Millisecond)
	_ = s.call(c, "session", "/store", [2]int{3000, 100}, func(c *stack.Ctx, _ *stack.SpanOf) error {
		return s.Redis.Set(c, s.way("session", "redis").Link, s.SessionPool, userKey("session", r.User))
	})
	s.report(c, r, g)
	s.info(c, "chat done: %d prompt tokens, %d completion tokens", g.Prompt, g.Output)
	return nil
}

// own is a service's own work, as slow as it has been made.
func (s *System) own(c *stack.Ctx, d time.Duration) {
	if f := s.Slowdown[c.Pod.Service]; f > 0 {
		d = time.Duration(float64(d) * f)
	}
	s.work(c, d)
}

// canary is what a bad version does.
func (s *System) canary(c *stack.Ctx) error {
	if d := s.CanarySlow[c.Pod]; d > 0 {
		s.work(c, time.Duration(d*float64(time.Second)))
	}
	if share := s.CanaryError[c.Pod]; share > 0 && s.rng.Float64() < share {
		c.Logf(telemetry.Error, "Traceback (most recent call last): KeyError: 'response_schema'")
		return stack.StatusError(500)
	}
	return nil
}

func (s *System) search(c *stack.Ctx, _ *stack.SpanOf) error {
	s.own(c, 3*time.Millisecond)
	if err := s.embed(c, 1); err != nil {
		return err
	}
	if err := s.Milvus.Query(c, s.way("retriever", "milvus").Link, s.pool(c.Pod), "search", s.around(14*time.Millisecond, 0.25)); err != nil {
		c.Logf(telemetry.Error, "vector search failed: %v", err)
		return stack.StatusError(503)
	}
	return s.call(c, "reranker", "/rerank", [2]int{9000, 600}, func(c *stack.Ctx, _ *stack.SpanOf) error {
		s.own(c, 22*time.Millisecond)
		return nil
	})
}

// pool is the pool of vector connections of a pod: each has its own.
func (s *System) pool(p *stack.Pod) *stack.ConnPool {
	pods := s.Services["retriever"].Pods
	if p == pods[0] {
		return s.MilvusPool
	}
	if s.pools == nil {
		s.pools = map[*stack.Pod]*stack.ConnPool{}
	}
	if s.pools[p] == nil {
		s.pools[p] = p.NewConnPool("milvus", 12)
	}
	return s.pools[p]
}

func (s *System) embed(c *stack.Ctx, texts int) error {
	return s.call(c, "embedder", "/embed", [2]int{600 * texts, 4100 * texts}, func(c *stack.Ctx, span *stack.SpanOf) error {
		span.Set("batch.size", texts)
		s.own(c, 2*time.Millisecond)
		return s.EmbedCard.run(c, "encode", s.around(9*time.Millisecond, 0.15)+time.Duration(texts)*time.Millisecond, 200<<20)
	})
}

func (s *System) guard(c *stack.Ctx, r *Request) (blocked bool, err error) {
	err = s.call(c, "guardrail", "/check", [2]int{2000, 200}, func(c *stack.Ctx, span *stack.SpanOf) error {
		s.own(c, 14*time.Millisecond)
		share := 0.01
		if r.Injected {
			share = 0.92
		}
		blocked = s.rng.Float64() < share
		span.Set("guardrail.refused", blocked)
		if blocked {
			c.Pod.Count("guardrail.blocked")
			if r.Injected {
				c.Logf(telemetry.Warn, "prompt injection suspected: instruction override in user input, score %.2f", 0.8+0.2*s.rng.Float64())
			} else {
				c.Logf(telemetry.Warn, "blocked by policy: category %s", weighted(s.rng, []string{"medical", "legal"}, 0.5))
			}
		}
		return nil
	})
	return blocked, err
}

func (s *System) tokenize(c *stack.Ctx, prompt int) (int, error) {
	n := prompt
	err := s.call(c, "tokenizer", "/encode", [2]int{4 * prompt, 8 * prompt}, func(c *stack.Ctx, span *stack.SpanOf) error {
		c.Pod.Allocate(float64(prompt) * 20_000)
		s.own(c, 2*time.Millisecond+time.Duration(prompt)*3*time.Microsecond)
		most := 8192
		if s.TokenizerMax > 0 {
			most = s.TokenizerMax
			n = min(n, most)
		}
		span.Set("tokenization.max_length", most, "tokenization.length", n)
		return nil
	})
	return n, err
}

// generate asks one of the engines for an answer.
func (s *System) generate(c *stack.Ctx, r *Request, prompt int) (g *stack.Generation, err error) {
	temperature := 0.7
	err = s.call(c, "llm-router", "/v1/chat/completions", [2]int{4 * prompt, 4 * r.Output}, func(c *stack.Ctx, span *stack.SpanOf) error {
		span.Set("gen_ai.request.temperature", temperature)
		if s.Temperature > 0 {
			temperature = s.Temperature
		}
		s.own(c, 2*time.Millisecond)
		return s.call(c, "vllm", "/v1/chat/completions", [2]int{4 * prompt, 4 * r.Output}, func(c *stack.Ctx, span *stack.SpanOf) error {
			e := s.engine(c.Pod)
			span.Set("gen_ai.request.model", e.Model, "gen_ai.operation.name", "chat", "gen_ai.request.temperature", temperature)
			g = &stack.Generation{ID: r.ID, Prompt: prompt, Output: r.Output, Prefix: r.Prefix, Adapter: r.Adapter, Temperature: temperature, MaxTokens: 1000}
			if s.MaxTokens > 0 {
				g.MaxTokens = s.MaxTokens
			}
			g.Prefix = g.Prefix[:min(len(g.Prefix), prompt/prefixTokens)]
			err := e.Generate(c, g, func() { span.Event("first token") })
			if err != nil {
				return err
			}
			span.Set("gen_ai.response.model", e.Model, "gen_ai.usage.input_tokens", g.Prompt, "gen_ai.usage.output_tokens", g.Output,
				"gen_ai.usage.cache_read.input_tokens", g.Cached, "gen_ai.response.finish_reasons", list(g.Finish),
				"llm.request.queue_time", (g.Scheduled - g.Arrived).Seconds(), "moe.top_share", e.ExpertShare(0))
			if g.Effective != "" {
				span.Set("lora.adapter", g.Effective)
			} else {
				span.Set("lora.adapter", "base")
			}
			return nil
		})
	})
	return g, err
}

func (s *System) engine(p *stack.Pod) *stack.Engine {
	for _, e := range s.Engines {
		if e.Pod == p {
			return e
		}
	}
	return s.Engines[0]
}

// report tells other services of an answer; nobody waits for it.
func (s *System) report(c *stack.Ctx, r *Request, g *stack.Generation) {
	in := *c
	s.World.Sim.Go(func(p *sim.Proc) {
		in.P, in.Deadline = p, p.Now()+30*time.Second
		_ = s.call(&in, "usage", "/record", [2]int{500, 50}, func(c *stack.Ctx, _ *stack.SpanOf) error {
			s.work(c, 2*time.Millisecond)
			return s.call(c, "audit", "/append", [2]int{900, 50}, func(c *stack.Ctx, _ *stack.SpanOf) error {
				s.work(c, 4*time.Millisecond)
				s.info(c, "stored answer of %d tokens for %s", g.Output, r.User)
				return nil
			})
		})
	})
}
