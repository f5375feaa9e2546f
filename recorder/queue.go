package recorder

import (
	"context"
	"errors"
	"sync"
	"time"
)

// queue hands acknowledged batches from the senders to the applier in the
// order of the journal, so that it need not read and decode them again. It is
// bounded in bytes: a batch that does not fit is read from the journal instead.
type queue struct {
	limit int64

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced at each change
	batches  map[uint64]*batch
	size     int64
	taken    uint64 // largest number that the applier took
	last     uint64 // largest number acknowledged
	inFlight int    // senders between begin and end
	poked    bool
}

func newQueue(taken, last uint64, limit int64) *queue {
	return &queue{limit: limit, taken: taken, last: last, batches: map[uint64]*batch{}, changed: make(chan struct{})}
}

func (q *queue) notify() {
	close(q.changed)
	q.changed = make(chan struct{})
}

func (q *queue) begin() {
	q.mu.Lock()
	q.inFlight++
	q.mu.Unlock()
}

func (q *queue) end() {
	q.mu.Lock()
	q.inFlight--
	q.notify()
	q.mu.Unlock()
}

// push offers an acknowledged batch.
func (q *queue) push(b *batch) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.last = max(q.last, b.seq)
	if b.seq > q.taken && q.size+b.size <= q.limit {
		q.batches[b.seq] = b
		q.size += b.size
	}
	q.notify()
}

// raise tells that entries up to seq are durable, whoever sent them.
func (q *queue) raise(seq uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if seq > q.last {
		q.last = seq
		q.notify()
	}
}

// drop forgets batches below seq, which will not be taken.
func (q *queue) drop(seq uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for n, b := range q.batches {
		if n < seq {
			delete(q.batches, n)
			q.size -= b.size
		}
	}
	q.taken = max(q.taken, seq)
	q.notify()
}

// poke ends the applier's wait, or its next one.
func (q *queue) poke() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.poked = true
	q.notify()
}

var errPoked = errors.New("something else is to be done first")

// head is the largest number acknowledged.
func (q *queue) head() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.last
}

// waitRoom returns when the queue is at most half full, ctx ends, or after
// limit.
func (q *queue) waitRoom(ctx context.Context, limit time.Duration) {
	var timeout <-chan time.Time
	for {
		q.mu.Lock()
		changed, room := q.changed, q.size <= q.limit/2
		q.mu.Unlock()
		if room {
			return
		}
		if timeout == nil {
			t := time.NewTimer(limit)
			defer t.Stop()
			timeout = t.C
		}
		select {
		case <-changed:
		case <-timeout:
			return
		case <-ctx.Done():
			return
		}
	}
}

// stragglerWait is how long the applier waits for a batch that is durable but
// whose sender has not yet handed it over. Group commit wakes senders in any
// order.
const stragglerWait = 50 * time.Millisecond

// next waits until entry seq is acknowledged. It returns the batch, or nil when
// it has to be read from the journal. It returns an error only when ctx ends or
// after a poke.
func (q *queue) next(ctx context.Context, seq uint64) (*batch, error) {
	var straggler <-chan time.Time
	late := false
	for {
		q.mu.Lock()
		if q.poked {
			q.poked = false
			q.mu.Unlock()
			return nil, errPoked
		}
		b, ok := q.batches[seq]
		if ok {
			delete(q.batches, seq)
			q.size -= b.size
			q.taken = seq
			q.notify()
			q.mu.Unlock()
			return b, nil
		}
		durable := q.last >= seq
		if durable && (q.inFlight == 0 || late) {
			q.taken = seq
			q.mu.Unlock()
			return nil, nil
		}
		changed := q.changed
		q.mu.Unlock()
		if durable && straggler == nil {
			t := time.NewTimer(stragglerWait)
			defer t.Stop()
			straggler = t.C
		}
		select {
		case <-changed:
		case <-straggler:
			late = true
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// watermark is a number that only grows and can be waited for.
type watermark struct {
	mu      sync.Mutex
	value   uint64
	changed chan struct{}
}

func newWatermark(value uint64) *watermark {
	return &watermark{value: value, changed: make(chan struct{})}
}

func (w *watermark) get() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.value
}

func (w *watermark) raise(to uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if to <= w.value {
		return
	}
	w.value = to
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *watermark) wait(ctx context.Context, target uint64) error {
	for {
		w.mu.Lock()
		value, changed := w.value, w.changed
		w.mu.Unlock()
		if value >= target {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
