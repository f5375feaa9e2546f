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
func (l *Link) packet(p *sim.Proc, w *World, first time.Duration, limit time.Duration) bool {
	start := p.Now()
	rto := first
	for range maxResends {
		if !l.Cut && w.net.Float64() >= l.Loss {
			p.Sleep(l.RTT / 2)
			return true
		}
		l.Retransmits++
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
func (l *Link) transfer(p *sim.Proc, w *World, bytes int, limit time.Duration) bool {
	if !l.packet(p, w, firstRTO, limit) {
		return false
	}
	// Of a long transfer some packets are lost, and a lost one costs a round trip:
	// those after it tell of the loss at once.
	if packets := float64(bytes) / 1400; packets > 1 && l.Loss > 0 {
		lost := math.Floor(packets*l.Loss + w.net.Float64())
		l.Retransmits += int(lost)
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
	trips := 1
	if l.TLS {
		trips += 2
	}
	for range 2 * trips {
		if !l.packet(c.P, c.Pod.world, synTimeout, limit) {
			l.Failures++
			return ErrTimeout
		}
	}
	if l.TLS && l.OCSP > 0 {
		c.P.Sleep(l.OCSP)
	}
	return nil
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
		if err := l.connect(c, left()); err != nil {
			return err
		}
		if !l.transfer(c.P, c.Pod.world, o.Request, left()) {
			return ErrTimeout
		}
		err := c.wait(to, o.Route, h, left())
		if !errors.Is(err, ErrTimeout) && !errors.Is(err, ErrReset) && !errors.Is(err, ErrRefused) {
			if !l.transfer(c.P, c.Pod.world, o.Answer, left()) {
				return ErrTimeout
			}
			l.done(c.P.Now())
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
