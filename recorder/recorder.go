// Package recorder is the way of the data from a batch in memory to the
// stores: what is admitted goes into the journal, the sender is answered once
// the journal holds it on disk, and one applier carries it from the journal to
// records and samples.
//
// A record is acknowledged when Logs, Traces or Metrics returns nil. From then
// on it survives a kill of the process and loss of power, and it reaches the
// stores exactly once.
package recorder

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"inquest/admit"
	"inquest/admit/decision"
	"inquest/journal"
	"inquest/journal/vfs"
	"inquest/record/alias"
	"inquest/store"
)

// Options are the parts that a Recorder works with. It closes the journal and
// the stores when it is closed.
type Options struct {
	Journal journal.Journal
	Records store.Records
	Samples store.Samples
	// Dir holds the checkpoint and what could not be applied.
	Dir string
	// FS is the file system of Dir; the operating system's when nil.
	FS vfs.FS
	// SyncInterval is the longest time between two checkpoints while data
	// comes in; 30 s when zero. When none comes in, a quarter of it. A longer
	// interval means more to re-apply after a crash, never a loss; a shorter one
	// makes the stores write small parts, which take more room until merged.
	SyncInterval time.Duration
	// SyncBytes forces a checkpoint after this much payload; 256 MiB when zero.
	SyncBytes int64
	// QueueBytes bounds the decoded batches kept in memory between journal and
	// stores, in bytes of their encoded form; 96 MiB when zero. Beyond it the
	// applier reads from the journal.
	QueueBytes int64
	// Aliases gives canonical names to what comes in under other ones; nil gives
	// none. Another table than before the last stop changes only what is new.
	Aliases *alias.Table
	// Policy is what is asked of log records; it may be nil.
	Policy *admit.Policy
	// Decisions recognises decision logs and spans named for decisions; nil
	// recognises none.
	Decisions *decision.Recogniser
	// Payloads keeps raw inputs; nil keeps none. It is closed with the recorder.
	Payloads *Payloads
	// OnLetters is told of dead letters as they come, before they are durable.
	// It must return at once. It may be nil.
	OnLetters func([]admit.Letter)
	Logger    *slog.Logger
}

