package recorder

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"inquest/journal"
	"inquest/record"
	"inquest/store"
)

// applier carries entries from the journal to the stores, one after the other
// in the journal's order, and lets go of the journal behind the checkpoint. It
// is the only caller of Append, Missing and Sync of the stores.
type applier struct {
	r       *Recorder
	log     *slog.Logger
	records store.Records
	samples store.Samples
	conv    *record.Converter
	decide  *decider

	done    *watermark // entries that the stores hold, visible or not
	flushed *watermark // entries that queries see
	synced  *watermark // entries that the stores hold on disk

	// Entries up to doubtful may be in the stores already, wholly or in part:
	// they were acknowledged after the last checkpoint and before this start.
	doubtful uint64
	held     map[uint64]int // rows in the store by entry, for doubtful ones; nil when not known

	reader     journal.Reader
	readerNext uint64

	unsynced int64 // payload bytes applied since the last sync
	// syncAsked: a checkpoint is due now.
	syncAsked atomic.Bool
	stalled   atomic.Bool

	compacting atomic.Bool
	cancel     context.CancelFunc
	wg         sync.WaitGroup
}

func newApplier(r *Recorder, checkpoint, last uint64) *applier {
	return &applier{
		r: r, log: r.log,
		records: r.opts.Records, samples: r.opts.Samples,
		conv: record.NewConverter(r.opts.Aliases), decide: newDecider(r.opts.Decisions),
		done: newWatermark(checkpoint), flushed: newWatermark(0), synced: newWatermark(checkpoint),
		doubtful: last,
	}
}

func (a *applier) start() {
	ctx, cancel := context.WithCancel(context.Background())
	a.cancel = cancel
	a.wg.Go(func() { a.run(ctx) })
}

// stop ends the applier after a last checkpoint.
func (a *applier) stop() {
	a.cancel()
	a.wg.Wait()
	if err := a.checkpoint(context.Background()); err != nil {
		a.log.Error("cannot write the last checkpoint; entries since the one before are applied again at the next start", "error", err)
	}
	if a.reader != nil {
		a.reader.Close()
	}
}

// healthy is false while the stores take nothing.
func (a *applier) healthy() bool { return !a.stalled.Load() }

// heldSeqs is offered by record stores that can count their rows by entry in
// one query.
type heldSeqs interface {
	// HeldSeqs returns the number of rows by entry number, for numbers from
	// upwards.
	HeldSeqs(ctx context.Context, from uint64) (map[uint64]int, error)
}

func (a *applier) run(ctx context.Context) {
	if h, ok := a.records.(heldSeqs); ok && a.doubtful > a.done.get() {
		held, err := h.HeldSeqs(ctx, a.done.get()+1)
		if err != nil {
			a.log.Warn("cannot count rows by entry; each entry is compared row by row", "error", err)
		} else {
			a.held = held
		}
	}
	lastSync, lastApply := time.Now(), time.Now()
	for ctx.Err() == nil {
		due, calm := lastSync.Add(a.r.opts.SyncInterval), lastApply.Add(a.r.opts.SyncInterval/4)
		if calm.Before(due) {
			due = calm
		}
		asked := a.syncAsked.Swap(false)
		if a.unsynced > 0 && (asked || a.unsynced >= a.r.opts.SyncBytes || !time.Now().Before(due)) {
			if err := a.checkpoint(ctx); err != nil {
				a.log.Error("cannot write a checkpoint; the journal is kept and it is tried again", "error", err)
			} else if !time.Now().Before(calm) {
				a.compact(ctx)
			}
			lastSync = time.Now()
			continue
		}
		b, err := a.next(ctx, due)
		if err != nil || b == nil {
			continue
		}
		if !a.applyUntilDone(ctx, b) {
			return
		}
		lastApply = time.Now()
		a.unsynced += max(b.size, 1)
		a.done.raise(b.seq)
	}
}

// sync makes a checkpoint now and waits until it covers entry seq.
func (a *applier) sync(ctx context.Context, seq uint64) error {
	if err := a.done.wait(ctx, seq); err != nil {
		return fmt.Errorf("the stores are behind: %w", err)
	}
	if a.synced.get() >= seq {
		return nil
	}
	a.syncAsked.Store(true)
	a.r.queue.poke()
	if err := a.synced.wait(ctx, seq); err != nil {
		return fmt.Errorf("the stores are not synced: %w", err)
	}
	return nil
}

// compacter is offered by record stores that can make use of a quiet time.
type compacter interface {
	// Compact saves room and time for queries. It returns when it is done or
	// soon after ctx ends. Rows may be appended meanwhile.
	Compact(ctx context.Context) error
}

// compact has the store of records compact itself in the background, once at a
// time.
func (a *applier) compact(ctx context.Context) {
	c, ok := a.records.(compacter)
	if !ok || a.compacting.Swap(true) {
		return
	}
	a.wg.Go(func() {
		defer a.compacting.Store(false)
		if err := c.Compact(ctx); err != nil && ctx.Err() == nil {
			a.log.Warn("records stay in many parts for now", "error", err)
		}
	})
}

// next returns the batch after the last one applied. It returns nil when a
// checkpoint is due first.
func (a *applier) next(ctx context.Context, due time.Time) (*batch, error) {
	seq := a.done.get() + 1
	if a.unsynced > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, due)
		defer cancel()
	}
	b, err := a.r.queue.next(ctx, seq)
	if err != nil || b != nil {
		return b, err
	}
	return a.read(ctx, seq)
}

