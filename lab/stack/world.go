// Package stack is an AI-serving system in virtual time, built from mechanisms:
// nodes whose processors are shared, containers with limits, networks that lose
// packets, pools, caches, and an inference engine that batches, pages its cache
// and preempts. A fault changes a mechanism; what it does to requests, and to
// those that wait for them, follows by itself.
package stack

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"inquest/lab/sim"
	"inquest/lab/telemetry"
)

// World is a cluster and what it tells of itself.
type World struct {
	Sim *sim.Sim
	Rec *telemetry.Recorder
	// ScrapeEvery is the time between two looks at all metrics; 15 s when zero.
	ScrapeEvery time.Duration

	nodes  []*Node
	meters []*telemetry.Meter
	net    *rand.Rand
}

// NewWorld returns an empty cluster.
func NewWorld(seed uint64) *World {
	s := sim.New(seed)
	return &World{Sim: s, Rec: telemetry.New(s.Rand("ids")), net: s.Rand("network")}
}

// Run lets the time pass, with a scrape at each interval.
func (w *World) Run(until time.Duration) {
	every := w.ScrapeEvery
	if every == 0 {
		every = 15 * time.Second
	}
	w.Sim.Every(every, func() {
		for _, m := range w.meters {
			m.Scrape(w.Sim.Now())
		}
	})
	w.Sim.Run(until)
}

// Meter returns a meter whose series are scraped.
func (w *World) Meter(s *telemetry.Source) *telemetry.Meter {
	m := w.Rec.Meter(s)
	w.meters = append(w.meters, m)
	return m
}

// Node is a machine.
type Node struct {
	Name string
	// Clock is how far its clock is ahead at the start, Drift how much that grows
	// in a second.
	Clock time.Duration
	Drift float64
	// Unreachable cuts it off from all other nodes.
	Unreachable bool
	// Source is what speaks of the node itself.
	Source *telemetry.Source

	world  *World
	cores  float64
	others float64 // cores that processes outside of the pods use
	pods   []*Pod
}

// AddNode adds a machine with so many cores.
func (w *World) AddNode(name string, cores float64) *Node {
	n := &Node{Name: name, world: w, cores: cores}
	n.Source = &telemetry.Source{
		Resource: telemetry.Attributes(nil).With("service.name", "node-exporter", "k8s.node.name", name, "host.name", name),
		Clock:    n.ahead,
	}
	m := w.Meter(n.Source)
	m.Gauge("k8s.node.cpu.utilization", "1", n.utilization)
	w.nodes = append(w.nodes, n)
	return n
}

func (n *Node) ahead(t time.Duration) time.Duration {
	return n.Clock + time.Duration(float64(t)*n.Drift)
}

// Steal sets how many cores processes outside of the pods use: a neighbour.
func (n *Node) Steal(cores float64) {
	n.others = cores
	n.share()
}

// share gives each pod what its limit allows, or less of it where the node has
// not as much: all give way in proportion.
func (n *Node) share() {
	limits := 0.0
	for _, p := range n.pods {
		limits += p.cpuLimit
	}
	factor := 1.0
	if left := n.cores - n.others; limits > left {
		factor = max(left, 0.002*n.cores) / limits
	}
	for _, p := range n.pods {
		if p.paused == 0 {
			p.CPU.SetCores(p.cpuLimit * factor)
		}
	}
	n.factor(factor)
}

func (n *Node) factor(f float64) {
	for _, p := range n.pods {
		p.factor = f
	}
}

// utilization is the share of the node's cores in use since the last look.
func (n *Node) utilization() float64 {
	used := min(n.others, n.cores)
	for _, p := range n.pods {
		used += p.cpuSince(&p.nodeSeen)
	}
	return min(1, used/n.cores)
}

// PodOptions say what a pod is.
type PodOptions struct {
	Service, Version, Language string
	Node                       *Node
	CPU                        float64 // limit, in cores
	Memory                     float64 // limit, in bytes
	Idle                       float64 // bytes used by the empty process
	Workers                    int     // requests served at once; 0 for no limit
}

