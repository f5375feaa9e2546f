// Package local keeps records and samples in embedded stores: records in
// VictoriaLogs' storage library, samples in Prometheus' time-series database.
package local

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/VictoriaMetrics/VictoriaLogs/lib/logstorage"

	"inquest/record"
	"inquest/store"
)

// RecordsOptions are the settings of a store of records.
type RecordsOptions struct {
	// Dir is the store's folder; it is created when it does not exist.
	Dir string
	// Retention is how long records are kept, by their own time; 30 days when zero.
	Retention time.Duration
	// FutureRetention is how far in the future a record's time may lie; 2 days when zero.
	FutureRetention time.Duration
	// MaxDiskBytes bounds the store; the oldest days go first. 0 means no bound.
	MaxDiskBytes int64
	// MinFreeBytes is the room left free on the disk, below which Append returns
	// [store.ErrUnavailable]; 256 MiB when zero.
	MinFreeBytes int64
	Logger       *slog.Logger
}

const day = 24 * time.Hour

// Records is a [store.Records] in a folder.
type Records struct {
	opts  RecordsOptions
	db    *logstorage.Storage
	space *spaceGuard
	rows  *logstorage.LogRows // reused by Append
	buf   []logstorage.Field

	mu    sync.Mutex
	dirty map[string]bool // days with rows since the last Sync, as 20060102
}

var _ store.Records = (*Records)(nil)

var initLibrary = sync.OnceFunc(func() {
	// The library reads flags of its own and panics before they are parsed.
	if !flag.Parsed() {
		_ = flag.CommandLine.Parse(nil)
	}
	// It would log each snapshot, that is each checkpoint.
	_ = flag.Set("loggerLevel", "ERROR")
})

