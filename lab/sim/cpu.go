package sim

import (
	"container/heap"
	"math"
	"time"
)

// CPU is a number of processors that all running jobs share evenly; no job uses
// more than one. It stands for a container's share of a node: how much there is
// may change at any time.
type CPU struct {
	sim   *Sim
	cores float64

	jobs    cpuJobs
	virtual float64 // seconds of work done for each job that ran all the time
	last    time.Duration
	timer   uint64

	busy   float64 // core-seconds
	starve float64 // seconds in which jobs wanted more than there was
}

// NewCPU returns a processor of so many cores.
func (s *Sim) NewCPU(cores float64) *CPU { return &CPU{sim: s, cores: cores} }

// rate is how fast each job runs, at most 1.
func (c *CPU) rate() float64 {
	n := float64(len(c.jobs))
	if n == 0 {
		return 0
	}
	return math.Min(1, c.cores/n)
}

// advance does the work of the time that has passed.
func (c *CPU) advance() {
	dt := (c.sim.now - c.last).Seconds()
	c.last = c.sim.now
	if dt <= 0 || len(c.jobs) == 0 {
		return
	}
	r := c.rate()
	c.virtual += dt * r
	c.busy += dt * r * float64(len(c.jobs))
	if r < 1 {
		c.starve += dt
	}
}

// SetCores changes how much there is.
func (c *CPU) SetCores(cores float64) {
	c.advance()
	c.cores = cores
	c.schedule()
}

// Cores is how much there is.
func (c *CPU) Cores() float64 { return c.cores }

// Running is how many jobs there are.
func (c *CPU) Running() int { return len(c.jobs) }

// Usage returns the core-seconds used since the beginning, and the seconds in
// which some job was held up for want of a core.
func (c *CPU) Usage() (busy, starved float64) {
	c.advance()
	return c.busy, c.starve
}

// Run does work of so many core-seconds for the process.
func (c *CPU) Run(p *Proc, work time.Duration) {
	if work <= 0 {
		return
	}
	c.advance()
	j := &cpuJob{end: c.virtual + work.Seconds(), seq: c.sim.seq, wake: p.Waker()}
	heap.Push(&c.jobs, j)
	c.schedule()
	defer func() {
		if j.index >= 0 { // killed
			c.advance()
			heap.Remove(&c.jobs, j.index)
			c.schedule()
		}
	}()
	p.Wait(Forever)
}

// schedule arranges for the next job to end.
func (c *CPU) schedule() {
	c.timer++
	if len(c.jobs) == 0 || c.cores <= 0 {
		return
	}
	left := math.Max(0, c.jobs[0].end-c.virtual) / c.rate()
	timer := c.timer
	c.sim.After(time.Duration(math.Ceil(left*1e9)), func() {
		if timer != c.timer {
			return
		}
		c.advance()
		const rounding = 1e-9
		for len(c.jobs) > 0 && c.jobs[0].end <= c.virtual+rounding {
			heap.Pop(&c.jobs).(*cpuJob).wake()
		}
		c.schedule()
	})
}

type cpuJob struct {
	end   float64 // in virtual
	seq   uint64
	wake  func()
	index int // -1 when it has ended
}

// cpuJobs is a heap of jobs, the next to end first.
type cpuJobs []*cpuJob

func (h cpuJobs) Len() int { return len(h) }

func (h cpuJobs) Less(i, j int) bool {
	return h[i].end < h[j].end || h[i].end == h[j].end && h[i].seq < h[j].seq
}

func (h cpuJobs) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements [heap.Interface].
func (h *cpuJobs) Push(x any) {
	j := x.(*cpuJob)
	j.index = len(*h)
	*h = append(*h, j)
}

// Pop implements [heap.Interface].
func (h *cpuJobs) Pop() any {
	old := *h
	j := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	j.index = -1
	return j
}