// Pod is a running copy of a service, in a container.
type Pod struct {
	PodOptions
	Name   string
	CPU    *sim.CPU
	Source *telemetry.Source
	Meter  *telemetry.Meter
	// Workers hands out the threads that serve requests.
	Workers *sim.Pool
	// Untraced is a process without tracing: it passes no context on.
	Untraced bool
	// NoLogContext is a logger that does not know the trace.
	NoLogContext bool
	// HTTPPhases is a client that makes spans of DNS, TCP and TLS.
	HTTPPhases bool
	// Draining is a pod to which no more requests are sent.
	Draining bool
	// Lost counts spans that the process could not send.
	Lost *telemetry.Series

	world               *World
	node                *Node
	cpuLimit            float64
	factor              float64
	paused              int
	memory              float64 // bytes in use beyond Idle
	seen                usage
	nodeSeen            usage
	Restarts            int
	down                bool
	procs               map[*sim.Proc]uint64 // in the order in which they came
	serial              uint64
	oomKills            int
	retransmits, resets int
	reason              string // of the last end
	onCrash             []func()
	onStart             []func(*sim.Proc)
	kubelet             *telemetry.Meter
	gc                  gcState
	dropSpan            func() bool
	counters            map[string]*telemetry.Series
}

// usage is what a processor had done at a time.
type usage struct {
	at   time.Duration
	busy float64
	rate float64 // cores, since the look before
}

// AddPod starts a pod.
func (w *World) AddPod(o PodOptions, ordinal int) *Pod {
	h := fnv.New32a()
	fmt.Fprint(h, o.Service, ordinal)
	p := &Pod{
		PodOptions: o, Name: fmt.Sprintf("%s-%08x-%d", o.Service, h.Sum32(), ordinal), world: w, node: o.Node,
		CPU: w.Sim.NewCPU(o.CPU), cpuLimit: o.CPU, factor: 1, procs: map[*sim.Proc]uint64{},
	}
	workers := o.Workers
	if workers == 0 {
		workers = 1 << 20
	}
	p.Workers = w.Sim.NewPool(workers)
	p.Source = &telemetry.Source{
		Resource: telemetry.Attributes(nil).With(
			"service.name", o.Service, "service.namespace", "ai", "service.version", o.Version,
			"k8s.namespace.name", "ai", "k8s.pod.name", p.Name, "k8s.node.name", o.Node.Name,
			"telemetry.sdk.name", "opentelemetry", "telemetry.sdk.language", o.Language),
		Clock: o.Node.ahead,
	}
	p.Meter = w.Meter(p.Source)
	if o.Language != "" {
		p.Lost = p.Meter.Counter("otel.sdk.span.processed", "{span}", "error.type", "queue_full", "otel.component.type", "batching_span_processor")
	}
	o.Node.pods = append(o.Node.pods, p)
	o.Node.share()
	p.watch()
	return p
}

// watch adds what the kubelet tells of the container.
func (p *Pod) watch() {
	kubelet := &telemetry.Source{
		Resource: telemetry.Attributes(nil).With(
			"service.name", "kubelet", "k8s.namespace.name", "ai", "k8s.pod.name", p.Name, "k8s.node.name", p.node.Name),
		Clock: p.node.ahead,
	}
	m := p.world.Meter(kubelet)
	m.Gauge("k8s.pod.cpu.usage", "{cpu}", func() float64 { return p.cpuSince(&p.seen) })
	m.Gauge("k8s.pod.cpu_limit_utilization", "1", func() float64 { return min(1, p.seen.rate/p.cpuLimit) })
	m.CounterFunc("container.cpu.throttled.time", "s", func() float64 { _, starved := p.CPU.Usage(); return starved })
	m.Gauge("k8s.pod.memory.usage", "By", func() float64 { return p.Idle + p.memory })
	m.Gauge("k8s.pod.memory_limit_utilization", "1", func() float64 { return p.memoryShare() })
	m.CounterFunc("container.oom_events", "{event}", func() float64 { return float64(p.oomKills) })
	m.CounterFunc("tcp.retransmits", "{segment}", func() float64 { return float64(p.retransmits) })
	m.CounterFunc("tcp.resets", "{connection}", func() float64 { return float64(p.resets) })
	p.kubelet = m
	m.CounterFunc("k8s.container.restarts", "{restart}", func() float64 { return float64(p.Restarts) })
}

// cpuSince returns the cores used on average since the last look.
func (p *Pod) cpuSince(u *usage) float64 {
	now := p.world.Sim.Now()
	busy, _ := p.CPU.Usage()
	if now > u.at {
		u.rate = (busy - u.busy) / (now - u.at).Seconds()
	}
	u.at, u.busy = now, busy
	return u.rate
}

// Pause stops all that the pod computes for a time, as a collector of garbage
// does.
func (p *Pod) Pause(d time.Duration) {
	p.paused++
	p.CPU.SetCores(0)
	p.world.Sim.After(d, func() {
		if p.paused--; p.paused == 0 {
			p.CPU.SetCores(p.cpuLimit * p.factor)
		}
	})
}