func (o *Options) setDefaults() {
	if o.FS == nil {
		o.FS = vfs.OS{}
	}
	if o.SyncInterval == 0 {
		o.SyncInterval = 30 * time.Second
	}
	if o.SyncBytes == 0 {
		o.SyncBytes = 256 << 20
	}
	if o.QueueBytes == 0 {
		o.QueueBytes = 96 << 20
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

// Recorder takes telemetry and keeps it. All methods may be called
// concurrently.
type Recorder struct {
	opts   Options
	log    *slog.Logger
	queue  *queue
	apply  *applier
	counts counters
	closed atomic.Bool
	// letters is held by whoever works on dead letters.
	letters sync.Mutex
}

// New starts a recorder. Entries that the journal holds and the stores may not
// hold are applied in the background; [Recorder.CatchUp] waits for it.
func New(opts Options) (*Recorder, error) {
	opts.setDefaults()
	if opts.Policy == nil {
		opts.Policy = &admit.Policy{}
	}
	cp, err := readCheckpoint(opts.FS, opts.Dir)
	if err != nil {
		return nil, err
	}
	last := opts.Journal.Stats().Last
	if cp > last {
		// The stores are ahead of the journal only if its folder was removed or
		// replaced by hand: numbers would be given twice, and exactness is lost.
		return nil, fmt.Errorf("cannot start: the stores hold journal entry %d but the journal ends at %d: bring back the journal folder that belongs to %s, or move both away", cp, last, opts.Dir)
	}
	r := &Recorder{opts: opts, log: opts.Logger}
	r.queue = newQueue(cp, last, opts.QueueBytes)
	r.apply = newApplier(r, cp, last)
	r.apply.start()
	return r, nil
}

// Logs records a batch of log records. When it returns nil, all of them are
// durable, except those that the [admit.Report] of ctx lists as rejected. It
// takes ownership of ld. Errors are [journal.ErrFull] and
// [journal.ErrClosed], after which the sender should retry, and
// [journal.ErrTooLarge].
func (r *Recorder) Logs(ctx context.Context, ld plog.Logs) error {
	received := time.Now().UnixNano()
	rep := reportOf(ctx)
	total := ld.LogRecordCount()
	kept, inputs := r.opts.Policy.Logs(ld, r.bounds(r.opts.Records), received, rep)
	if err := r.captureInputs(ctx, inputs, r.opts.Payloads != nil && r.opts.Payloads.Required); err != nil {
		return err
	}
	r.counts.rejectedLogs.Add(uint64(total - kept))
	b := &batch{received: received, rows: r.lettersOf(rep, received)}
	if kept > 0 {
		b.logs = &ld
	}
	if err := r.record(ctx, rep, b); err != nil {
		return err
	}
	r.counts.acceptedLogs.Add(uint64(kept))
	return nil
}

// Traces records a batch of spans, as [Recorder.Logs] does.
func (r *Recorder) Traces(ctx context.Context, td ptrace.Traces) error {
	received := time.Now().UnixNano()
	rep := reportOf(ctx)
	total := td.SpanCount()
	kept := r.opts.Policy.Spans(td, r.bounds(r.opts.Records), received, rep)
	r.counts.rejectedSpans.Add(uint64(total - kept))
	b := &batch{received: received, rows: r.lettersOf(rep, received)}
	if kept > 0 {
		b.traces = &td
	}
	if err := r.record(ctx, rep, b); err != nil {
		return err
	}
	r.counts.acceptedSpans.Add(uint64(kept))
	return nil
}

// Metrics records a batch of metric points and their exemplars, as
// [Recorder.Logs] does.
func (r *Recorder) Metrics(ctx context.Context, md pmetric.Metrics) error {
	received := time.Now().UnixNano()
	rep := reportOf(ctx)
	total := md.DataPointCount()
	kept := admit.Metrics(md, r.pointBounds(), received, rep)
	r.counts.rejectedPoints.Add(uint64(total - kept))
	b := &batch{received: received, rows: r.lettersOf(rep, received)}
	if kept > 0 {
		b.metrics = &md
	}
	if err := r.record(ctx, rep, b); err != nil {
		return err
	}
	r.counts.acceptedPoints.Add(uint64(kept))
	return nil
}

func (r *Recorder) bounds(s interface {
	Bounds() (earliest, latest time.Time)
},
) admit.Bounds {
	earliest, latest := s.Bounds()
	return admit.Bounds{Earliest: earliest, Latest: latest}
}

// pointBounds are those of both stores: exemplars become records.
func (r *Recorder) pointBounds() admit.Bounds {
	bounds, also := r.bounds(r.opts.Samples), r.bounds(r.opts.Records)
	if also.Earliest.After(bounds.Earliest) {
		bounds.Earliest = also.Earliest
	}
	if also.Latest.Before(bounds.Latest) {
		bounds.Latest = also.Latest
	}
	return bounds
}

// reportOf returns the report that ctx carries, or a new one: what is refused
// becomes dead letters, whoever sent it.
func reportOf(ctx context.Context) *admit.Report {
	if rep := admit.ReportFrom(ctx); rep != nil {
		return rep
	}
	return &admit.Report{}
}

// record appends b in the encoding that it came in, if there is one that says
// just what b holds.
func (r *Recorder) record(ctx context.Context, rep *admit.Report, b *batch) error {
	if b.empty() {
		return nil
	}
	kind, payload, err := b.encode(rep.Body())
	if err != nil {
		return err
	}
	return r.append(ctx, b, kind, payload)
}

func (r *Recorder) append(ctx context.Context, b *batch, kind journal.Kind, payload []byte) error {
	if r.closed.Load() {
		return fmt.Errorf("cannot record: %w", journal.ErrClosed)
	}
	b.size = int64(len(payload))
	if r.apply.healthy() {
		r.queue.waitRoom(ctx, maxThrottle)
	}
	r.queue.begin()
	defer r.queue.end()
	seq, err := r.opts.Journal.Append(ctx, kind, b.received, payload)
	if err != nil {
		r.counts.refusedBatches.Add(1)
		// When ctx ended first the entry may be durable all the same.
		r.queue.raise(r.opts.Journal.Stats().Last)
		return fmt.Errorf("cannot record: %w", err)
	}
	b.seq = seq
	r.queue.push(b)
	return nil
}

// maxThrottle is how long a sender is held back to let the applier catch up.
// It keeps the stores close behind the journal without blocking anyone when
// they cannot follow.
const maxThrottle = time.Second

// CatchUp returns nil when all that was acknowledged before the call is visible
// to queries, or the error of ctx.
func (r *Recorder) CatchUp(ctx context.Context) error {
	target := r.queue.head()
	if err := r.apply.done.wait(ctx, target); err != nil {
		return fmt.Errorf("the stores are %d batches behind: %w", target-min(target, r.apply.done.get()), err)
	}
	if r.apply.flushed.get() >= target {
		return nil
	}
	done := r.apply.done.get()
	if err := r.opts.Records.Flush(ctx); err != nil {
		return fmt.Errorf("cannot make records visible: %w", err)
	}
	r.apply.flushed.raise(done)
	return nil
}

// Records and Samples are the stores, for queries. What was acknowledged is
// visible there after [Recorder.CatchUp].
func (r *Recorder) Records() store.RecordReader { return r.opts.Records }

// Samples is the store of metric points, for queries.
func (r *Recorder) Samples() store.SampleReader { return r.opts.Samples }

// Close applies what ctx leaves time for, syncs the stores and closes them.
// What was not applied stays in the journal and is applied at the next start.
func (r *Recorder) Close(ctx context.Context) error {
	if r.closed.Swap(true) {
		return nil
	}
	waitErr := r.apply.done.wait(ctx, r.queue.head())
	if waitErr != nil {
		r.log.Warn("closing before the stores caught up; the rest is applied at the next start", "behind", r.queue.head()-r.apply.done.get())
	}
	r.apply.stop()
	var payloadErr error
	if r.opts.Payloads != nil {
		payloadErr = r.opts.Payloads.Store.Close()
	}
	return errors.Join(
		payloadErr,
		r.opts.Records.Close(),
		r.opts.Samples.Close(),
		r.opts.Journal.Close(),
	)
}
