package incident

import "math/rand/v2"

func (s *simulation) broken(t float64) bool { return t >= s.onset && s.opt.Fault != FaultNone }

// starved is the pod whose sidecar takes the processor.
func (s *simulation) starved() *Pod {
	if s.opt.Fault != FaultCPU {
		return nil
	}
	return s.sys.models[1]
}

// slowdown is how many times longer code on the processor takes in a pod. A
// container that gets a sixth of its processor time runs six times longer.
func (s *simulation) slowdown(p *Pod, t float64) float64 {
	if s.broken(t) && p == s.starved() {
		return 6
	}
	return 1
}

// vectorTime is how long the vector database takes for a query, in seconds.
func (s *simulation) vectorTime(r *rand.Rand, t float64) float64 {
	normal := around(r, 0.011, 0.3)
	worse := around(r, 0.9, 0.6)
	if s.opt.Fault == FaultVectorDB && s.broken(t) {
		return worse
	}
	return normal
}

// long reports whether a question at t comes with a whole document as context.
func (s *simulation) long(dice, t float64) bool {
	return s.opt.Fault == FaultKVCache && s.broken(t) && dice < 0.35
}

// rolloutTime is how long a deployment takes to move all traffic.
const rolloutTime = 25

// rollOut sets when the two versions of the orchestrator run.
func (s *simulation) rollOut() {
	for _, p := range s.sys.orchestratorsNext {
		p.from = s.end * 2 // never
		if s.opt.Fault == FaultBadDeploy {
			p.from = s.onset - 20 // it starts before it gets traffic
		}
	}
	if s.opt.Fault == FaultBadDeploy {
		for _, p := range s.sys.orchestrators {
			p.to = s.onset + rolloutTime + 30
		}
	}
}

// orchestrator picks the pod that answers a question at t.
func (s *simulation) orchestrator(dice float64, t float64) *Pod {
	list := s.sys.orchestrators
	if s.opt.Fault == FaultBadDeploy && t >= s.onset && (t >= s.onset+rolloutTime || dice*rolloutTime*2 < t-s.onset) {
		list = s.sys.orchestratorsNext
	}
	return list[int(dice*2)%2]
}

// fails reports whether the orchestrator's new version fails on a question: it
// expects a field that only some documents have.
func (s *simulation) fails(p *Pod, dice float64) bool {
	return p.Version == "2.5.0" && dice < 0.45
}
