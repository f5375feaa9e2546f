package sim

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

const ms = time.Millisecond

func TestOrder(t *testing.T) {
	run := func() string {
		s := New(1)
		defer s.Close()
		var out strings.Builder
		for _, name := range []string{"a", "b"} {
			s.Go(func(p *Proc) {
				for range 3 {
					fmt.Fprintf(&out, "%s%d ", name, p.Now()/ms)
					p.Sleep(10 * ms)
				}
			})
		}
		s.After(10*ms, func() { out.WriteString("x ") })
		s.Every(15*ms, func() { out.WriteString("y ") })
		s.Run(20 * ms)
		return out.String()
	}
	if got, want := run(), "a0 b0 x a10 b10 y a20 b20 "; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWake(t *testing.T) {
	s := New(1)
	defer s.Close()
	var out []string
	note := func(p *Proc, what string, woken bool) {
		out = append(out, fmt.Sprintf("%s %v at %d", what, woken, p.Now()/ms))
	}
	s.Go(func(p *Proc) {
		wake := p.Waker()
		s.After(5*ms, wake)
		s.After(6*ms, wake) // too late, and not for the next wait
		note(p, "woken", p.Wait(Forever))
		note(p, "limit", p.Wait(10*ms))
		p.Waker()() // before the wait
		note(p, "early", p.Wait(10*ms))
		note(p, "again", p.Wait(10*ms))
	})
	s.Run(time.Second)
	if got, want := strings.Join(out, ", "), "woken true at 5, limit false at 15, early true at 15, again false at 25"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestKill(t *testing.T) {
	s := New(1)
	pool, cpu := s.NewPool(1), s.NewCPU(1)
	var out []string
	holder := s.Go(func(p *Proc) {
		pool.Acquire(p, Forever)
		defer pool.Release()
		p.Sleep(time.Hour)
	})
	queued := s.Go(func(p *Proc) {
		defer func() { out = append(out, "queued ends") }()
		if pool.Acquire(p, Forever) {
			defer pool.Release()
		}
		t.Error("a killed process goes on")
	})
	computing := s.Go(func(p *Proc) { cpu.Run(p, time.Hour) })
	last := s.Go(func(p *Proc) {
		pool.Acquire(p, Forever)
		defer pool.Release()
		out = append(out, fmt.Sprintf("last at %d", p.Now()/ms))
		p.Sleep(time.Hour)
	})
	never := s.Go(func(*Proc) { t.Error("it was killed before it began") })
	never.Kill()
	s.After(10*ms, queued.Kill)
	s.After(20*ms, holder.Kill)
	s.After(20*ms, computing.Kill)
	s.Run(time.Second)
	if got, want := strings.Join(out, ", "), "queued ends, last at 20"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if pool.InUse() != 1 || pool.Waiting() != 0 || cpu.Running() != 0 || holder.Alive() || !last.Alive() {
		t.Errorf("%d in use, %d wait, %d compute", pool.InUse(), pool.Waiting(), cpu.Running())
	}
	s.Close()
	if pool.InUse() != 0 || last.Alive() {
		t.Error("the end of the world leaves something behind")
	}
}

func TestPool(t *testing.T) {
	s := New(1)
	defer s.Close()
	pool := s.NewPool(1)
	var out []string
	for i, limit := range []time.Duration{Forever, 5 * ms, Forever, Forever} {
		s.Go(func(p *Proc) {
			if !pool.Acquire(p, limit) {
				out = append(out, fmt.Sprintf("%d gives up at %d", i, p.Now()/ms))
				return
			}
			out = append(out, fmt.Sprintf("%d from %d", i, p.Now()/ms))
			p.Sleep(10 * ms)
			pool.Release()
		})
	}
	s.After(12*ms, func() { pool.Resize(2) })
	s.Run(time.Second)
	if got, want := strings.Join(out, ", "), "0 from 0, 1 gives up at 5, 2 from 10, 3 from 12"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if pool.Waited != 3 || pool.TimedOut != 1 || pool.WaitTime != 27*ms {
		t.Errorf("%d waited %s, %d gave up", pool.Waited, pool.WaitTime, pool.TimedOut)
	}
}

func TestCPU(t *testing.T) {
	s := New(1)
	defer s.Close()
	cpu := s.NewCPU(2)
	var out []string
	job := func(name string, start, work time.Duration) {
		s.After(start, func() {
			s.Go(func(p *Proc) {
				cpu.Run(p, work)
				out = append(out, fmt.Sprintf("%s at %d", name, (p.Now()+ms/2)/ms))
			})
		})
	}
	job("a", 0, 30*ms)      // alone on a core until 10, then two thirds: 10 + 20/(2/3)
	job("b", 10*ms, 20*ms)  // as a
	job("c", 10*ms, 20*ms)  // as a
	job("d", 100*ms, 20*ms) // at half speed after 10
	s.After(110*ms, func() { cpu.SetCores(0.5) })
	s.After(200*ms, func() { cpu.SetCores(0) })
	job("e", 200*ms, 10*ms) // waits for a core
	s.After(300*ms, func() { cpu.SetCores(1) })
	s.Run(time.Second)
	if got, want := strings.Join(out, ", "), "a at 40, b at 40, c at 40, d at 130, e at 310"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	busy, starved := cpu.Usage()
	if math.Abs(busy-0.100) > 1e-6 || math.Abs(starved-0.150) > 1e-6 {
		t.Errorf("%v core-seconds used, %v s starved", busy, starved)
	}
}

// Means of waiting times are those of queueing theory: for one server with random
// arrivals and random work, first come first served, and evenly shared.
func TestQueues(t *testing.T) {
	const (
		arrivals = 8.0 // a second
		served   = 10.0
		n        = 40_000
	)
	s := New(3)
	defer s.Close()
	rng := s.Rand("load")
	pool, cpu := s.NewPool(1), s.NewCPU(1)
	var inPool, inCPU time.Duration
	s.Go(func(p *Proc) {
		for range n {
			p.Sleep(time.Duration(rng.ExpFloat64() / arrivals * 1e9))
			work := time.Duration(rng.ExpFloat64() / served * 1e9)
			s.Go(func(p *Proc) {
				start := p.Now()
				pool.Acquire(p, Forever)
				defer pool.Release()
				p.Sleep(work)
				inPool += p.Now() - start
			})
			s.Go(func(p *Proc) {
				start := p.Now()
				cpu.Run(p, work)
				inCPU += p.Now() - start
			})
		}
	})
	s.Run(n / arrivals * 2 * time.Second)
	const want = 1 / (served - arrivals)
	for name, got := range map[string]time.Duration{"pool": inPool, "processor": inCPU} {
		if mean := got.Seconds() / n; math.Abs(mean/want-1) > 0.1 {
			t.Errorf("the mean time in the %s is %v s, want %v", name, mean, want)
		}
	}
}

func BenchmarkSwitch(b *testing.B) {
	s := New(1)
	defer s.Close()
	for range 1000 {
		s.Go(func(p *Proc) {
			for {
				p.Sleep(ms)
			}
		})
	}
	b.ResetTimer()
	s.Run(time.Duration(b.N/1000+1) * ms)
}
