package stack

import (
	"time"

	"inquest/lab/sim"
	"inquest/lab/telemetry"
)

// Deploy replaces the pod's container by one of another version: it takes no new
// requests, ends those that it has, and starts again after d. Nothing is killed.
func (p *Pod) Deploy(version, image string, d time.Duration) {
	old := p.Source
	fresh := &telemetry.Source{Clock: old.Clock, Lost: old.Lost}
	for _, a := range old.Resource {
		if a.Name == "service.version" {
			a.Value = version
		}
		fresh.Resource = append(fresh.Resource, a)
	}
	p.Event(telemetry.Info, "Killing", "Stopping container "+p.Service)
	p.down, p.Draining = true, true
	p.world.Sim.After(d, func() {
		p.Source, p.Version = fresh, version
		p.Event(telemetry.Info, "Pulled", `Successfully pulled image "`+image+`"`)
		p.world.Sim.Go(func(proc *sim.Proc) {
			p.Meter.Restart(p.world.Sim.Now())
			p.Event(telemetry.Info, "Started", "Started container "+p.Service)
			p.Logf(telemetry.Info, "Started server process [1]")
			p.Logf(telemetry.Info, "%s %s is starting", p.Service, version)
			for _, fn := range p.onStart {
				fn(proc)
			}
			p.Logf(telemetry.Info, "Application startup complete.")
			p.down, p.Draining = false, false
		})
	})
}

// Event has Kubernetes tell of the pod.
func (p *Pod) Event(severity telemetry.Severity, reason, text string) {
	p.node.event(severity, reason, text, "Pod", p.Name)
}

// Host is the machine on which the pod runs.
func (p *Pod) Host() *Node { return p.node }

// Allocated and Reserved are what the allocator has given out, and what it has of
// the card, in bytes.
func (g *GPU) Allocated() float64 { return g.allocated }

// Reserved is what the allocator has of the card.
func (g *GPU) Reserved() float64 { return g.reserved }

// Compute uses the card for work that should take d.
func (g *GPU) Compute(c *Ctx, d time.Duration) { c.P.Sleep(g.time(d)) }

// Resize changes how many blocks the key-value cache has.
func (e *Engine) Resize(blocks int) { e.Blocks, e.kv.total = blocks, blocks }

// Share sets whether prompts' beginnings are found again; salt changes their
// hashes, so that nothing that was stored before is found.
func (e *Engine) Share(sharing bool, salt uint64) { e.kv.sharing, e.kv.salt = sharing, salt }

// Kernel writes a line of the machine's kernel.
func (n *Node) Kernel(severity telemetry.Severity, line string) {
	n.world.Rec.Log(telemetry.Log{
		Source: n.Source, Time: n.world.Sim.Now(), Severity: severity, Body: line,
		Attributes: telemetry.Attributes(nil).With("log.source", "kernel"),
	})
}

// DropSpans has the pod's exporter lose the spans for which lost returns true. The
// SDK counts them, as its own metrics do.
func (p *Pod) DropSpans(lost func() bool) {
	p.dropSpan = func() bool {
		if !lost() {
			return false
		}
		p.Lost.Add(1)
		return true
	}
}
