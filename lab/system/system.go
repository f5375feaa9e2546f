// Package system is an AI product in virtual time, put together from the mechanisms
// of package stack: a gateway, a chat over retrieval and two inference engines,
// recommendations from features, image recognition and an ingestion on actors; some
// twenty services with their caches, pools and databases on eight machines. What a
// fault may change are its fields.
package system

import (
	"fmt"
	"math/rand/v2"
	"time"

	"inquest/lab/sim"
	"inquest/lab/stack"
	"inquest/lab/telemetry"
)

// Options say which world is built. Zero fields get their defaults.
type Options struct {
	Seed uint64
	// Rate is in requests a second; 2 by default.
	Rate float64
	// Sizes are the lengths of generations that are drawn from; own distributions
	// without.
	Sizes []Sizes
	// Sampled is the share of traces that are kept; 1 when zero.
	Sampled float64
}

// System is the product. Its fields may be changed while it runs.
type System struct {
	World    *stack.World
	Nodes    map[string]*stack.Node
	Services map[string]*Service
	Ways     map[string]*Way // by "caller callee"

	// Load multiplies the rate of requests; Mix are the shares of chat, recommend
	// and vision, the rest is ingest.
	Load float64
	Mix  [3]float64

	Engines                  []*stack.Engine
	VisionCard, EmbedCard    *Card
	Redis, FeatureCache      *stack.Cache
	Postgres, Milvus         *stack.Database
	MilvusPool, PostgresPool *stack.ConnPool
	FeaturePool, SessionPool *stack.ConnPool
	Actors                   *sim.Pool
	TokenizerMax             int     // tokens, above which a prompt is cut; 0 for none
	Temperature              float64 // that the router sets; 0 leaves the user's
	MaxTokens                int
	History                  float64 // multiplies the length of prompts
	Inject                   float64 // share of chats that are attacks
	SizeFactor               float64 // by which the image cache takes images for larger
	GhostUsers               float64 // share of recommendations for users that do not exist
	DefaultFeatures          float64 // share of new users whose features get a default
	UnseenDevices            float64 // share of recommendations from devices that training never saw
	Scale                    float64 // of features, 1 as in training
	DriftRegion              string  // whose inputs have drifted
	NaN                      float64 // share of feature rows with a division by nought
	CanaryError              map[*stack.Pod]float64
	CanarySlow               map[*stack.Pod]float64
	LoseContext              map[*stack.Pod]float64
	ModelVersion             map[*stack.Pod]string // that a scorer serves
	Quality                  map[*stack.Pod]float64
	Slowdown                 map[string]float64 // of a service's own work
	users, rng               *rand.Rand
	opt                      Options
	names                    []string
	images                   map[string]bool
	// HoldNeighbours leaves the nodes' other processes as they are.
	HoldNeighbours bool
	// Checks are what looks at versions found.
	Checks   []Check
	answered int
	wave     float64
	order    []string
	scores   []*telemetry.Series
	pools    map[*stack.Pod]*stack.ConnPool
}

const gib = 1 << 30

// New builds the product; it does nothing before its world runs.
func New(o Options) *System {
	if o.Rate == 0 {
		o.Rate = 2
	}
	w := stack.NewWorld(o.Seed)
	w.Rec.SampleTraces = o.Sampled
	s := &System{
		World: w, Nodes: map[string]*stack.Node{}, Services: map[string]*Service{}, Ways: map[string]*Way{},
		Load: 1, Mix: [3]float64{0.5, 0.28, 0.15}, History: 1, SizeFactor: 1, Scale: 1,
		CanaryError: map[*stack.Pod]float64{}, CanarySlow: map[*stack.Pod]float64{}, LoseContext: map[*stack.Pod]float64{},
		ModelVersion: map[*stack.Pod]string{}, Quality: map[*stack.Pod]float64{}, Slowdown: map[string]float64{},
		users: w.Sim.Rand("users"), rng: w.Sim.Rand("work"), opt: o, wave: 1, images: map[string]bool{},
	}
	for i := range 5 {
		s.node(fmt.Sprintf("node-%d", i+1), 16)
	}
	for i := range 3 {
		s.node(fmt.Sprintf("gpu-%d", i+1), 32)
	}
	s.front()
	s.chatServices()
	s.recommendServices()
	s.visionServices()
	s.stores()
	s.policies()
	s.background()
	s.check()
	s.arrive()
	return s
}

func (s *System) node(name string, cores float64) {
	n := s.World.AddNode(name, cores)
	// No two clocks agree; NTP keeps them within some milliseconds.
	n.Clock = time.Duration(s.rng.NormFloat64() * float64(2*time.Millisecond))
	s.Nodes[name] = n
}

