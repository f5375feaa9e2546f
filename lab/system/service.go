package system

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"inquest/lab/stack"
	"inquest/lab/telemetry"
)

// Service is a set of pods that do the same.
type Service struct {
	Name string
	Pods []*stack.Pod
	// Canary, when not 0, is the share of requests that the last pod gets; else all
	// get the same.
	Canary float64

	sys  *System
	turn int
	rng  *rand.Rand
	took map[tookKey]*telemetry.Series
	busy map[*stack.Pod]*int
}

type tookKey struct {
	pod    *stack.Pod
	route  string
	status int
}

// Way is how one service calls another.
type Way struct {
	*stack.Link
	Timeout time.Duration // of one attempt; 0 for the request's deadline only
	// Attempts is how often the call is tried; Backoff the time before the second,
	// which doubles.
	Attempts int
	Backoff  time.Duration
	// OnlyTo, when set, is the pod to which all that is said of the link applies;
	// the others are reached over a link without faults.
	OnlyTo *stack.Pod
	usual  *stack.Link
}

var secondBuckets = []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 30, 60}

// podSpec says what the pods of a service are.
type podSpec struct {
	version, language string
	nodes             []string // one pod on each
	cpu, memory, idle float64
	workers           int
}

func (s *System) addService(name string, o podSpec) *Service {
	v := &Service{Name: name, sys: s, took: map[tookKey]*telemetry.Series{}, busy: map[*stack.Pod]*int{}, rng: s.World.Sim.Rand("service " + name)}
	for i, node := range o.nodes {
		p := s.World.AddPod(stack.PodOptions{
			Service: name, Version: o.version, Language: o.language, Node: s.Nodes[node],
			CPU: o.cpu, Memory: o.memory, Idle: o.idle, Workers: o.workers,
		}, i)
		busy := new(int)
		v.busy[p] = busy
		v.Pods = append(v.Pods, p)
	}
	s.Services[name] = v
	s.names = append(s.names, name)
	return v
}

// http gives the pods the metrics of a server.
func (v *Service) http() *Service {
	for _, p := range v.Pods {
		busy := v.busy[p]
		p.Meter.Gauge("http.server.active_requests", "{request}", func() float64 { return float64(*busy) })
	}
	return v
}

// pick chooses the pod for a request: those that drain or have been down for a
// while get none.
func (v *Service) pick() *stack.Pod {
	if v.Canary > 0 && len(v.Pods) > 1 && v.rng.Float64() < v.Canary {
		if last := v.Pods[len(v.Pods)-1]; !last.Draining {
			return last
		}
	}
	n := len(v.Pods)
	if v.Canary > 0 && n > 1 {
		n--
	}
	for range n {
		v.turn++
		if p := v.Pods[v.turn%n]; !p.Draining {
			return p
		}
	}
	return v.Pods[v.turn%n]
}

func (v *Service) note(p *stack.Pod, route string, status int, d time.Duration) {
	k := tookKey{p, route, status}
	h := v.took[k]
	if h == nil {
		h = p.Meter.Histogram("http.server.request.duration", "s", secondBuckets,
			"http.request.method", "POST", "http.route", route, "http.response.status_code", status)
		v.took[k] = h
	}
	h.Observe(d.Seconds())
}

// way returns how one service calls another.
func (s *System) way(from, to string) *Way {
	k := from + " " + to
	w := s.Ways[k]
	if w == nil {
		w = &Way{Link: newLink(), Attempts: 1, usual: newLink()}
		s.Ways[k] = w
	}
	return w
}

func newLink() *stack.Link {
	return &stack.Link{RTT: 400 * time.Microsecond, KeepAlive: time.Minute, MaxIdle: 64}
}

func (w *Way) to(p *stack.Pod) *stack.Link {
	if w.OnlyTo != nil && w.OnlyTo != p {
		return w.usual
	}
	return w.Link
}

// call makes a request to a service, as often as its policy says.
func (s *System) call(c *stack.Ctx, to, route string, bytes [2]int, h stack.Handler) error {
	v := s.Services[to]
	w := s.way(c.Pod.Service, to)
	wait := w.Backoff
	var err error
	for attempt := range max(1, w.Attempts) {
		if attempt > 0 {
			if c.Left() == 0 {
				break
			}
			c.Logf(telemetry.Warn, "Retrying (Retry(total=%d)) after connection broken by '%v': %s", w.Attempts-attempt-1, err, route)
			c.P.Sleep(wait)
			wait *= 2
		}
		p := v.pick()
		o := stack.CallOptions{Name: "POST " + route, Route: "POST " + route, Timeout: w.Timeout, Request: bytes[0], Answer: bytes[1]}
		if attempt > 0 {
			o.Attributes = o.Attributes.With("http.request.resend_count", attempt)
		}
		if err = s.lossy(c).Call(w.to(p), p, o, v.serve(p, route, h)); err == nil || !retryable(err) {
			return err
		}
	}
	c.Logf(telemetry.Error, "call to %s failed: %v", to, err)
	return err
}

// lossy is the request as code sees it that loses its context on the way.
func (s *System) lossy(c *stack.Ctx) *stack.Ctx {
	if share := s.LoseContext[c.Pod]; share > 0 && s.rng.Float64() < share {
		out := *c
		out.Trace, out.Span = telemetry.TraceID{}, telemetry.SpanID{}
		return &out
	}
	return c
}

func retryable(err error) bool {
	var status stack.StatusError
	return !errors.As(err, &status) || status >= 500
}

// serve is the handler with what every server does around it.
func (v *Service) serve(p *stack.Pod, route string, h stack.Handler) stack.Handler {
	return func(c *stack.Ctx, s *stack.SpanOf) error {
		start := c.P.Now()
		busy := v.busy[p]
		*busy++
		defer func() { *busy-- }() // also when it is killed
		err := h(c, s)
		v.note(p, route, status(err), c.P.Now()-start)
		return err
	}
}

func status(err error) int {
	var st stack.StatusError
	switch {
	case err == nil:
		return 200
	case errors.As(err, &st):
		return int(st)
	case errors.Is(err, stack.ErrTimeout):
		return 504
	}
	return 502
}

// around draws a time with the given median.
func (s *System) around(median time.Duration, spread float64) time.Duration {
	return time.Duration(float64(median) * math.Exp(spread*s.rng.NormFloat64()))
}

// work computes for about so long.
func (s *System) work(c *stack.Ctx, median time.Duration) { c.Compute(s.around(median, 0.2)) }

// span runs work under a span of its own.
func (s *System) span(c *stack.Ctx, name string, median time.Duration) {
	_ = c.In(name, telemetry.Internal, func(c *stack.Ctx, _ *stack.SpanOf) error {
		s.work(c, median)
		return nil
	})
}

// list writes values as a list in JSON, as SDKs send lists.
func list(values ...string) string {
	out := "["
	for i, v := range values {
		if i > 0 {
			out += ","
		}
		out += strconv.Quote(v)
	}
	return out + "]"
}

func dims(s *stack.SpanOf, r *Request) {
	s.Set("user.segment", r.Segment, "cloud.region", r.Region)
}

func userKey(kind, id string) string { return fmt.Sprintf("%s:%s", kind, id) }
