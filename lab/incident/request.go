package incident

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Time limits of the callers, in seconds.
const (
	modelTimeout  = 15.0
	vectorTimeout = 2.5
)

// request is a question and what becomes of it.
type request struct {
	index          uint64
	arrive         float64
	tenant         string
	conversation   string
	gateway        *Pod
	orchestrator   *Pod
	embedder       *Pod
	model          *Pod
	passages       int
	prompt, output int
	fails          bool

	// Durations in seconds.
	net                                       float64
	gatewayPre, gatewayPost, limiter          float64
	orchestratorPre, rerank, build, finish    float64
	embed, vector, vectorRetry                float64
	tokenise, render                          float64
	modelStart, modelEnd, vectorEnd, embedEnd float64

	job    *job
	status int
}

var tenants = []string{"acme", "globex", "initech", "umbrella", "hooli"}

// arrive draws the questions and lets them go as far as the model servers.
func (s *simulation) arrive() {
	gaps := s.rng(streamArrivals, 0)
	for t, i := gaps.ExpFloat64()/s.opt.Rate, uint64(0); t < s.end-2; i++ {
		s.requests = append(s.requests, s.draw(i, t))
		// Load breathes by a tenth over some minutes, as real load does.
		rate := s.opt.Rate * (1 + 0.1*math.Sin(t/47))
		t += gaps.ExpFloat64() / rate
	}
}

func (s *simulation) draw(index uint64, t float64) *request {
	r := s.rng(streamRequest, index)
	q := &request{index: index, arrive: t}
	q.tenant = tenants[r.IntN(len(tenants))]
	q.conversation = fmt.Sprintf("conv-%06x", r.Uint32()&0xffffff)
	q.gateway = s.sys.gateways[r.IntN(2)]
	q.orchestrator = s.orchestrator(r.Float64(), t)
	q.embedder = s.sys.embedders[r.IntN(2)]
	q.model = s.sys.models[r.IntN(3)]
	q.passages = 4 + r.IntN(5)
	q.prompt = 400 + q.passages*int(around(r, 210, 0.2))
	q.output = min(600, max(12, int(around(r, 150, 0.5))))
	document := 9000 + r.IntN(5000)
	if s.long(r.Float64(), t) {
		q.tenant, q.prompt = "initech", q.prompt+document
	}
	q.fails = s.fails(q.orchestrator, r.Float64())
	q.net = around(r, 0.0005, 0.3)
	q.gatewayPre, q.gatewayPost, q.limiter = around(r, 0.0016, 0.3), around(r, 0.0009, 0.3), around(r, 0.0008, 0.4)
	q.orchestratorPre, q.build, q.finish = around(r, 0.004, 0.3), around(r, 0.0025, 0.3), around(r, 0.005, 0.3)
	q.rerank = around(r, 0.003*float64(q.passages), 0.25)
	q.embed, q.tokenise, q.render = around(r, 0.015, 0.3), around(r, 0.004, 0.3), around(r, 0.002, 0.3)
	q.vector, q.vectorRetry = s.vectorTime(r, t), 0
	if q.vector > vectorTimeout {
		q.vector, q.vectorRetry = vectorTimeout, min(vectorTimeout, s.vectorTime(r, t))
	}
	s.reach(q)
	return q
}

// reach follows the question to the model server.
func (s *simulation) reach(q *request) {
	t := q.arrive + q.gatewayPre + q.limiter + q.net + q.orchestratorPre
	t += q.net*2 + q.embed
	q.embedEnd = t
	t += q.vector + q.vectorRetry
	q.vectorEnd = t
	if q.vectorFailed() || q.fails {
		return
	}
	t += q.rerank + q.build
	q.modelStart = t
	q.tokenise *= s.slowdown(q.model, t) // read and tokenised on the processor
	q.job = &job{
		arrive: t + q.net + q.tokenise, deadline: t + modelTimeout - q.net,
		prompt: q.prompt, output: q.output,
	}
}

func (q *request) vectorFailed() bool { return q.vectorRetry >= vectorTimeout }

func (q *request) timedOut() bool { return q.job != nil && q.job.aborted }

// serveModels runs the model servers on what reaches them.
func (s *simulation) serveModels() {
	byPod := map[*Pod]*engine{}
	for _, p := range s.sys.models {
		e := &engine{pod: p, slowdown: func(t float64) float64 { return s.slowdown(p, t) }}
		byPod[p] = e
		s.engines = append(s.engines, e)
	}
	for _, q := range s.requests {
		if q.job != nil {
			byPod[q.model].jobs = append(byPod[q.model].jobs, q.job)
		}
	}
	for _, e := range s.engines {
		e.run(s.end)
	}
	for _, q := range s.requests {
		if q.job == nil {
			continue
		}
		q.render *= s.slowdown(q.model, q.job.end)
		q.modelEnd = q.job.end + q.render + q.net
		if q.timedOut() {
			q.modelEnd = q.modelStart + modelTimeout
		}
	}
}

func (s *simulation) spend(p *Pod, t, seconds float64) {
	s.busy[p] = append(s.busy[p], event{t, seconds})
}

// ids draws the identifiers of one trace.
type ids struct{ r *rand.Rand }

func (i ids) fill(b []byte) {
	for k := range b {
		b[k] = byte(i.r.Uint32())
	}
	b[0] |= 1 // never all zero
}
