package system

import (
	"fmt"
	"math"
	"time"

	"inquest/lab/sim"
	"inquest/lab/stack"
	"inquest/lab/telemetry"
)

// confidence has a scorer tell how sure its answers are.
func (s *System) confidence(p *stack.Pod) {
	s.scores = append(s.scores, p.Meter.Histogram("model.confidence", "1", []float64{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9}, "model_name", "ctr"))
}

// configured is the model that the scorers should serve.
const configured = "ctr-2026-02"

// loads has a scorer tell which model it loads when it starts.
func (s *System) loads(p *stack.Pod) {
	p.OnStart(func(proc *sim.Proc) {
		v := s.ModelVersion[p]
		p.Log(telemetry.Info, "model loaded", "ai.model_load.configured_version", configured,
			"ai.model_load.real_path", "/models/"+v+"/model.pt", "ai.model_load.device", "cpu")
	})
}

// Check is what a look at the files and versions of a service found.
type Check struct {
	Time     time.Duration
	Service  string
	Version  string // that is served
	Mismatch bool
}

// check looks once a minute at what the scorers serve, as the recorder's truth
// check does, and notes what is new.
func (s *System) check() {
	told := false
	s.World.Sim.Every(time.Minute, func() {
		bad := ""
		for _, p := range s.Services["scorer"].Pods {
			if v := s.ModelVersion[p]; v != configured {
				bad = v
			}
		}
		if (bad != "") != told {
			told = !told
			s.Checks = append(s.Checks, Check{Time: s.World.Sim.Now(), Service: "scorer", Version: bad, Mismatch: told})
		}
	})
}

// row is what the model is given: two numbers in the scale of training, and what is
// wrong with them.
type row struct {
	age, spend              float64
	device                  string
	unseen, outOfRange, nan bool
	source                  string
}

func (s *System) recommend(c *stack.Ctx, span *stack.SpanOf, r *Request) error {
	dims(span, r)
	if err := s.canary(c); err != nil {
		return err
	}
	s.own(c, 6*time.Millisecond)
	if s.GhostUsers > 0 && s.users.Float64() < s.GhostUsers {
		r.User = fmt.Sprintf("x%08x", s.users.Uint32())
	}
	if err := s.call(c, "profiles", "/profile", [2]int{200, 1500}, func(c *stack.Ctx, _ *stack.SpanOf) error {
		s.own(c, 1500*time.Microsecond)
		return s.Postgres.Query(c, s.way("profiles", "postgres").Link, s.PostgresPool, "SELECT profiles", s.around(5*time.Millisecond, 0.3))
	}); err != nil {
		return err
	}
	var in row
	if err := s.call(c, "features", "/features", [2]int{300, 2500}, func(c *stack.Ctx, span *stack.SpanOf) (err error) {
		in, err = s.features(c, span, r)
		return err
	}); err != nil {
		return err
	}
	if err := s.call(c, "scorer", "/score", [2]int{2500, 900}, func(c *stack.Ctx, span *stack.SpanOf) error { return s.score(c, span, r, in) }); err != nil {
		return err
	}
	err := s.call(c, "items", "/items", [2]int{500, 9000}, func(c *stack.Ctx, _ *stack.SpanOf) error {
		s.own(c, 4*time.Millisecond)
		return nil
	})
	s.info(c, "recommended %d items", 12)
	return err
}

func (s *System) features(c *stack.Ctx, span *stack.SpanOf, r *Request) (row, error) {
	s.own(c, 2*time.Millisecond)
	hit, err := s.FeatureCache.Get(c, s.way("features", "feature-cache").Link, nil, userKey("f", r.User))
	if err != nil {
		c.Logf(telemetry.Warn, "feature cache unavailable: %v, reading from the store", err)
	}
	out := row{age: 38 + 11*s.rng.NormFloat64(), spend: math.Exp(3.2 + 0.6*s.rng.NormFloat64()), device: r.Device, source: "cache"}
	if !hit {
		out.source = "store"
		if err := s.Postgres.Query(c, s.way("features", "postgres").Link, s.FeaturePool, "SELECT features", s.around(18*time.Millisecond, 0.3)); err != nil {
			c.Logf(telemetry.Error, "cannot read features: %v", err)
			return out, stack.StatusError(503)
		}
		if r.User[0] != 'x' { // of unknown users there is nothing to keep
			_ = s.FeatureCache.Set(c, s.way("features", "feature-cache").Link, nil, userKey("f", r.User))
		}
	}
	s.spoil(c, r, &out)
	unseen, out2 := []string{}, []string{}
	if out.unseen {
		unseen = append(unseen, "device="+out.device)
	}
	if out.outOfRange {
		out2 = append(out2, "user_age")
	}
	span.Set("features.unseen", list(unseen...), "features.out_of_range", list(out2...),
		"features.deviations.spend", math.Abs(out.spend-28)/22, "features.deviations.user_age", math.Abs(out.age-38)/11)
	return out, nil
}

// spoil does to a row what the faults upstream do.
func (s *System) spoil(c *stack.Ctx, r *Request, x *row) {
	if r.Segment == "new" && s.rng.Float64() < s.DefaultFeatures {
		x.age, x.outOfRange = -1, true
		c.Logf(telemetry.Info, "feature user_age missing for %s, default value -1 used", r.User)
	}
	if s.rng.Float64() < s.UnseenDevices {
		x.device, x.unseen = "vision-headset", true
		c.Logf(telemetry.Warn, "unknown category 'vision-headset' in column device, mapped to OOV")
	}
	x.spend *= s.Scale
	if s.DriftRegion != "" && r.Region == s.DriftRegion {
		x.spend, x.age = x.spend*2.6, x.age-14
	}
	if s.rng.Float64() < s.NaN {
		x.nan = true
		c.Logf(telemetry.Warn, "RuntimeWarning: divide by zero encountered in scalar divide: clicks / impressions")
	}
}

