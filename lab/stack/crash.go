package stack

import (
	"fmt"
	"slices"
	"time"

	"inquest/lab/sim"
	"inquest/lab/telemetry"
)

// unsent is how much of its telemetry a process holds before it sends it.
const unsent = 5 * time.Second

// OnCrash has fn called when the pod's processes have been killed.
func (p *Pod) OnCrash(fn func()) { p.onCrash = append(p.onCrash, fn) }

// OnStart has fn run when the container starts again; the pod takes requests when
// all such functions have returned.
func (p *Pod) OnStart(fn func(*sim.Proc)) { p.onStart = append(p.onStart, fn) }

// Down is whether the pod takes no requests.
func (p *Pod) Down() bool { return p.down }

// Crash kills the container's processes at the present time: calls in flight see
// [ErrReset], later ones [ErrRefused] until it has started again, after downFor.
// What it had told of itself in the last 5 s is lost. The reason is that of
// Kubernetes, such as Error.
func (p *Pod) Crash(reason string, downFor time.Duration) {
	if p.down {
		return
	}
	p.down = true
	// Not at once: one of its own processes may have called.
	p.world.Sim.After(0, func() { p.die(reason, downFor) })
}

func (p *Pod) die(reason string, downFor time.Duration) {
	now := p.world.Sim.Now()
	var all []*sim.Proc
	for proc := range p.procs {
		all = append(all, proc)
	}
	slices.SortFunc(all, func(a, b *sim.Proc) int { return int(p.procs[a]) - int(p.procs[b]) })
	for _, proc := range all {
		proc.Kill()
	}
	p.world.Rec.DropSince(p.Source, max(0, now-unsent))
	p.Meter.Down = true
	p.memory = 0
	for _, fn := range p.onCrash {
		fn()
	}
	if p.reason != reason {
		p.reason = reason
		p.kubelet.Gauge("kube_pod_container_status_last_terminated_reason", "", func() float64 {
			if p.reason == reason {
				return 1
			}
			return 0
		}, "reason", reason)
	}
	p.world.Sim.After(downFor, p.start)
}

// start brings the container up again.
func (p *Pod) start() {
	p.world.Sim.Go(func(proc *sim.Proc) {
		p.Restarts++
		p.Meter.Restart(p.world.Sim.Now())
		p.Meter.Down = false
		p.node.event(telemetry.Info, "Started", "Started container "+p.Service, "Pod", p.Name)
		p.Logf(telemetry.Info, "Started server process [1]")
		p.Logf(telemetry.Info, "Waiting for application startup.")
		for _, fn := range p.onStart {
			fn(proc)
		}
		p.Logf(telemetry.Info, "Application startup complete.")
		p.down = false
	})
}

// OOMKill is the kernel's end of the container for want of memory.
func (p *Pod) OOMKill() {
	if p.down {
		return
	}
	p.oomKills++
	pid := 1000 + 7*len(p.Name) + 13*p.oomKills
	rss := (p.Idle + p.memory) / 1024
	line := fmt.Sprintf("Memory cgroup out of memory: Killed process %d (python) total-vm:%.0fkB, anon-rss:%.0fkB, file-rss:%dkB, shmem-rss:0kB, UID:0 pgtables:%.0fkB oom_score_adj:985",
		pid, 1.6*rss, rss, 41216, rss/400)
	p.world.Rec.Log(telemetry.Log{Source: p.node.Source, Time: p.world.Sim.Now(), Severity: telemetry.Error, Body: line})
	p.node.event(telemetry.Warn, "OOMKilling", line, "Pod", p.Name)
	p.Crash("OOMKilled", 8*time.Second)
}

// event is one of Kubernetes, as a log record.
func (n *Node) event(severity telemetry.Severity, reason, text, kind, object string) {
	n.world.Rec.Log(telemetry.Log{
		Source: n.Source, Time: n.world.Sim.Now(), Severity: severity, Body: text, EventName: "k8s.event",
		Attributes: telemetry.Attributes(nil).With("k8s.event.reason", reason, "k8s.object.kind", kind, "k8s.object.name", object),
	})
}

func (p *Pod) memoryShare() float64 {
	if p.Memory == 0 {
		return 0
	}
	return (p.Idle + p.memory) / p.Memory
}

// Hold takes bytes of the container's memory until [Pod.Release] or the end of
// its process; above the limit the kernel kills it.
func (p *Pod) Hold(bytes float64) {
	p.memory += bytes
	if p.memoryShare() > 1 {
		p.OOMKill()
	}
}

// Release gives bytes back.
func (p *Pod) Release(bytes float64) { p.memory = max(0, p.memory-bytes) }

// GC says when a collector of garbage stops the pod, and for how long.
type GC struct {
	Volume     float64       // bytes allocated between two collections; 0 for none
	PerRequest float64       // bytes that a request allocates
	Pause      time.Duration // of a collection
	PerGiB     time.Duration // of what is alive, more
}

type gcState struct {
	GC
	allocated float64
	pauses    *telemetry.Series
}

// SetGC changes how the pod collects garbage.
func (p *Pod) SetGC(o GC) {
	p.gc.GC = o
	if p.gc.pauses == nil {
		p.gc.pauses = p.Meter.Histogram("python.gc.duration", "s", []float64{0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5})
	}
}

// allocate is what a request does to the heap.
func (p *Pod) allocate() { p.Allocate(p.gc.PerRequest) }

// Allocate makes so many bytes of garbage.
func (p *Pod) Allocate(bytes float64) {
	g := &p.gc
	if g.allocated += bytes; g.Volume == 0 || g.allocated < g.Volume {
		return
	}
	g.allocated = 0
	d := g.Pause + time.Duration(float64(g.PerGiB)*(p.Idle+p.memory)/(1<<30))
	g.pauses.Observe(d.Seconds())
	p.Pause(d)
}
