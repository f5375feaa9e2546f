package truth

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// watch looks at one service.
type watch struct {
	k     *Checker
	s     Service
	state atomic.Pointer[State]
	asked chan chan *State
	woken chan struct{}

	mu    sync.Mutex
	event load // the last load that the service told of

	// Of the goroutine alone:
	base    baseline
	cache   map[fileID]hashed
	hashing bool
	again   bool // somebody asked while files were being hashed
	results chan map[fileID]hashed
	waiting []chan *State
	changes changes
}

func newWatch(k *Checker, s Service) *watch {
	w := &watch{
		k: k, s: s, asked: make(chan chan *State), woken: make(chan struct{}, 1),
		cache: map[fileID]hashed{}, results: make(chan map[fileID]hashed, 1),
	}
	w.state.Store(&State{Service: s.Name, Reason: ReasonPending, Detail: "nothing was looked at yet"})
	return w
}

func (w *watch) loaded(l Load) {
	w.mu.Lock()
	newer := l.At.After(w.event.at)
	if newer {
		w.event = load{at: l.At, by: loadedByEvent, precise: true, sha256: strings.ToLower(l.SHA256)}
	}
	w.mu.Unlock()
	if newer {
		select {
		case w.woken <- struct{}{}:
		default:
		}
	}
}

// run looks at once and then every interval until ctx ends.
func (w *watch) run(ctx context.Context) {
	for {
		w.look(ctx, true)
		next := time.NewTimer(w.pause())
		for again := false; !again; {
			select {
			case <-ctx.Done():
				next.Stop()
				w.finish()
				return
			case <-next.C:
				again = true
			case <-w.woken:
				again = true
			case reply := <-w.asked:
				w.waiting = append(w.waiting, reply)
				w.again = w.hashing
				again = true
			case r := <-w.results:
				w.hashing = false
				for id, h := range r {
					w.cache[id] = h
				}
				// No further round of hashing, unless somebody waits for it: files
				// that change all the time would be hashed all the time.
				more := w.again
				w.again = false
				w.look(ctx, more)
			}
		}
		next.Stop()
	}
}

// finish waits for the hashing that ctx ended.
func (w *watch) finish() {
	if w.hashing {
		<-w.results
	}
}

// pause is the interval, varied so that services are not asked all at once.
func (w *watch) pause() time.Duration {
	return time.Duration(float64(w.k.conf.Interval) * (0.9 + 0.2*rand.Float64()))
}

// look sees how things are and publishes it. With hash it starts to hash what
// is not hashed yet.
func (w *watch) look(ctx context.Context, hash bool) {
	l := w.see(ctx)
	if ctx.Err() != nil {
		return // what was cut short tells nothing
	}
	st := evaluate(&w.s, l, &w.base)
	w.state.Store(st)
	w.keepCache(l.tree)
	if hash && !w.hashing && l.tree != nil {
		w.hash(ctx, l.tree)
	}
	if !w.hashing {
		for _, reply := range w.waiting {
			reply <- st
		}
		w.waiting = nil
	}
	for _, c := range w.changes.next(&w.s, st, hash) {
		w.tell(c)
	}
}

func (w *watch) see(ctx context.Context) *look {
	l := &look{cache: w.cache, grace: w.k.conf.LoadGrace}
	select {
	case w.k.slots <- struct{}{}:
		defer func() { <-w.k.slots }()
	case <-ctx.Done():
		return l
	}
	w.mu.Lock()
	l.event = w.event
	w.mu.Unlock()
	l.health = ask(ctx, w.k.client, &w.s, w.k.conf.Timeout)
	if w.s.Path != "" {
		l.tree, l.problem = readTree(w.s.Path, w.k.conf.MaxFiles, w.s.Ignore)
	}
	l.at = time.Now()
	return l
}

// keepCache forgets hashes of files that are no more.
func (w *watch) keepCache(t *tree) {
	if t == nil || len(w.cache) == 0 {
		return
	}
	kept := make(map[fileID]hashed, len(t.files))
	for _, f := range t.files {
		if h, ok := w.cache[f.id]; ok {
			kept[f.id] = h
		}
	}
	w.cache = kept
}

// hash starts to hash the files that are not hashed yet or may have changed unseen.
func (w *watch) hash(ctx context.Context, t *tree) {
	var todo []file
	for _, f := range t.files {
		if h, ok := w.cache[f.id]; !ok || h.young {
			todo = append(todo, f)
		}
	}
	if len(todo) == 0 {
		return
	}
	w.hashing = true
	w.k.wg.Go(func() { w.results <- w.k.hasher.all(ctx, todo) })
}

func (w *watch) tell(c change) {
	w.k.set.Finding(w.s.Name, c.finding)
	if c.alert != nil {
		w.k.set.Alert(*c.alert)
	}
	w.k.set.Logger.Info("truth check: "+c.finding.Text, "service", w.s.Name, "reason", c.finding.Kind)
}
