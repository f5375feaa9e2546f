package stack

import (
	"time"

	"inquest/lab/telemetry"
)

// GPU is a card: its memory, its speed, and what its driver tells.
type GPU struct {
	UUID  string
	Node  *Node
	Total float64 // bytes

	// Slow makes all computation take so many times longer; 1 is as it should be.
	Slow float64
	// Temperature in degrees Celsius at full load; above ThrottleAt the clock is
	// lowered.
	Temperature float64
	// XID is the last error that the driver told of, 0 for none; ECC counts errors
	// that it could not correct.
	XID, ECC float64

	allocated, reserved float64 // bytes
	busy                time.Duration
	seenAt, seenBusy    time.Duration
	util                float64
	model               *Pod
}

const (
	throttleAt = 87.0 // degrees
	fullClock  = 1980 // MHz
	idlePower  = 90.0 // W
	fullPower  = 650.0
)

// AddGPU adds a card to a node, used by a pod.
func (w *World) AddGPU(uuid string, n *Node, user *Pod, total float64) *GPU {
	g := &GPU{UUID: uuid, Node: n, Total: total, Slow: 1, Temperature: 62, model: user}
	exporter := &telemetry.Source{
		Resource: telemetry.Attributes(nil).With("service.name", "dcgm-exporter", "k8s.node.name", n.Name),
		Clock:    n.ahead,
	}
	m := w.Meter(exporter)
	labels := []any{"UUID", uuid, "gpu", "0", "Hostname", n.Name, "pod", user.Name, "namespace", "ai"}
	gauge := func(name string, read func() float64) { m.Gauge(name, "", read, labels...) }
	gauge("DCGM_FI_DEV_GPU_UTIL", func() float64 { return 100 * g.utilization() })
	gauge("DCGM_FI_DEV_FB_USED", func() float64 { return g.reserved / (1 << 20) })
	gauge("DCGM_FI_DEV_FB_FREE", func() float64 { return (g.Total - g.reserved) / (1 << 20) })
	gauge("DCGM_FI_DEV_GPU_TEMP", func() float64 { return 35 + (g.Temperature-35)*min(1, g.util+0.1) })
	gauge("DCGM_FI_DEV_POWER_USAGE", func() float64 { return idlePower + (fullPower-idlePower)*g.util/g.throttle() })
	gauge("DCGM_FI_DEV_SM_CLOCK", func() float64 { return fullClock / g.throttle() })
	gauge("DCGM_FI_DEV_XID_ERRORS", func() float64 { return g.XID })
	m.CounterFunc("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "", func() float64 { return g.ECC }, labels...)
	return g
}

// throttle is how many times slower heat makes the card.
func (g *GPU) throttle() float64 {
	if g.Temperature <= throttleAt {
		return 1
	}
	return 1 + (g.Temperature-throttleAt)/8
}

// time is how long the card takes for work that should take d.
func (g *GPU) time(d time.Duration) time.Duration {
	d = time.Duration(float64(d) * g.Slow * g.throttle())
	g.busy += d
	return d
}

func (g *GPU) utilization() float64 {
	now := g.Node.world.Sim.Now()
	if now > g.seenAt {
		g.util = min(1, float64(g.busy-g.seenBusy)/float64(now-g.seenAt))
	}
	g.seenAt, g.seenBusy = now, g.busy
	return g.util
}

// Alloc takes memory; it returns false where there is not as much in one piece.
// What was freed stays reserved, in pieces, and fragmentation is the share of it
// that is of no use. The rest is given back to the card before an allocation
// fails, as PyTorch does.
func (g *GPU) Alloc(bytes, fragmentation float64) bool {
	cached := (g.reserved - g.allocated) * (1 - fragmentation)
	if cached < bytes {
		if g.reserved+bytes > g.Total {
			g.reserved -= cached
		}
		if g.reserved+bytes > g.Total {
			return false
		}
		g.reserved += bytes
	}
	g.allocated += bytes
	return true
}

// Free gives memory back to the allocator, which keeps it.
func (g *GPU) Free(bytes float64) { g.allocated -= bytes }
