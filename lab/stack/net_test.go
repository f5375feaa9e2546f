package stack

import (
	"testing"
	"time"

	"inquest/lab/sim"
	"inquest/lab/telemetry"
)

func TestLink(t *testing.T) {
	f := func(l Link, change func(client *Pod, far *Node)) (mean time.Duration, failed int, names map[string]int, client *Pod) {
		w := NewWorld(1)
		defer w.Sim.Close()
		near, far := w.AddNode("node-1", 8), w.AddNode("node-2", 8)
		client = w.AddPod(PodOptions{Service: "client", Node: near, CPU: 2}, 0)
		server := w.AddPod(PodOptions{Service: "server", Node: far, CPU: 2}, 0)
		change(client, far)
		l.RTT = time.Millisecond
		w.Sim.Go(func(p *sim.Proc) {
			for range 100 {
				start := p.Now()
				c := &Ctx{P: p, Pod: client}
				if c.Call(&l, server, CallOptions{Name: "call", Route: "/x", Timeout: 5 * time.Second}, func(*Ctx, *SpanOf) error { return nil }) != nil {
					failed++
				}
				mean += (p.Now() - start) / 100
			}
		})
		w.Run(time.Hour)
		names = map[string]int{}
		for _, s := range w.Rec.Spans {
			if s.Kind == telemetry.Internal {
				names[s.Name]++
			}
		}
		return mean, failed, names, client
	}
	none := func(*Pod, *Node) {}
	base, failed, names, _ := f(Link{}, none)
	if failed != 0 || base > 5*time.Millisecond || len(names) != 0 {
		t.Errorf("usually %s, %d failed, %v", base, failed, names)
	}
	mean, _, names, _ := f(Link{TLS: true, OCSP: 300 * time.Millisecond, DNS: 20 * time.Millisecond}, func(p *Pod, _ *Node) { p.HTTPPhases = true })
	if mean < 320*time.Millisecond || names["tls.handshake"] != 100 || names["dns.lookup"] != 100 || names["tcp.connect"] != 100 {
		t.Errorf("with TLS %s, %v", mean, names)
	}
	if _, failed, _, p := f(Link{Reset: 0.2}, none); failed < 10 || failed > 30 || p.resets != failed {
		t.Errorf("%d of 100 calls were reset, the count is %d", failed, p.resets)
	}
	if mean, _, _, p := f(Link{Loss: 0.05}, none); mean < 2*base || p.retransmits == 0 {
		t.Errorf("with loss %s, %d packets sent again", mean, p.retransmits)
	}
	if _, failed, _, _ := f(Link{}, func(_ *Pod, n *Node) { n.Cut(time.Minute) }); failed != 12 {
		t.Errorf("%d calls failed while the node was cut off for a minute", failed)
	}
}
