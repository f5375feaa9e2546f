// Package sim is a simulation in virtual time: processes that sleep, wait and
// share resources, thousands of times faster than a clock. The same program gives
// the same run, to the last bit: events at one time happen in the order in which
// they were arranged, and nothing here knows the real time.
package sim

import (
	"hash/fnv"
	"iter"
	"math/rand/v2"
	"time"
)

// Sim is a world with a clock of its own. One goroutine uses it, and all its
// processes run on that goroutine, one at a time.
type Sim struct {
	seed  uint64
	now   time.Duration
	seq   uint64
	queue queue
	procs map[*Proc]struct{}
	order uint64
}

// New returns a world at time 0 without processes.
func New(seed uint64) *Sim { return &Sim{seed: seed, procs: map[*Proc]struct{}{}} }

// Now is the time since the beginning.
func (s *Sim) Now() time.Duration { return s.now }

// Rand returns a source of random numbers that depends on the seed and the name
// alone: what one part of a world draws changes nothing for another.
func (s *Sim) Rand(name string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(name))
	return rand.New(rand.NewPCG(s.seed, h.Sum64()))
}

// After calls fn d from now; what lies back happens now.
func (s *Sim) After(d time.Duration, fn func()) { s.at(s.now+max(d, 0), fn) }

func (s *Sim) at(t time.Duration, fn func()) {
	s.seq++
	s.queue.push(event{t, s.seq, fn})
}

// Every calls fn at each multiple of step from now on, first after one step.
func (s *Sim) Every(step time.Duration, fn func()) {
	s.After(step, func() {
		fn()
		s.Every(step, fn)
	})
}

// Run lets the world go on until the given time.
func (s *Sim) Run(until time.Duration) {
	for len(s.queue) > 0 && s.queue[0].time <= until {
		e := s.queue.pop()
		s.now = e.time
		e.fn()
	}
	s.now = max(s.now, until)
}

// Close ends all processes where they stand.
func (s *Sim) Close() {
	for len(s.procs) > 0 {
		var first *Proc // in their order, for what they do on the way out
		for p := range s.procs {
			if first == nil || p.order < first.order {
				first = p
			}
		}
		first.Kill()
	}
	s.queue = nil
}

// Proc is a process: a function that runs in virtual time.
type Proc struct {
	Sim *Sim

	order  uint64
	next   func() (struct{}, bool)
	stop   func()
	yield  func(struct{}) bool
	waits  uint64 // counts the waits, so that a late wake-up is told from a right one
	parked bool
	woken  bool // the wait ended before its time
	killed bool
}

// killed unwinds a process that is killed.
type killedError struct{}

// Go starts a process at the present time, after what is already due.
func (s *Sim) Go(fn func(*Proc)) *Proc {
	s.order++
	p := &Proc{Sim: s, order: s.order}
	p.next, p.stop = iter.Pull(func(yield func(struct{}) bool) {
		p.yield = yield
		defer func() {
			if v := recover(); v != nil {
				if _, ok := v.(killedError); !ok {
					panic(v)
				}
			}
		}()
		if !p.killed {
			fn(p)
		}
	})
	s.procs[p] = struct{}{}
	s.After(0, p.resume)
	return p
}

func (p *Proc) resume() {
	if _, ok := p.Sim.procs[p]; !ok {
		return
	}
	p.parked = false
	if _, more := p.next(); !more {
		p.end()
	}
}

func (p *Proc) end() {
	delete(p.Sim.procs, p)
	p.stop()
}

// park gives the world over until something resumes the process.
func (p *Proc) park() {
	p.parked = true
	if !p.yield(struct{}{}) || p.killed {
		panic(killedError{})
	}
}

// Kill ends the process where it waits; its deferred calls run at once. A
// process must not kill itself: it returns instead.
func (p *Proc) Kill() {
	if _, ok := p.Sim.procs[p]; !ok || p.killed {
		return
	}
	p.killed = true
	p.waits++
	p.resume()
}

// Alive is false once the process has ended.
func (p *Proc) Alive() bool {
	_, ok := p.Sim.procs[p]
	return ok
}

// Now is the time since the beginning.
func (p *Proc) Now() time.Duration { return p.Sim.now }

// Sleep lets the given time pass.
func (p *Proc) Sleep(d time.Duration) { p.Wait(max(d, 0)) }

// Forever is a time limit that does not come.
const Forever time.Duration = -1

// Wait lets time pass until the function that [Proc.Waker] returned before is
// called, which it answers with true, or until d has passed.
func (p *Proc) Wait(d time.Duration) (woken bool) {
	wait := p.waits
	if !p.woken {
		if d != Forever {
			p.Sim.After(d, func() {
				if p.waits == wait && p.parked {
					p.resume()
				}
			})
		}
		p.park()
	}
	woken = p.woken
	p.woken = false
	p.waits++
	return woken
}

// Waker returns a function that ends the process's next wait, at the time at
// which it is called. Later calls, and calls after the wait, do nothing.
func (p *Proc) Waker() func() {
	wait := p.waits
	return func() {
		if p.waits != wait || p.woken {
			return
		}
		p.woken = true
		p.Sim.After(0, func() {
			if p.waits == wait && p.parked {
				p.resume()
			}
		})
	}
}
