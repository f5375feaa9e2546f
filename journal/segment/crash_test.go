package segment

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"inquest/journal"
	"inquest/journal/vfs"
)

// history is what senders were told, and so what a journal must hold.
type history struct {
	mu      sync.Mutex
	next    uint64            // number for the next payload
	acked   map[uint64]uint64 // payload number → sequence number
	refused map[uint64]error  // certainly not stored
	gone    uint64            // entries with smaller sequence numbers were let go of
	highest uint64            // highest sequence number seen
}

func newHistory() *history {
	return &history{acked: map[uint64]uint64{}, refused: map[uint64]error{}}
}

func (h *history) clone() *history {
	h.mu.Lock()
	defer h.mu.Unlock()
	return &history{next: h.next, acked: maps.Clone(h.acked), refused: maps.Clone(h.refused), gone: h.gone, highest: h.highest}
}

// append sends one entry and notes the answer.
func (h *history) append(ctx context.Context, l *Log) error {
	h.mu.Lock()
	h.next++
	n := h.next
	h.mu.Unlock()
	seq, err := l.Append(ctx, journal.KindLogs, int64(n), payloadOf(n))
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case err == nil:
		h.acked[n] = seq
		h.highest = max(h.highest, seq)
	case errors.Is(err, ErrUnknown) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
	default:
		h.refused[n] = err
	}
	return err
}

func (h *history) truncate(l *Log, before uint64) error {
	h.mu.Lock()
	h.gone = max(h.gone, before)
	h.mu.Unlock()
	return l.Truncate(before)
}

// check compares the journal with the history. What it finds beyond what must be
// there counts as acknowledged from then on: a reader has seen it.
func (h *history) check(l *Log) error {
	st := l.Stats()
	if st.SetAside != 0 {
		return fmt.Errorf("%d ranges set aside, where nothing was damaged", st.SetAside)
	}
	if st.Last < h.highest {
		return fmt.Errorf("the last number is %d, %d was given", st.Last, h.highest)
	}
	r, err := l.Read(1)
	if err != nil {
		return err
	}
	defer r.Close()
	seen := map[uint64]uint64{}
	for want := st.First; want <= st.Last; want++ {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		e, err := r.Next(ctx)
		cancel()
		if err != nil {
			return fmt.Errorf("entry %d: %w", want, err)
		}
		if e.Seq != want {
			return fmt.Errorf("got entry %d, want %d", e.Seq, want)
		}
		n := binary.LittleEndian.Uint64(e.Payload)
		if !bytes.Equal(e.Payload, payloadOf(n)) || e.Received != int64(n) {
			return fmt.Errorf("entry %d differs from what was sent", want)
		}
		if _, twice := seen[n]; twice {
			return fmt.Errorf("entry %d is there twice", want)
		}
		seen[n] = e.Seq
		if err := h.refused[n]; err != nil {
			return fmt.Errorf("entry %d was refused and is there: %w", want, err)
		}
	}
	if r.Skipped() != 0 {
		return fmt.Errorf("%d entries skipped", r.Skipped())
	}
	for n, seq := range h.acked {
		if seq < h.gone {
			continue
		}
		if seen[n] != seq {
			return fmt.Errorf("payload %d was acknowledged as entry %d and is entry %d", n, seq, seen[n])
		}
	}
	maps.Copy(h.acked, seen)
	h.highest = max(h.highest, st.Last)
	return nil
}

// disk decides about faults.
type disk struct {
	mu   sync.Mutex
	rng  *rand.Rand
	rate float64
	dead bool
}

func (d *disk) fault(op vfs.Op) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case op.Kind == vfs.OpRead || op.Kind == vfs.OpOpen || op.Kind == vfs.OpLock:
		return nil
	case d.dead || d.rng.Float64() < d.rate:
		if d.rng.IntN(2) == 0 {
			return syscall.ENOSPC
		}
		return syscall.EIO
	}
	return nil
}

func (d *disk) set(rate float64, dead bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rate, d.dead = rate, dead
}

// load has senders append until stop is closed.
func load(l *Log, h *history, seed uint64, stop <-chan struct{}) *sync.WaitGroup {
	var wg sync.WaitGroup
	for i := range uint64(4) {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, i))
			for {
				select {
				case <-stop:
					return
				default:
				}
				ctx, cancel := context.WithCancel(context.Background())
				if rng.IntN(20) == 0 {
					time.AfterFunc(time.Duration(rng.IntN(200))*time.Microsecond, cancel)
				}
				h.append(ctx, l)
				cancel()
				if rng.IntN(60) == 0 {
					if last := l.Stats().Last; last > 0 {
						h.truncate(l, rng.Uint64N(last+2))
					}
				}
			}
		})
	}
	return &wg
}