func (s *System) front() {
	s.addService("gateway", podSpec{version: "1.14.2", language: "go", nodes: []string{"node-1", "node-2"}, cpu: 2, memory: gib, idle: 90 << 20}).http()
	s.addService("auth", podSpec{version: "3.2.0", language: "go", nodes: []string{"node-2"}, cpu: 1, memory: gib / 2, idle: 40 << 20}).http()
	s.addService("usage", podSpec{version: "0.9.1", language: "go", nodes: []string{"node-5"}, cpu: 1, memory: gib / 2, idle: 60 << 20}).http()
	audit := s.addService("audit", podSpec{version: "2.0.3", language: "java", nodes: []string{"node-5"}, cpu: 1, memory: 2 * gib, idle: 700 << 20}).http()
	audit.Pods[0].NoLogContext = true
}

func (s *System) chatServices() {
	python := func(name, version string, cpu float64, nodes ...string) *Service {
		v := s.addService(name, podSpec{version: version, language: "python", nodes: nodes, cpu: cpu, memory: 2 * gib, idle: 600 << 20, workers: 32}).http()
		for _, p := range v.Pods {
			p.SetGC(stack.GC{Volume: 400 << 20, PerRequest: 3 << 20, Pause: 12 * time.Millisecond, PerGiB: 6 * time.Millisecond})
		}
		return v
	}
	api := python("chat-api", "5.8.0", 2, "node-1", "node-3")
	for _, p := range api.Pods {
		p.HTTPPhases = true
	}
	s.addService("session", podSpec{version: "1.3.3", language: "go", nodes: []string{"node-2"}, cpu: 1, memory: gib / 2, idle: 50 << 20}).http()
	python("retriever", "2.4.1", 2, "node-3", "node-4")
	embedder := python("embedder", "1.1.0", 4, "gpu-3")
	s.EmbedCard = s.card(embedder.Pods[0], "GPU-7d1e", 24*gib, 3*gib, "bge-large-en", s.EmbedCard)
	python("reranker", "1.0.7", 4, "node-4")
	python("guardrail", "4.1.0", 2, "node-3")
	s.Services["guardrail"].Pods[0].Counter("guardrail.blocked")
	for _, p := range api.Pods {
		p.Counter("llm.fallbacks")
	}
	python("tokenizer", "0.21.4", 2, "node-4")
	python("llm-router", "1.6.0", 2, "node-1")
	v := s.addService("vllm", podSpec{version: "0.11.2", language: "python", nodes: []string{"gpu-1", "gpu-2"}, cpu: 8, memory: 64 * gib, idle: 9 * gib}).http()
	for i, p := range v.Pods {
		p.Meter.Gauge("process_resident_memory_bytes", "By", func() float64 { return p.Idle })
		g := s.World.AddGPU(fmt.Sprintf("GPU-%04x", 0xa100+i), p.Host(), p, 80*gib)
		g.Alloc(68*gib, 0)
		e := s.World.NewEngine(stack.EngineOptions{
			Model: "llama-3.1-70b", MaxSequences: 64, StepTokens: 4096, Blocks: 1600, MaxContext: 8192,
			Weights: 24 * time.Millisecond, PerToken: 60 * time.Microsecond, Launch: 16 * time.Millisecond,
		}, p, g)
		e.LoadRate, e.WeightBytes = 6*gib, 62*gib
		e.Adapters = map[string]*stack.Adapter{"support-de": {Load: 800 * time.Millisecond}, "legal-v3": {Load: 800 * time.Millisecond}}
		e.Experts, e.ExpertSkew = 8, 0.05
		e.WatchExperts()
		s.allocator(p, g)
		s.Engines = append(s.Engines, e)
	}
}

// allocator tells of PyTorch's memory on a card.
func (s *System) allocator(p *stack.Pod, g *stack.GPU) {
	p.Meter.Gauge("pytorch.cuda.memory.allocated", "By", g.Allocated, "device", "cuda:0")
	p.Meter.Gauge("pytorch.cuda.memory.reserved", "By", g.Reserved, "device", "cuda:0")
}

func (s *System) recommendServices() {
	s.addService("recommender", podSpec{version: "7.2.0", language: "python", nodes: []string{"node-1", "node-2", "node-4"}, cpu: 2, memory: 2 * gib, idle: 500 << 20, workers: 24}).http()
	s.addService("profiles", podSpec{version: "2.2.0", language: "go", nodes: []string{"node-5"}, cpu: 1, memory: gib, idle: 70 << 20}).http()
	s.addService("features", podSpec{version: "3.0.5", language: "go", nodes: []string{"node-3"}, cpu: 2, memory: gib, idle: 120 << 20}).http()
	scorer := s.addService("scorer", podSpec{version: "2.7.0", language: "python", nodes: []string{"node-2", "node-4"}, cpu: 4, memory: 4 * gib, idle: 1200 << 20, workers: 16}).http()
	for _, p := range scorer.Pods {
		s.ModelVersion[p] = configured
		s.confidence(p)
		s.loads(p)
	}
	items := s.addService("items", podSpec{version: "1.8.8", language: "java", nodes: []string{"node-5"}, cpu: 2, memory: 2 * gib, idle: 800 << 20}).http()
	items.Pods[0].Untraced = true
}

