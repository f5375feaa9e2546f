package local

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/VictoriaMetrics/VictoriaLogs/lib/logstorage"

	"inquest/store"
)

// RecordsOptions are the settings of [OpenRecords]. The zero value of each but
// Dir gives its default.
type RecordsOptions struct {
	// Dir is the folder that holds the records. It is made when missing.
	Dir string
	// Retention is how long records are kept, by their time. Records that are
	// older cannot be appended, so importing an old incident needs a longer one.
	// Default 30 days, at least one day.
	Retention time.Duration
	// FutureRetention is how far ahead of now a record's time may be. Default
	// two days, at least one day.
	FutureRetention time.Duration
	// MaxDiskBytes is the size above which the oldest days are deleted. The last
	// two days are kept always. Default 0: no limit.
	MaxDiskBytes int64
	// MinFreeBytes is the free space below which Append refuses. Default
	// [DefaultMinFreeBytes]; negative: none.
	MinFreeBytes int64
	// MemoryBytes bounds caches and query state of all record stores of the
	// process; the first store that is opened sets it. Default
	// [DefaultMemoryBytes].
	MemoryBytes int64
	// MaxQueries is how many queries run at once; more wait. Default: four times
	// the number of processors, at least 8.
	MaxQueries int
	// FreeBytes replaces the system's answer about free space.
	FreeBytes FreeBytes
	// Logger gets the library's warnings. Default: nothing is logged.
	Logger *slog.Logger
}

const day = 24 * time.Hour

func (o RecordsOptions) withDefaults() RecordsOptions {
	if o.Retention == 0 {
		o.Retention = 30 * day
	}
	if o.FutureRetention == 0 {
		o.FutureRetention = 2 * day
	}
	o.Retention = max(o.Retention, day)
	o.FutureRetention = max(o.FutureRetention, day)
	if o.MemoryBytes <= 0 {
		o.MemoryBytes = DefaultMemoryBytes
	}
	if o.MaxQueries <= 0 {
		o.MaxQueries = max(4*runtime.GOMAXPROCS(0), 8)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Records is a [store.Records] on VictoriaLogs' storage library.
type Records struct {
	opts    RecordsOptions
	guard   diskGuard
	storage *logstorage.Storage

	gate gate

	// floor is the earliest time that is not in a day deleted for its size, in
	// ns; days are those that this store has or had.
	floorMu sync.Mutex
	floor   int64
	days    map[int64]struct{}

	app appender
}

var _ store.Records = (*Records)(nil)

// OpenRecords opens the records in o.Dir, or makes them. Only one process can
// have a folder open.
func OpenRecords(o RecordsOptions) (_ *Records, err error) {
	o = o.withDefaults()
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot open records: %w", err)
		}
	}()
	if err := prepareDir(o.Dir); err != nil {
		return nil, err
	}
	if err := setupLogstorage(o.Logger, o.MemoryBytes); err != nil {
		return nil, err
	}
	// A folder of its own: logstorage wants to make it by itself.
	dir := filepath.Join(o.Dir, "logstorage")
	if _, err := os.Stat(dir); err == nil {
		if err := probeLock(filepath.Join(dir, "flock.lock")); err != nil {
			return nil, err
		}
	}
	r := &Records{
		opts:  o,
		guard: newDiskGuard(o.Dir, o.MinFreeBytes, o.FreeBytes),
	}
	if err := r.guard.mayFlush(); err != nil {
		return nil, err
	}
	if err := r.openStorage(dir); err != nil {
		return nil, err
	}
	r.gate.open(o.MaxQueries)
	r.app.init()
	r.watchDays()
	return r, nil
}

func (r *Records) openStorage(dir string) (err error) {
	// The library panics on what it cannot read.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	// Known before the library opens it, since it deletes days at once.
	if r.days, err = daysOf(filepath.Join(dir, "partitions")); err != nil {
		return err
	}
	r.storage = logstorage.MustOpenStorage(dir, &logstorage.StorageConfig{
		Retention:              r.opts.Retention,
		FutureRetention:        r.opts.FutureRetention,
		MaxDiskSpaceUsageBytes: r.opts.MaxDiskBytes,
		FlushInterval:          flushInterval,
	})
	// Left over when a Sync was cut off by a crash.
	r.storage.MustDeleteStalePartitionSnapshots(0)
	return nil
}