// Random loads, faults, kills and losses of power, again and again on what the
// last one left.
func TestCrash(t *testing.T) {
	seeds := uint64(150)
	if testing.Short() {
		seeds = 30
	}
	for seed := range seeds {
		if err := crashRun(t, seed); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

func crashRun(t *testing.T, seed uint64) error {
	rng := rand.New(rand.NewPCG(seed, 99))
	mem, h := vfs.NewMem(seed), newHistory()
	o := testOptions(mem)
	o.SegmentBytes = 512 << rng.IntN(6)
	o.MaxGroupBytes = 256 << rng.IntN(6)
	o.Compression = Compression(rng.IntN(2))
	for round := range 6 {
		d := &disk{rng: rand.New(rand.NewPCG(seed, uint64(round)))}
		o.FS = mem
		l, err := Open(o)
		if err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		mem.SetFault(d.fault)
		d.set([]float64{0, 0, 0.02, 0.3}[rng.IntN(4)], false)
		stop := make(chan struct{})
		senders := load(l, h, rng.Uint64(), stop)
		time.Sleep(time.Duration(rng.IntN(3000)) * time.Microsecond)
		if rng.IntN(3) > 0 {
			then := h.clone()
			left := mem.CrashClone(rng)
			close(stop)
			senders.Wait()
			mustCloseAnyhow(l)
			// No payload is sent twice, and what was let go of meanwhile may be gone.
			then.next, then.gone = h.next, h.gone
			mem, h = left, then
		} else { // a kill: from one moment on nothing reaches the system
			d.set(0, true)
			close(stop)
			senders.Wait()
			mustCloseAnyhow(l)
			mem.SetFault(nil)
		}
		if mem, err = reopenTwice(o, mem, h, rng); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
	}
	return nil
}

// mustCloseAnyhow closes a journal on a disk that may fail.
func mustCloseAnyhow(l *Log) { _ = l.Close() }

// reopenTwice checks what is left, and that it is still left after a loss of
// power right after opening: readers have seen it.
func reopenTwice(o Options, mem *vfs.Mem, h *history, rng *rand.Rand) (*vfs.Mem, error) {
	for range 2 {
		o.FS = mem
		l, err := Open(o)
		if err != nil {
			return nil, err
		}
		err = h.check(l)
		left := mem.CrashClone(rng)
		if err := errors.Join(err, l.Close()); err != nil {
			return nil, err
		}
		mem = left
	}
	return mem, nil
}

// A fault at each call to the file system in turn, of several lengths and kinds.
func TestFaultAtEachCall(t *testing.T) {
	f := func(count int, fault error) {
		t.Helper()
		for n := 1; ; n++ {
			met, err := faultRun(n, count, fault)
			if err != nil {
				t.Fatalf("%v from call %d on, %d times: %v", fault, n, count, err)
			}
			if !met {
				if n < 50 {
					t.Fatalf("only %d calls", n)
				}
				return
			}
		}
	}
	f(1, syscall.EIO)
	f(2, syscall.EIO)
	f(3, syscall.EIO)
	f(5, syscall.EIO)
	f(1, syscall.ENOSPC)
	f(4, syscall.ENOSPC)
	f(1<<30, syscall.EIO)
	f(1<<30, syscall.ENOSPC)
}

// faultRun works on a disk that fails from the n-th call on count times. It
// reports whether that was met.
func faultRun(n, count int, fault error) (met bool, err error) {
	mem, h := vfs.NewMem(uint64(n)), newHistory()
	rng := rand.New(rand.NewPCG(uint64(n), uint64(count)))
	o := testOptions(mem)
	o.SegmentBytes = 1500
	inject := vfs.FailNth(n, count, fault)
	mem.SetFault(func(op vfs.Op) error {
		err := inject(op)
		met = met || err != nil
		return err
	})
	for range 3 {
		l, err := Open(o)
		if err != nil {
			continue
		}
		for range 6 {
			h.append(context.Background(), l)
		}
		if last := l.Stats().Last; last > 4 {
			h.truncate(l, last-4)
		}
		mustCloseAnyhow(l)
	}
	mem.SetFault(nil)
	if n%2 == 0 { // the disk failed because power was failing
		mem = mem.CrashClone(rng)
		o.FS = mem
	}
	l, err := Open(o)
	if err != nil {
		return met, err
	}
	if err := h.append(context.Background(), l); err != nil {
		return met, fmt.Errorf("after the disk was well again: %w", err)
	}
	left := mem.CrashClone(rng)
	if err := errors.Join(h.check(l), l.Close()); err != nil {
		return met, err
	}
	_, err = reopenTwice(o, left, h, rng)
	return met, err
}

// A disk that fails is used again, without a restart, once it is well.
func TestRecoversByItself(t *testing.T) {
	f := func(fault error, want error, kinds ...vfs.OpKind) {
		t.Helper()
		mem, h := vfs.NewMem(3), newHistory()
		o := testOptions(mem)
		o.RetryInterval = 5 * time.Millisecond
		l := mustOpen(t, o)
		for range 3 {
			h.append(context.Background(), l)
		}
		mem.SetFault(vfs.FailNth(1, 1<<30, fault, kinds...))
		for range 5 {
			if err := h.append(context.Background(), l); !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
		}
		mem.SetFault(nil)
		for range 200 {
			if err := h.append(context.Background(), l); err == nil {
				break
			}
			time.Sleep(time.Millisecond)
		}
		if err := h.append(context.Background(), l); err != nil {
			t.Errorf("still %v", err)
		}
		left := mem.CrashClone(rand.New(rand.NewPCG(1, 2)))
		if err := errors.Join(h.check(l), l.Close()); err != nil {
			t.Error(err)
		}
		if _, err := reopenTwice(o, left, h, rand.New(rand.NewPCG(1, 2))); err != nil {
			t.Error(err)
		}
	}
	f(syscall.ENOSPC, journal.ErrFull, vfs.OpWrite)
	f(syscall.EDQUOT, journal.ErrFull, vfs.OpWrite)
	f(syscall.EIO, journal.ErrClosed, vfs.OpWrite)
	f(syscall.EIO, journal.ErrClosed, vfs.OpSync)
	f(syscall.EIO, journal.ErrClosed, vfs.OpSync, vfs.OpCreate)
	f(syscall.EIO, journal.ErrClosed, vfs.OpSync, vfs.OpSyncDir, vfs.OpRemove)
}

// One failed sync costs nothing: the entries go to a new segment.
func TestSyncFailsOnce(t *testing.T) {
	mem, h := vfs.NewMem(3), newHistory()
	l := mustOpen(t, testOptions(mem))
	h.append(context.Background(), l)
	mem.SetFault(vfs.FailNth(1, 1, syscall.EIO, vfs.OpSync))
	if err := h.append(context.Background(), l); err != nil {
		t.Fatal(err)
	}
	if n := l.Stats().Segments; n != 2 {
		t.Fatalf("got %d segments", n)
	}
	if err := errors.Join(h.check(l), l.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestFull(t *testing.T) {
	ctx := context.Background()
	f := func(limit func(*Options, *vfs.Mem), more func(*vfs.Mem)) {
		t.Helper()
		mem, h := vfs.NewMem(5), newHistory()
		o := testOptions(mem)
		limit(&o, mem)
		l := mustOpen(t, o)
		var err error
		for range 1000 {
			if err = h.append(ctx, l); err != nil {
				break
			}
		}
		if !errors.Is(err, journal.ErrFull) || h.highest < 10 {
			t.Fatalf("got %v after %d entries", err, h.highest)
		}
		// It opens, and is read, without room.
		mustClose(t, l)
		l = mustOpen(t, o)
		if err := h.check(l); err != nil {
			t.Fatal(err)
		}
		if more != nil {
			more(mem)
		} else if err := h.truncate(l, l.Stats().Last+1); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			if err := h.append(ctx, l); err != nil {
				t.Fatalf("with room again: %v", err)
			}
		}
		if err := errors.Join(h.check(l), l.Close()); err != nil {
			t.Fatal(err)
		}
	}
	room := func(m *vfs.Mem) { m.SetRoom(1 << 20) }
	f(func(o *Options, _ *vfs.Mem) { o.MaxBytes = 20_000 }, nil)
	f(func(o *Options, _ *vfs.Mem) { o.MaxBytes = 20_000; o.SegmentBytes = 1 << 30 }, nil)
	f(func(_ *Options, m *vfs.Mem) { m.SetRoom(20_000) }, room)
	f(func(o *Options, m *vfs.Mem) { m.SetRoom(40_000); o.MinFreeBytes = 20_000 }, room)
	f(func(o *Options, m *vfs.Mem) { m.SetRoom(40_000); o.MinFreeBytes = 20_000 }, nil)
}
