package stack

import (
	"time"

	"inquest/lab/telemetry"
)

// Cache is a key-value server such as Redis: entries that expire, room for so
// many, and a bound on clients.
type Cache struct {
	Pod *Pod
	// TTL is how long an entry is kept; 0 for ever. Room bounds the entries: the
	// oldest goes first.
	TTL  time.Duration
	Room int
	// MaxClients refuses connections above it.
	MaxClients int
	// PerGet is the processor time of one command.
	PerGet time.Duration

	entries                          map[string]time.Duration // when each was stored
	order                            []string
	clients                          int
	hits, misses, evicted, refusedNo int
}

// NewCache makes the pod a cache server, and has an exporter tell of it.
func (w *World) NewCache(p *Pod, room int, ttl time.Duration) *Cache {
	k := &Cache{Pod: p, TTL: ttl, Room: room, MaxClients: 1000, PerGet: 80 * time.Microsecond, entries: map[string]time.Duration{}}
	m := p.Meter
	m.Gauge("redis_connected_clients", "", func() float64 { return float64(k.clients) })
	m.Gauge("redis_config_maxclients", "", func() float64 { return float64(k.MaxClients) })
	m.Gauge("redis_db_keys", "", func() float64 { return float64(len(k.entries)) })
	count := func(name string, n *int) { m.CounterFunc(name, "", func() float64 { return float64(*n) }) }
	count("redis_keyspace_hits", &k.hits)
	count("redis_keyspace_misses", &k.misses)
	count("redis_evicted_keys", &k.evicted)
	count("redis_rejected_connections", &k.refusedNo)
	return k
}

// ErrClients is what a server says that has too many clients.
const ErrClients = StatusError(503)

// connected counts a client's connection while fn runs.
func (k *Cache) connected(c *Ctx, fn func() error) error {
	if k.clients >= k.MaxClients {
		k.refusedNo++
		c.Logf(telemetry.Error, "redis.exceptions.ConnectionError: Error while reading from redis:6379 : ERR max number of clients reached")
		return ErrClients
	}
	k.clients++
	defer func() { k.clients-- }()
	return fn()
}

// Get looks a key up over a link, through the client's pool when it has one.
func (k *Cache) Get(c *Ctx, l *Link, pool *ConnPool, key string) (hit bool, err error) {
	err = k.command(c, l, pool, "GET", func(s *SpanOf) {
		at, ok := k.entries[key]
		hit = ok && (k.TTL == 0 || k.Pod.world.Sim.Now()-at < k.TTL)
		if hit {
			k.hits++
		} else {
			k.misses++
		}
		s.Set("cache.hit", hit)
	})
	return hit, err
}

// Set stores a key.
func (k *Cache) Set(c *Ctx, l *Link, pool *ConnPool, key string) error {
	return k.command(c, l, pool, "SET", func(*SpanOf) { k.put(key) })
}

func (k *Cache) put(key string) {
	if _, ok := k.entries[key]; !ok {
		k.order = append(k.order, key)
	}
	k.entries[key] = k.Pod.world.Sim.Now()
	for len(k.entries) > k.Room && len(k.order) > 0 {
		delete(k.entries, k.order[0])
		k.order = k.order[1:]
		k.evicted++
	}
}

// Flush forgets everything.
func (k *Cache) Flush() {
	clear(k.entries)
	k.order = nil
}

func (k *Cache) command(c *Ctx, l *Link, pool *ConnPool, op string, fn func(*SpanOf)) error {
	return c.In(op, telemetry.Client, func(c *Ctx, s *SpanOf) error {
		s.Set("db.system.name", "redis", "db.operation.name", op, "server.address", k.Pod.Service)
		run := func() error {
			return k.connected(c, func() error {
				return c.exchange(l, k.Pod, 120, 400, func(in *Ctx) error {
					in.Compute(k.PerGet)
					fn(s)
					return nil
				})
			})
		}
		if pool == nil {
			return run()
		}
		return pool.Use(c, run)
	})
}

// exchange sends a request over a link to a process without tracing, and waits
// for its answer.
func (c *Ctx) exchange(l *Link, to *Pod, request, answer int, fn func(*Ctx) error) error {
	if to.down {
		return ErrRefused
	}
	left := func() time.Duration { return c.Left() }
	if c.unreachable(to, left()) {
		return ErrTimeout
	}
	if err := l.connect(c, left()); err != nil {
		return err
	}
	if !l.transfer(c.P, c.Pod, request, left()) {
		return ErrTimeout
	}
	in := *c
	in.Pod = to
	if err := fn(&in); err != nil {
		return err
	}
	if !l.transfer(c.P, c.Pod, answer, left()) {
		return ErrTimeout
	}
	l.done(c.P.Now())
	return nil
}

// Database is a server whose queries take processor time, such as a vector
// database or PostgreSQL.
type Database struct {
	Pod    *Pod
	System string // db.system.name
	// Slow makes each query take so many times longer.
	Slow float64
}

// Query runs a query of so much processor time over a link.
func (d *Database) Query(c *Ctx, l *Link, pool *ConnPool, name string, work time.Duration) error {
	return c.In(name, telemetry.Client, func(c *Ctx, s *SpanOf) error {
		s.Set("db.system.name", d.System, "db.operation.name", name, "server.address", d.Pod.Service)
		run := func() error {
			return c.exchange(l, d.Pod, 600, 4000, func(in *Ctx) error {
				in.Compute(time.Duration(float64(work) * max(1, d.Slow)))
				return nil
			})
		}
		if pool == nil {
			return run()
		}
		return pool.Use(c, run)
	})
}
