package stack

import (
	"errors"
	"time"

	"inquest/lab/sim"
	"inquest/lab/telemetry"
)

// ErrPool is what a client says that got no connection from its pool in time.
var ErrPool = errors.New("connection pool exhausted: no connection available in time")

// ConnPool is a client's pool of connections to one server, with the metrics that
// OpenTelemetry's conventions name.
type ConnPool struct {
	// Leak is the share of uses whose connection is never given back.
	Leak float64
	// Limit is how long a client waits for a connection; 2 s when zero.
	Limit time.Duration

	pod      *Pod
	pool     *sim.Pool
	timeouts int
	wait     *telemetry.Series
}

var waitBuckets = []float64{0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10}

// NewConnPool gives the pod a pool of so many connections.
func (p *Pod) NewConnPool(name string, most int) *ConnPool {
	q := &ConnPool{pod: p, pool: p.world.Sim.NewPool(most)}
	labels := []any{"db.client.connection.pool.name", name}
	state := func(s string) []any { return append([]any{"db.client.connection.state", s}, labels...) }
	m := p.Meter
	m.Gauge("db.client.connection.count", "{connection}", func() float64 { return float64(q.pool.InUse()) }, state("used")...)
	m.Gauge("db.client.connection.count", "{connection}", func() float64 { return float64(max(0, q.pool.Capacity()-q.pool.InUse())) }, state("idle")...)
	m.Gauge("db.client.connection.max", "{connection}", func() float64 { return float64(q.pool.Capacity()) }, labels...)
	m.Gauge("db.client.connection.pending_requests", "{request}", func() float64 { return float64(q.pool.Waiting()) }, labels...)
	m.CounterFunc("db.client.connection.timeouts", "{timeout}", func() float64 { return float64(q.timeouts) }, labels...)
	q.wait = m.Histogram("db.client.connection.wait_time", "s", waitBuckets, labels...)
	return q
}

// Resize changes how many connections there may be.
func (q *ConnPool) Resize(n int) { q.pool.Resize(n) }

// InUse is how many connections are taken.
func (q *ConnPool) InUse() int { return q.pool.InUse() }

// Use runs fn with a connection.
func (q *ConnPool) Use(c *Ctx, fn func() error) error {
	limit := q.Limit
	if limit == 0 {
		limit = 2 * time.Second
	}
	start := c.P.Now()
	ok := q.pool.Acquire(c.P, c.limit(limit))
	q.wait.Observe((c.P.Now() - start).Seconds())
	if !ok {
		q.timeouts++
		return ErrPool
	}
	leaks := q.Leak > 0 && c.Pod.world.net.Float64() < q.Leak
	defer func() {
		if !leaks {
			q.pool.Release()
		}
	}()
	return fn()
}
