package stack

import (
	"errors"
	"strings"
	"testing"
	"time"

	"inquest/lab/sim"
)

// twoPods calls a server once a second, for a minute; the server works for 100 ms.
func twoPods(t *testing.T, change func(*World, *Pod)) (w *World, server *Pod, errs map[error]int, took time.Duration) {
	t.Helper()
	w = NewWorld(1)
	t.Cleanup(w.Sim.Close)
	n := w.AddNode("node-1", 16)
	client := w.AddPod(PodOptions{Service: "client", Node: n, CPU: 2, Memory: 1 << 30}, 0)
	server = w.AddPod(PodOptions{Service: "server", Node: n, CPU: 2, Memory: 1 << 30, Idle: 1 << 28}, 0)
	change(w, server)
	errs = map[error]int{}
	w.Sim.Go(func(p *sim.Proc) {
		for range 60 {
			p.Sleep(time.Second)
			start := p.Now()
			c := &Ctx{P: p, Pod: client}
			errs[c.Call(&Link{RTT: time.Millisecond}, server, CallOptions{Name: "call", Route: "/x"}, func(c *Ctx, _ *SpanOf) error {
				c.Compute(100 * time.Millisecond)
				return nil
			})]++
			took += p.Now() - start
		}
	})
	w.Run(2 * time.Minute)
	return w, server, errs, took
}

func TestCrash(t *testing.T) {
	w, server, errs, _ := twoPods(t, func(w *World, p *Pod) {
		// The call of about the 10th second is under way.
		w.Sim.After(11050*time.Millisecond, func() { p.Crash("Error", 5*time.Second) })
	})
	reset, refused := 0, 0
	for err, n := range errs {
		if errors.Is(err, ErrReset) {
			reset += n
		}
		if errors.Is(err, ErrRefused) {
			refused += n
		}
	}
	if reset+refused < 4 || errs[nil] < 50 || server.Restarts != 1 {
		t.Errorf("%v, %d restarts", errs, server.Restarts)
	}
	for _, s := range w.Rec.Spans {
		if s.Source == server.Source && s.End > 7*time.Second && s.End < 11*time.Second {
			t.Errorf("a span of %s was never sent", s.End)
		}
	}
}

func TestMemory(t *testing.T) {
	w, server, errs, _ := twoPods(t, func(w *World, p *Pod) {
		w.Sim.Every(time.Second, func() {
			if w.Sim.Now() < 40*time.Second {
				p.Hold(40 << 20)
			}
		})
	})
	killed := 0
	for _, l := range w.Rec.Logs {
		if strings.HasPrefix(l.Body, "Memory cgroup out of memory: Killed process") && l.EventName == "" {
			killed++
		}
	}
	if killed != 1 || server.oomKills != 1 || server.Restarts != 1 || errs[nil] > 55 {
		t.Errorf("%d lines, %d kills, %d restarts, %v", killed, server.oomKills, server.Restarts, errs)
	}
}

func TestGC(t *testing.T) {
	_, _, _, base := twoPods(t, func(*World, *Pod) {})
	_, _, errs, took := twoPods(t, func(_ *World, p *Pod) {
		p.SetGC(GC{Volume: 5 << 20, PerRequest: 1 << 20, Pause: 100 * time.Millisecond, PerGiB: 400 * time.Millisecond})
	})
	if extra := took - base; errs[nil] != 60 || extra < 2300*time.Millisecond || extra > 2500*time.Millisecond {
		t.Errorf("%v, %s more, want 12 pauses of 200 ms", errs, extra)
	}
}
