package stack

import (
	"errors"
	"math"
	"time"

	"inquest/lab/sim"
	"inquest/lab/telemetry"
)

// Link is the way between two services. Packets that are lost are sent again
// after a time that doubles, as TCP does.
type Link struct {
	// RTT is the time there and back.
	RTT time.Duration
	// Loss is the share of packets that are lost, each way.
	Loss float64
	// Rate is in bytes a second; 0 for no bound.
	Rate float64
	// Cut loses all.
	Cut bool
	// TLS makes a new connection take two more round trips and, once, a check of
	// the certificate's revocation that takes OCSP.
	TLS  bool
	OCSP time.Duration
	// DNS is how long the name takes to look up for a new connection.
	DNS time.Duration
	// Reset is the share of calls whose connection breaks on the way back.
	Reset float64
	// KeepAlive is how long a connection that nobody uses stays open; 0 makes a
	// new one for each call.
	KeepAlive time.Duration
	// MaxIdle bounds the connections that are kept.
	MaxIdle int

	// Retransmits and Connects count since the beginning.
	Retransmits, Connects, Failures int

	idle []time.Duration // when each was used last
}

// Timeouts of TCP.
const (
	firstRTO   = 200 * time.Millisecond
	synTimeout = time.Second
	maxResends = 8
)

// packet takes the time of one flight, with what is lost sent again. It returns
// false when the other side is given up.
func (l *Link) packet(p *sim.Proc, pod *Pod, first time.Duration, limit time.Duration) bool {
	start := p.Now()
	rto := first
	for range maxResends {
		if !l.Cut && pod.world.net.Float64() >= l.Loss {
			p.Sleep(l.RTT / 2)
			return true
		}
		l.Retransmits++
		pod.retransmits++
		wait := rto
		if limit != sim.Forever {
			wait = min(wait, max(0, limit-(p.Now()-start)))
		}
		p.Sleep(wait)
		if wait < rto {
			return false
		}
		rto *= 2
	}
	return false
}

// transfer takes the time of so many bytes one way.
func (l *Link) transfer(p *sim.Proc, pod *Pod, bytes int, limit time.Duration) bool {
	if !l.packet(p, pod, firstRTO, limit) {
		return false
	}
	// Of a long transfer some packets are lost, and a lost one costs a round trip:
	// those after it tell of the loss at once.
	if packets := float64(bytes) / 1400; packets > 1 && l.Loss > 0 {
		lost := math.Floor(packets*l.Loss + pod.world.net.Float64())
		l.Retransmits += int(lost)
		pod.retransmits += int(lost)
		p.Sleep(time.Duration(lost) * l.RTT)
	}
	if l.Rate > 0 {
		p.Sleep(time.Duration(float64(bytes) / l.Rate * 1e9))
	}
	return true
}

// connect takes a connection that is open, or opens one.
func (l *Link) connect(c *Ctx, limit time.Duration) error {
	for len(l.idle) > 0 {
		last := l.idle[len(l.idle)-1]
		l.idle = l.idle[:len(l.idle)-1]
		if c.P.Now()-last <= l.KeepAlive {
			return nil
		}
	}
	l.Connects++
	phase := func(name string, fn func() error) error {
		if !c.Pod.HTTPPhases {
			return fn()
		}
		return c.In(name, telemetry.Internal, func(*Ctx, *SpanOf) error { return fn() })
	}
	if l.DNS > 0 {
		_ = phase("dns.lookup", func() error { c.P.Sleep(l.DNS); return nil })
	}
	trip := func(n int) error {
		for range 2 * n {
			if !l.packet(c.P, c.Pod, synTimeout, limit) {
				l.Failures++
				return ErrTimeout
			}
		}
		return nil
	}
	if err := phase("tcp.connect", func() error { return trip(1) }); err != nil || !l.TLS {
		return err
	}
	return phase("tls.handshake", func() error {
		err := trip(2)
		if err == nil {
			c.P.Sleep(l.OCSP)
		}
		return err
	})
}

func (l *Link) done(now time.Duration) {
	if l.KeepAlive > 0 && len(l.idle) < l.MaxIdle {
		l.idle = append(l.idle, now)
	}
}

// CallOptions say how a call is made.
type CallOptions struct {
	Name            string // of the client's span
	Route           string // at the server
	Timeout         time.Duration
	Request, Answer int // bytes
	// Attributes of the client's span.
	Attributes telemetry.Attributes
}

// Call makes a request over a link to a pod that runs h, and waits for the
// answer. When the time is over the caller goes on; the server may not notice.
func (c *Ctx) Call(l *Link, to *Pod, o CallOptions, h Handler) error {
	return c.In(o.Name, telemetry.Client, func(c *Ctx, s *SpanOf) error {
		s.Attributes = append(s.Attributes, o.Attributes...)
		s.Set("server.address", to.Service)
		limit := c.limit(o.Timeout)
		start := c.P.Now()
		left := func() time.Duration {
			if limit == sim.Forever {
				return sim.Forever
			}
			return max(0, limit-(c.P.Now()-start))
		}
		if c.unreachable(to, left()) {
			return ErrTimeout
		}
		if err := l.connect(c, left()); err != nil {
			return err
		}
		if !l.transfer(c.P, c.Pod, o.Request, left()) {
			return ErrTimeout
		}
		err := c.wait(to, o.Route, h, left())
		if !errors.Is(err, ErrTimeout) && !errors.Is(err, ErrReset) && !errors.Is(err, ErrRefused) {
			if !l.transfer(c.P, c.Pod, o.Answer, left()) {
				return ErrTimeout
			}
			l.done(c.P.Now())
		}
		if l.Reset > 0 && c.Pod.world.net.Float64() < l.Reset {
			err = ErrReset
		}
		if errors.Is(err, ErrReset) {
			c.Pod.resets++
			return err
		}
		s.Set("http.response.status_code", statusOf(err))
		return err
	})
}

// wait has a process of the server's serve the request, for at most limit.
func (c *Ctx) wait(to *Pod, route string, h Handler, limit time.Duration) error {
	var answer error
	answered := false
	wake := c.P.Waker()
	now := c.P.Now()
	c.P.Sim.Go(func(p *sim.Proc) {
		in := *c
		in.P = p
		if limit != sim.Forever {
			in.Deadline = now + limit
		}
		defer func() {
			if !answered { // killed: the connection breaks
				answer, answered = ErrReset, true
			}
			wake()
		}()
		answer = to.Serve(&in, route, h)
		answered = true
	})
	c.P.Wait(limit)
	if !answered {
		return ErrTimeout // the server goes on: most do not notice that nobody waits
	}
	return answer
}

// unreachable waits in vain for a pod on a node that is cut off, or from one.
func (c *Ctx) unreachable(to *Pod, limit time.Duration) bool {
	if c.Pod.node == to.node || !c.Pod.node.Unreachable && !to.node.Unreachable {
		return false
	}
	const resends, longest = 6, 127 * time.Second // of a SYN, and until the kernel gives up
	c.Pod.retransmits += resends
	if limit == sim.Forever {
		limit = longest
	}
	c.P.Sleep(min(limit, longest))
	return true
}

// Cut takes a node off the network for a time: its pods reach no other node, and
// after 40 s Kubernetes says so.
func (n *Node) Cut(d time.Duration) {
	n.Unreachable = true
	s := n.world.Sim
	if d > 40*time.Second {
		s.After(40*time.Second, func() {
			n.event(telemetry.Warn, "NodeNotReady", "Node "+n.Name+" status is now: NodeNotReady", "Node", n.Name)
		})
	}
	s.After(d, func() { n.Unreachable = false })
}