func (s *System) score(c *stack.Ctx, span *stack.SpanOf, r *Request, x row) error {
	dims(span, r)
	span.Set("device.category", x.device)
	version := s.ModelVersion[c.Pod]
	s.own(c, 11*time.Millisecond)
	lo, hi, mean := math.Min(x.age, x.spend), math.Max(x.age, x.spend), (x.age+x.spend)/2
	span.Set("system.model_version", version, "batch.size", 1,
		"computation.input_stats.min_val", lo, "computation.input_stats.max_val", hi, "computation.input_stats.mean_val", mean,
		"computation.input_stats.has_nan", x.nan)
	if x.nan {
		span.Set("computation.output_stats.has_nan", true)
		c.Logf(telemetry.Error, "score is not a number: nan in input column ctr_7d")
		return stack.StatusError(422)
	}
	// The further a row lies from what was trained on, the less sure is the model.
	away := math.Hypot((x.age-38)/11, (math.Log(x.spend)-3.2)/0.6)
	confidence := 0.9 - 0.06*math.Max(0, away-0.8)
	if x.unseen {
		confidence -= 0.25
	}
	confidence -= s.Quality[c.Pod]
	confidence = math.Min(0.99, math.Max(0.05, confidence+0.03*s.rng.NormFloat64()))
	span.Set("computation.output_stats.has_nan", false, "computation.output_stats.mean_val", confidence/2, "model.confidence", confidence)
	for i, p := range s.Services["scorer"].Pods {
		if p == c.Pod {
			s.scores[i].Observe(confidence)
		}
	}
	return nil
}

func (s *System) vision(c *stack.Ctx, span *stack.SpanOf, r *Request) error {
	dims(span, r)
	k := s.VisionCard
	span.Set("input.size", r.ImageBytes)
	s.span(c, "decode image", 12*time.Millisecond)
	const largest = 2 << 20
	if float64(r.ImageBytes)*s.SizeFactor > largest {
		k.misses++
		span.Set("cache.hit", false)
		s.info(c, "image of %.0f bytes exceeds cache limit of %d, cache bypassed", float64(r.ImageBytes)*s.SizeFactor, largest)
		// What is not cached is computed at full size, and kept for the audit.
		const whole, kept = 1200 << 20, 90 * time.Second
		if err := k.take(c, whole); err != nil {
			return err
		}
		s.World.Sim.After(kept, func() { k.GPU.Free(whole) })
		return k.run(c, "encode", s.around(160*time.Millisecond, 0.15), 400<<20)
	}
	hit := s.images[r.ImageKey]
	span.Set("cache.hit", hit)
	if hit {
		k.hits++
		s.own(c, 3*time.Millisecond)
	} else {
		k.misses++
		if err := k.run(c, "encode", s.around(60*time.Millisecond, 0.15), 400<<20); err != nil {
			return err
		}
		if len(s.images) >= 200 {
			for key := range firstOf(s.order) {
				delete(s.images, key)
				s.order = s.order[1:]
			}
		}
		s.images[r.ImageKey] = true
		s.order = append(s.order, r.ImageKey)
	}
	return k.run(c, "classify", s.around(15*time.Millisecond, 0.15), 100<<20)
}

func firstOf(order []string) map[string]bool {
	if len(order) == 0 {
		return nil
	}
	return map[string]bool{order[0]: true}
}

// ingest has an actor cut a document, and stores its pieces.
func (s *System) ingest(c *stack.Ctx, span *stack.SpanOf, _ *Request) error {
	pieces := 4 + s.users.IntN(12)
	err := c.In("Chunker.split", telemetry.Internal, func(c *stack.Ctx, _ *stack.SpanOf) error {
		limit := 20 * time.Second
		if left := c.Left(); left != sim.Forever {
			limit = min(limit, left)
		}
		if !s.Actors.Acquire(c.P, limit) {
			c.Logf(telemetry.Error, "ray.exceptions.GetTimeoutError: Get timed out: some object(s) not ready.")
			return stack.StatusError(503)
		}
		defer s.Actors.Release()
		s.own(c, time.Duration(60+20*pieces)*time.Millisecond)
		s.answered++
		return nil
	})
	if err != nil {
		return err
	}
	span.Set("batch.size", pieces)
	if err := s.embed(c, pieces); err != nil {
		return err
	}
	err = s.Milvus.Query(c, s.way("ingest", "milvus").Link, nil, "insert", s.around(30*time.Millisecond, 0.2))
	s.info(c, "stored %d pieces", pieces)
	return err
}

// Stick has n actors hang in what they do, until the end.
func (s *System) Stick(n int) {
	for range n {
		s.World.Sim.Go(func(p *sim.Proc) {
			if s.Actors.Acquire(p, sim.Forever) {
				p.Wait(sim.Forever)
			}
		})
	}
	pod := s.Services["ingest"].Pods[0]
	s.World.Sim.Every(10*time.Second, func() {
		if n := s.Actors.Waiting(); n > 0 {
			pod.Logf(telemetry.Warn, "(raylet) %d tasks of actor Chunker are pending: waiting for a worker to become available", n)
		}
	})
}
