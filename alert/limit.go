package alert

import (
	"sync"
	"time"
)

// rate allows n messages within any span of time per.
type rate struct {
	n   int
	per time.Duration
}

// limiter keeps the rates of one robot. A window slides, since it is not known
// when the service's own minute begins. Hooks of one robot share a limiter.
type limiter struct {
	mu    sync.Mutex
	rates []rate
	sent  []time.Time // the last sends, as many as the largest rate needs
}

func newLimiter(rates []rate) *limiter { return &limiter{rates: rates} }

// take allows a message now and returns 0, or says how long to wait until it
// may be asked again.
func (l *limiter) take(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	var wait time.Duration
	most := 0
	for _, r := range l.rates {
		most = max(most, r.n)
		if len(l.sent) < r.n {
			continue
		}
		wait = max(wait, r.per-now.Sub(l.sent[len(l.sent)-r.n]))
	}
	if wait > 0 {
		return wait
	}
	if most > 0 {
		if len(l.sent) == most {
			l.sent = append(l.sent[:0], l.sent[1:]...)
		}
		l.sent = append(l.sent, now)
	}
	return 0
}
