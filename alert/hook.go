package alert

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	firstBackoff = time.Second
	mostBackoff  = 5 * time.Minute
	// mostWait bounds what a receiver may ask for with Retry-After.
	mostWait = time.Hour
	// flushMessages is how many groups are told singly when the alerter closes;
	// the others are merged, so that little is left to be sent.
	flushMessages = 5
)

// sender tells the events of one hook, one message at a time.
type sender struct {
	hook    Hook
	service service
	client  *http.Client
	redact  redactor
	limit   *limiter
	log     *slog.Logger
	groups  *groups

	wake    chan struct{} // a group has something to tell; one is enough
	closing chan struct{} // closed when everything is to be told now
	end     *atomic.Int64 // when closing must be over, ns; 0 for no such time
	done    chan struct{}

	// Of the goroutine alone:
	streak   int       // tries that failed in a row
	backoff  time.Time // not before, by our own rule
	told     time.Time // not before, by the receiver's rule
	flushing bool

	sent, failed, retries, lost, events, inHand atomic.Int64
	lastSent                                    atomic.Int64 // ns
	lastError                                   atomic.Pointer[string]
}

func (s *sender) add(e *Event, now time.Time) {
	s.events.Add(1)
	if s.groups.add(e, now) {
		select {
		case s.wake <- struct{}{}:
		default: // it looks anyway
		}
	}
}

// run sends until the hook is told to close and nothing is left, or until ctx ends.
func (s *sender) run(ctx context.Context) {
	defer close(s.done)
	defer func() { s.lost.Add(s.groups.drop()) }()
	for ctx.Err() == nil {
		s.noticeClosing()
		m, wait := s.groups.next(time.Now(), s.flushing)
		switch {
		case m != nil:
			s.inHand.Store(m.Count)
			s.deliver(ctx, m)
			s.inHand.Store(0)
		case s.flushing:
			return
		default:
			s.idle(ctx, wait)
		}
	}
}

// noticeClosing prepares to tell what is left when the hook is told to close.
func (s *sender) noticeClosing() {
	if s.flushing {
		return
	}
	select {
	case <-s.closing:
		s.flushing = true
		s.groups.mergeBeyond(flushMessages)
	default:
	}
}

// idle waits for that long, without end where it is negative, or until there is
// something new.
func (s *sender) idle(ctx context.Context, wait time.Duration) {
	var after <-chan time.Time
	if wait >= 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		after = t.C
	}
	select {
	case <-after:
	case <-s.wake:
	case <-s.closing:
	case <-ctx.Done():
	}
}

// deliver tries to send m until it is taken or given up.
func (s *sender) deliver(ctx context.Context, m *Message) {
	for try := 1; ; try++ {
		if !s.pause(ctx) {
			s.lost.Add(m.Count)
			return
		}
		a := s.post(ctx, m)
		now := time.Now()
		if a.ok {
			if s.streak >= s.hook.Attempts {
				s.log.Info("alerts are taken again", "hook", s.hook.Name)
			}
			s.streak = 0
			s.sent.Add(1)
			s.lastSent.Store(now.UnixNano())
			return
		}
		s.streak++
		s.backoff = now.Add(backoff(s.streak))
		s.told = now.Add(min(a.wait, mostWait))
		s.lastError.Store(&a.text)
		if a.retry && try < s.hook.Attempts {
			s.retries.Add(1)
			continue
		}
		s.giveUp(m, a, try, now)
		return
	}
}

// giveUp puts the events of m back, to be told with the group's next message.
func (s *sender) giveUp(m *Message, a answer, tries int, now time.Time) {
	s.failed.Add(1)
	after := "they are counted into the next message"
	if s.flushing {
		after = "they are lost, since inquest stops"
		s.lost.Add(m.Count)
	} else {
		s.groups.giveBack(m, now)
	}
	s.log.Error("cannot send alert", "hook", s.hook.Name, "kind", string(s.hook.Kind), "reason", m.Reason,
		"service", m.Service, "events", m.Count, "tries", tries, "error", a.text, "events_then", after)
}

// backoff doubles with every failure in a row, and varies so that several
// senders do not come at once.
func backoff(streak int) time.Duration {
	d := mostBackoff
	if streak < 10 {
		d = min(d, firstBackoff<<(streak-1))
	}
	return time.Duration(float64(d) * (0.8 + 0.2*rand.Float64()))
}

// pause waits until a try is allowed. It returns false when that would be too
// late: ctx ends before, or the time for closing does.
func (s *sender) pause(ctx context.Context) bool {
	for {
		if ctx.Err() != nil {
			return false
		}
		now := time.Now()
		wait := max(s.told.Sub(now), s.ownWait(now))
		if wait <= 0 {
			if wait = s.limit.take(now); wait <= 0 {
				return true
			}
		}
		if end := s.end.Load(); s.flushing && end != 0 && now.Add(wait).UnixNano() > end {
			return false
		}
		closing := s.closing
		if s.flushing {
			closing = nil
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-closing:
			s.noticeClosing()
		case <-ctx.Done():
		}
		t.Stop()
	}
}

// ownWait is what is left of the backoff. While everything is to be told, it is
// never longer than the first.
func (s *sender) ownWait(now time.Time) time.Duration {
	wait := s.backoff.Sub(now)
	if s.flushing {
		wait = min(wait, firstBackoff)
		if s.streak > 0 && wait > 0 {
			s.backoff = now.Add(wait)
		}
	}
	return wait
}