// daysOf returns the days, in ns, that have a folder in dir.
func daysOf(dir string) (map[int64]struct{}, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return parseDays(names), nil
}

func parseDays(names []string) map[int64]struct{} {
	days := make(map[int64]struct{}, len(names))
	for _, name := range names {
		if t, err := time.Parse(partitionFormat, name); err == nil {
			days[t.UnixNano()] = struct{}{}
		}
	}
	return days
}

// Bounds implements [store.Records]. The earliest time is a minute inside the
// retention, so that a row does not expire between the check and Append.
func (r *Records) Bounds() (earliest, latest time.Time) {
	if leave, err := r.gate.enter(); err == nil {
		r.watchDays()
		leave()
	}
	lo, hi := r.bounds(time.Now(), time.Minute)
	return time.Unix(0, lo), time.Unix(0, hi)
}

func (r *Records) bounds(now time.Time, slack time.Duration) (lo, hi int64) {
	lo = now.Add(slack - r.opts.Retention).UnixNano()
	hi = now.Add(r.opts.FutureRetention - slack).UnixNano()
	r.floorMu.Lock()
	defer r.floorMu.Unlock()
	// Days are counted from the epoch; the library mixes up those before it.
	return max(lo, r.floor, 0), hi
}

// watchDays notices days that were deleted for their size: the library takes no
// rows for them any more, and drops them silently.
func (r *Records) watchDays() {
	r.floorMu.Lock()
	defer r.floorMu.Unlock()
	// Under the lock: an older list than r.days would make new days look deleted.
	now := parseDays(r.storage.PartitionList())
	for d := range r.days {
		if _, ok := now[d]; !ok {
			r.floor = max(r.floor, d+int64(day))
		}
	}
	r.days = now
}

// partitionFormat is how the library names the folder of a day.
const partitionFormat = "20060102"

// Stats implements [store.Records]. Rows appended in the last second may not be
// counted.
func (r *Records) Stats() store.RecordStats {
	leave, err := r.gate.enter()
	if err != nil {
		return store.RecordStats{}
	}
	defer leave()
	s := r.stats()
	out := store.RecordStats{
		Rows:      s.RowsCount() + s.PendingRows,
		DiskBytes: s.CompressedSmallPartSize + s.CompressedBigPartSize + s.IndexdbSizeBytes,
	}
	if s.MinTimestamp != math.MinInt64 && s.MinTimestamp != math.MaxInt64 {
		out.Earliest = time.Unix(0, s.MinTimestamp)
	}
	if s.MaxTimestamp != math.MinInt64 && s.MaxTimestamp != math.MaxInt64 {
		out.Latest = time.Unix(0, s.MaxTimestamp)
	}
	return out
}

func (r *Records) stats() *logstorage.StorageStats {
	var s logstorage.StorageStats
	r.storage.UpdateStats(&s)
	return &s
}

// Close implements [store.Records]. It ends running queries.
func (r *Records) Close() error {
	done, first := r.gate.shut()
	if !first {
		return nil
	}
	defer done()
	r.awaitAdding()
	// Closing writes out what is in memory, and panics where it cannot.
	err := r.guard.mayFlush()
	if err != nil {
		return fmt.Errorf("cannot close records: what was not synced is not written: %w", err)
	}
	r.awaitMerges(time.Second)
	r.storage.MustClose()
	return nil
}

// awaitMerges gives running merges time to end. The library lets go of the index
// while they still read where it is; that is harmless, since only deletions by
// filter use it, but it is a data race.
func (r *Records) awaitMerges(limit time.Duration) {
	deadline := time.Now().Add(limit)
	for calm := 0; calm < 2 && time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if s := r.stats(); s.ActiveInmemoryMerges+s.ActiveSmallMerges+s.ActiveBigMerges > 0 {
			calm = 0
			continue
		}
		calm++
	}
}