// OpenRecords opens or creates the store. The caller makes sure that no other
// process has the folder open.
func OpenRecords(opts RecordsOptions) (*Records, error) {
	if opts.Retention == 0 {
		opts.Retention = 30 * day
	}
	if opts.FutureRetention == 0 {
		opts.FutureRetention = 2 * day
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	guard, err := prepare(opts.Dir, opts.MinFreeBytes)
	if err != nil {
		return nil, fmt.Errorf("cannot open the store of records: %w", err)
	}
	if err := guard.check(); err != nil {
		return nil, fmt.Errorf("cannot open the store of records: %w", err)
	}
	initLibrary()
	db := logstorage.MustOpenStorage(opts.Dir, &logstorage.StorageConfig{
		Retention:              opts.Retention,
		FutureRetention:        opts.FutureRetention,
		MaxBackfillAge:         opts.Retention,
		MaxDiskSpaceUsageBytes: opts.MaxDiskBytes,
		FlushInterval:          time.Second,
		SnapshotsMaxAge:        time.Hour,
		DefaultParallelReaders: 2,
	})
	r := &Records{
		opts: opts, db: db, space: guard,
		rows:  logstorage.GetLogRows(nil, nil, nil, nil, ""),
		dirty: map[string]bool{},
	}
	r.dropSnapshots()
	return r, nil
}

// dropSnapshots removes what a Sync left behind that did not finish.
func (r *Records) dropSnapshots() {
	for _, path := range r.db.PartitionSnapshotList() {
		if err := r.db.PartitionSnapshotDelete(path); err != nil {
			r.opts.Logger.Warn("cannot remove an old snapshot", "path", path, "error", err)
		}
	}
}

// Append implements [store.Records].
func (r *Records) Append(ctx context.Context, b store.Batch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := r.space.check(); err != nil {
		return err
	}
	earliest, latest := r.Bounds()
	from, to := earliest.UnixNano(), latest.UnixNano()
	outside := 0
	for i := range b.Rows {
		row := &b.Rows[i]
		if row.Time < from || row.Time > to {
			outside++
			continue
		}
		r.addRow(row)
	}
	r.flushRows()
	if outside > 0 {
		return fmt.Errorf("%d rows of batch %d lie outside the store's time bounds %s to %s", outside, b.Seq, earliest, latest)
	}
	return nil
}

func (r *Records) addRow(row *record.Row) {
	r.buf = r.buf[:0]
	for _, f := range row.Stream {
		r.buf = append(r.buf, logstorage.Field(f))
	}
	for _, f := range row.Fields {
		r.buf = append(r.buf, logstorage.Field(f))
	}
	r.markDirty(row.Time)
	r.rows.MustAdd(logstorage.TenantID{}, row.Time, r.buf, len(row.Stream))
	if r.rows.NeedFlush() {
		r.flushRows()
	}
}

func (r *Records) flushRows() {
	if r.rows.RowsCount() > 0 {
		r.db.MustAddRows(r.rows)
	}
	r.rows.ResetKeepSettings()
}

func (r *Records) markDirty(t int64) {
	name := time.Unix(0, t).UTC().Format("20060102")
	r.mu.Lock()
	r.dirty[name] = true
	r.mu.Unlock()
}

// Flush implements [store.Records].
func (r *Records) Flush(context.Context) error {
	r.db.DebugFlush()
	return nil
}

// Sync implements [store.Records]. A snapshot of a day writes what is in memory
// to files, syncs them and their folders, and links them: after it, the rows
// are durable in the store itself, and the snapshot can go.
func (r *Records) Sync(ctx context.Context) error {
	if err := r.space.check(); err != nil {
		return err
	}
	r.mu.Lock()
	days := r.dirty
	r.dirty = map[string]bool{}
	r.mu.Unlock()
	var errs []error
	for name := range days {
		if err := ctx.Err(); err != nil {
			r.mu.Lock()
			for n := range days {
				r.dirty[n] = true
			}
			r.mu.Unlock()
			return err
		}
		for _, path := range r.db.PartitionSnapshotMustCreate(name) {
			errs = append(errs, r.db.PartitionSnapshotDelete(path))
		}
	}
	return errors.Join(errs...)
}

// Bounds implements [store.Records].
func (r *Records) Bounds() (earliest, latest time.Time) {
	now := time.Now()
	// A margin for the time between the check and the library's own.
	return now.Add(-r.opts.Retention).Add(time.Minute), now.Add(r.opts.FutureRetention).Add(-time.Minute)
}

// Stats implements [store.Records].
func (r *Records) Stats() store.RecordStats {
	var s logstorage.StorageStats
	s.MinTimestamp, s.MaxTimestamp = 1<<62, -1<<62
	r.db.UpdateStats(&s)
	stats := store.RecordStats{
		Rows:      s.PendingRows + s.InmemoryRowsCount + s.SmallPartRowsCount + s.BigPartRowsCount,
		DiskBytes: s.CompressedSmallPartSize + s.CompressedBigPartSize + s.IndexdbSizeBytes,
	}
	if s.MinTimestamp <= s.MaxTimestamp {
		stats.Earliest, stats.Latest = time.Unix(0, s.MinTimestamp), time.Unix(0, s.MaxTimestamp)
	}
	return stats
}

// Close implements [store.Records].
func (r *Records) Close() error {
	if err := r.space.check(); err != nil {
		// Closing would write what is in memory, and the library ends the process
		// when it cannot. The journal has it.
		return fmt.Errorf("the store of records was not closed, its last rows come from the journal at the next start: %w", err)
	}
	logstorage.PutLogRows(r.rows)
	r.db.MustClose()
	return nil
}

// prepare makes the folder and proves that it can be written.
func prepare(dir string, minFree int64) (*spaceGuard, error) {
	if minFree == 0 {
		minFree = 256 << 20
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	probe, err := os.CreateTemp(dir, ".probe-*")
	if err != nil {
		return nil, fmt.Errorf("the folder cannot be written: %w", err)
	}
	probe.Close()
	if err := os.Remove(probe.Name()); err != nil {
		return nil, err
	}
	return &spaceGuard{dir: dir, minFree: minFree, statfs: freeBytes}, nil
}