// read takes the first entry from seq on from the journal.
func (a *applier) read(ctx context.Context, seq uint64) (*batch, error) {
	if a.reader != nil && a.readerNext != seq {
		a.reader.Close()
		a.reader = nil
	}
	if a.reader == nil {
		rd, err := a.r.opts.Journal.Read(seq)
		if err != nil {
			a.pause(ctx, "cannot read the journal", err)
			return nil, err
		}
		a.reader = rd
	}
	e, err := a.reader.Next(ctx)
	if err != nil {
		if ctx.Err() == nil {
			a.reader.Close()
			a.reader = nil
			a.pause(ctx, "cannot read the journal", err)
		}
		return nil, err
	}
	a.readerNext = e.Seq + 1
	if e.Seq > seq {
		// The journal reported the damage when it set the range aside.
		a.r.counts.lostEntries.Add(e.Seq - seq)
		a.log.Error("journal entries are damaged and cannot be applied", "first", seq, "last", e.Seq-1)
		a.r.queue.drop(e.Seq)
	}
	b := &batch{seq: e.Seq, received: e.Received, size: int64(len(e.Payload))}
	if err := b.decode(e.Kind, e.Payload); err != nil {
		if a.retry(ctx, e.Seq, func(bool) error { return a.setAside(e, err) }) {
			a.done.raise(e.Seq)
		}
		return nil, err
	}
	return b, nil
}

// applyUntilDone applies b, or sets it aside where the stores will never take
// it. It returns false only when ctx ended first.
func (a *applier) applyUntilDone(ctx context.Context, b *batch) bool {
	a.decide.batch(b)
	var refused error
	return a.retry(ctx, b.seq, func(again bool) error {
		if refused == nil {
			err := a.applyBatch(ctx, b, again)
			if err == nil || ctx.Err() != nil || errors.Is(err, store.ErrUnavailable) {
				return err
			}
			refused = err
		}
		kind, payload, err := b.encode(nil)
		if err != nil {
			return err
		}
		return a.setAside(journal.Entry{Seq: b.seq, Received: b.received, Kind: kind, Payload: payload}, refused)
	})
}

// retry calls do until it returns nil, with growing pauses. Meanwhile the
// applier stands still and the journal keeps entry seq and those after it. It
// returns false only when ctx ended first.
func (a *applier) retry(ctx context.Context, seq uint64, do func(again bool) error) bool {
	for delay, again := 100*time.Millisecond, false; ; delay, again = min(2*delay, 5*time.Second), true {
		err := do(again)
		if err == nil {
			if a.stalled.Swap(false) {
				a.log.Info("the stores take data again", "seq", seq)
			}
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		if !a.stalled.Swap(true) {
			a.log.Error("the stores take nothing; what is acknowledged stays in the journal", "seq", seq, "error", err)
		}
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return false
		}
	}
}

func (a *applier) applyBatch(ctx context.Context, b *batch, again bool) error {
	var rows []record.Row
	switch {
	case b.logs != nil:
		rows = a.conv.Logs(*b.logs, b.seq, b.received)
	case b.traces != nil:
		rows = a.conv.Spans(*b.traces, b.seq, b.received)
	case b.metrics != nil:
		rejected, err := a.samples.AppendMetrics(ctx, *b.metrics)
		if err != nil {
			return err
		}
		if err := a.appendCanonical(ctx, *b.metrics); err != nil {
			return err
		}
		rows = a.conv.Exemplars(*b.metrics, b.seq, b.received)
		letters := make([]record.Row, len(rejected))
		for i, rej := range rejected {
			a.r.counts.deadPoints.Add(uint64(rej.Points))
			// Numbers that no letter of the request itself has.
			letters[i] = refusedPoints(b, rej, maxLetters+i)
		}
		rows = append(rows, withSeq(letters, b.seq)...)
	}
	rows = append(rows, withSeq(b.rows, b.seq)...)
	return a.appendRows(ctx, store.Batch{Seq: b.seq, Rows: a.unexpired(rows)}, again)
}

func (a *applier) appendRows(ctx context.Context, b store.Batch, again bool) error {
	if len(b.Rows) == 0 {
		return nil
	}
	if again || b.Seq <= a.doubtful {
		held, known := a.held[b.Seq], a.held != nil && !again
		switch {
		case known && held == len(b.Rows):
			return nil
		case known && held == 0:
		default:
			if again {
				if err := a.records.Flush(ctx); err != nil {
					return err
				}
			}
			missing, err := a.records.Missing(ctx, b)
			if err != nil {
				return err
			}
			if len(missing) == 0 {
				return nil
			}
			b.Rows = missing
		}
	}
	return a.records.Append(ctx, b)
}

// unexpired drops rows that went past the retention between their admission and
// now, as the store would do with them a moment later.
func (a *applier) unexpired(rows []record.Row) []record.Row {
	earliest, _ := a.records.Bounds()
	limit := earliest.UnixNano()
	kept := rows[:0]
	for _, row := range rows {
		if row.Time >= limit {
			kept = append(kept, row)
		}
	}
	a.r.counts.expired.Add(uint64(len(rows) - len(kept)))
	return kept
}

// pause reports a failure and waits a little before the next try.
func (a *applier) pause(ctx context.Context, what string, err error) {
	if ctx.Err() != nil {
		return
	}
	a.log.Error(what, "error", err)
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
	}
}