func (s *System) visionServices() {
	vision := s.addService("vision", podSpec{version: "1.12.0", language: "python", nodes: []string{"gpu-3"}, cpu: 8, memory: 16 * gib, idle: 3 * gib, workers: 24}).http()
	s.VisionCard = s.card(vision.Pods[0], "GPU-7d1f", 24*gib, 12*gib, "siglip-so400m", nil)
	p := vision.Pods[0]
	p.Meter.CounterFunc("image_cache_hits", "{request}", func() float64 { return float64(s.VisionCard.hits) })
	p.Meter.CounterFunc("image_cache_misses", "{request}", func() float64 { return float64(s.VisionCard.misses) })
	ingest := s.addService("ingest", podSpec{version: "0.6.2", language: "python", nodes: []string{"node-5"}, cpu: 4, memory: 4 * gib, idle: 900 << 20}).http()
	s.Actors = s.World.Sim.NewPool(4)
	m := ingest.Pods[0].Meter
	m.Gauge("ray_actors", "", func() float64 { return 4 }, "State", "ALIVE", "Name", "Chunker")
	m.Gauge("ray_tasks", "", func() float64 { return float64(s.Actors.InUse()) }, "State", "RUNNING", "Name", "Chunker.split")
	m.Gauge("ray_tasks", "", func() float64 { return float64(s.Actors.Waiting()) }, "State", "PENDING_ACTOR_TASK_ARGS_FETCH", "Name", "Chunker.split")
	m.CounterFunc("ray_tasks_finished", "", func() float64 { return float64(s.answered) }, "Name", "Chunker.split")
}

// stores are the servers without tracing of their own, with their exporters.
func (s *System) stores() {
	plain := func(name, node string, cpu float64) *stack.Pod {
		p := s.addService(name, podSpec{version: "", language: "", nodes: []string{node}, cpu: cpu, memory: 8 * gib, idle: 2 * gib}).Pods[0]
		p.Untraced = true
		return p
	}
	s.Redis = s.World.NewCache(plain("redis", "node-2", 1), 50_000, 10*time.Minute)
	s.FeatureCache = s.World.NewCache(plain("feature-cache", "node-3", 1), 5_000, 5*time.Minute)
	s.Postgres = &stack.Database{Pod: plain("postgres", "node-5", 4), System: "postgresql"}
	s.Milvus = &stack.Database{Pod: plain("milvus", "node-4", 6), System: "milvus"}
	s.MilvusPool = s.Services["retriever"].Pods[0].NewConnPool("milvus", 12)
	s.PostgresPool = s.Services["profiles"].Pods[0].NewConnPool("postgres", 12)
	s.FeaturePool = s.Services["features"].Pods[0].NewConnPool("postgres-features", 10)
	s.SessionPool = s.Services["session"].Pods[0].NewConnPool("redis", 30)
}

func (s *System) policies() {
	set := func(from, to string, timeout time.Duration, attempts int) *Way {
		w := s.way(from, to)
		w.Timeout, w.Attempts, w.Backoff = timeout, attempts, 50*time.Millisecond
		return w
	}
	set("gateway", "auth", 2*time.Second, 2)
	set("gateway", "chat-api", 0, 1)
	set("chat-api", "session", 2*time.Second, 2)
	set("chat-api", "retriever", 5*time.Second, 2)
	set("chat-api", "guardrail", 3*time.Second, 1)
	set("chat-api", "tokenizer", 5*time.Second, 1)
	router := set("chat-api", "llm-router", 0, 1)
	router.TLS, router.DNS = true, 2*time.Millisecond
	set("llm-router", "vllm", 0, 1)
	set("retriever", "embedder", 3*time.Second, 2)
	set("retriever", "reranker", 3*time.Second, 1)
	set("recommender", "features", 2*time.Second, 2)
	set("recommender", "profiles", 2*time.Second, 2)
	set("recommender", "scorer", 3*time.Second, 2)
	set("recommender", "items", 2*time.Second, 2)
	set("ingest", "embedder", 5*time.Second, 2)
}

// Close ends all that runs.
func (s *System) Close() { s.World.Sim.Close() }

// info writes a log record of severity info.
func (s *System) info(c *stack.Ctx, format string, args ...any) {
	c.Logf(telemetry.Info, format, args...)
}
