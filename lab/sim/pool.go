package sim

import "time"

// Pool hands out a number of equal things, first come, first served: connections,
// threads, slots.
type Pool struct {
	sim      *Sim
	capacity int
	inUse    int
	queue    []*waiter

	// Waited and TimedOut count those that had to wait, and that gave up.
	Waited, TimedOut int
	// WaitTime is the time that all of them waited.
	WaitTime time.Duration
}

type waiter struct {
	wake    func()
	granted bool
}

// NewPool returns a pool of n.
func (s *Sim) NewPool(n int) *Pool { return &Pool{sim: s, capacity: n} }

// Capacity is how many there are.
func (q *Pool) Capacity() int { return q.capacity }

// InUse is how many are taken; after [Pool.Resize] it may be above the capacity.
func (q *Pool) InUse() int { return q.inUse }

// Waiting is how many processes wait for one.
func (q *Pool) Waiting() int { return len(q.queue) }

// Resize changes how many there are. Those that are taken stay so.
func (q *Pool) Resize(n int) {
	q.capacity = n
	q.grant()
}

// Acquire takes one, and waits for it for at most limit ([Forever] for no
// limit). It returns false when none was to be had in time.
func (q *Pool) Acquire(p *Proc, limit time.Duration) bool {
	if q.inUse < q.capacity && len(q.queue) == 0 {
		q.inUse++
		return true
	}
	w := &waiter{wake: p.Waker()}
	q.queue = append(q.queue, w)
	q.Waited++
	start := p.Now()
	waiting := true
	defer func() {
		q.WaitTime += p.Now() - start
		if waiting && !w.granted { // killed on the way
			q.remove(w)
		} else if waiting {
			q.Release()
		}
	}()
	p.Wait(limit)
	waiting = false
	if !w.granted {
		q.remove(w)
		q.TimedOut++
	}
	return w.granted
}

func (q *Pool) remove(w *waiter) {
	for i := range q.queue {
		if q.queue[i] == w {
			q.queue = append(q.queue[:i], q.queue[i+1:]...)
			return
		}
	}
}

// Release gives one back.
func (q *Pool) Release() {
	q.inUse--
	q.grant()
}

func (q *Pool) grant() {
	for q.inUse < q.capacity && len(q.queue) > 0 {
		w := q.queue[0]
		q.queue = q.queue[1:]
		w.granted = true
		q.inUse++
		w.wake()
	}
}
