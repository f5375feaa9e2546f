package local

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"runtime"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage/remote/otlptranslator/prometheusremotewrite"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/util/compression"

	"inquest/store"
)

// SamplesOptions are the settings of [OpenSamples]. The zero value of each but
// Dir gives its default.
type SamplesOptions struct {
	// Dir is the folder that holds the samples. It is made when missing.
	Dir string
	// Retention is how long samples are kept, by their time. Samples that are
	// older cannot be appended. Default 30 days, at least one day.
	Retention time.Duration
	// FutureRetention is how far ahead of now a sample's time may be. Default two
	// days, at least one day.
	FutureRetention time.Duration
	// MaxDiskBytes is the size above which the oldest blocks are deleted.
	// Default 0: no limit.
	MaxDiskBytes int64
	// MinFreeBytes is the free space below which AppendMetrics refuses. Default
	// [DefaultMinFreeBytes]; negative: none.
	MinFreeBytes int64
	// QueryTimeout bounds the time of one query. Default two minutes.
	QueryTimeout time.Duration
	// MaxSamples is how many samples one query may hold in memory (16 bytes
	// each). Default 20,000,000.
	MaxSamples int
	// MaxQueries is how many queries run at once; more wait. Default: four times
	// the number of processors, at least 8.
	MaxQueries int
	// Lookback is how old a sample may be to count as a series' present value.
	// Default five minutes.
	Lookback time.Duration
	// FreeBytes replaces the system's answer about free space.
	FreeBytes FreeBytes
	// Logger gets the database's messages. Default: nothing is logged.
	Logger *slog.Logger
}

func (o SamplesOptions) withDefaults() SamplesOptions {
	if o.Retention == 0 {
		o.Retention = 30 * day
	}
	if o.FutureRetention == 0 {
		o.FutureRetention = 2 * day
	}
	o.Retention = max(o.Retention, day)
	o.FutureRetention = max(o.FutureRetention, day)
	if o.QueryTimeout <= 0 {
		o.QueryTimeout = 2 * time.Minute
	}
	if o.MaxSamples <= 0 {
		o.MaxSamples = 20_000_000
	}
	if o.MaxQueries <= 0 {
		o.MaxQueries = max(4*runtime.GOMAXPROCS(0), 8)
	}
	if o.Lookback <= 0 {
		o.Lookback = 5 * time.Minute
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Samples is a [store.Samples] on Prometheus' time-series database.
//
// Names and labels follow OpenTelemetry's Prometheus compatibility: names with
// unit and type suffixes, all but letters, digits and underscore replaced.
// Every resource attribute becomes a label of each series, so there is no
// target_info series: it would only repeat them. In addition "job" is
// service.namespace/service.name and "instance" is service.instance.id, as
// Prometheus users expect. Attributes of instrumentation scopes are not stored.
// Exponential histograms become native histograms, explicit ones classic
// histograms; points of delta temporality are stored as they come.
type Samples struct {
	opts   SamplesOptions
	guard  diskGuard
	db     *tsdb.DB
	engine *promql.Engine
	parse  parser.Parser
	meta   *metadataFile

	gate gate

	// Of AppendMetrics and Sync, which one goroutine calls.
	conv     *prometheusremotewrite.PrometheusConverter
	unsynced bool
	logs     [2]logSync

	// compaction of out-of-order samples, at most one at a time.
	compacting chan struct{}
	maxLate    int64 // bytes of their log above which it starts
}

var _ store.Samples = (*Samples)(nil)

// OpenSamples opens the samples in o.Dir, or makes them. Only one process can
// have a folder open.
func OpenSamples(o SamplesOptions) (_ *Samples, err error) {
	o = o.withDefaults()
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot open samples: %w", err)
		}
	}()
	if err := prepareDir(o.Dir); err != nil {
		return nil, err
	}
	s := &Samples{
		opts:       o,
		guard:      newDiskGuard(o.Dir, o.MinFreeBytes, o.FreeBytes),
		parse:      parser.NewParser(parser.Options{}),
		conv:       prometheusremotewrite.NewPrometheusConverter(nil),
		compacting: make(chan struct{}, 1),
		maxLate:    maxLateBytes,
	}
	if err := s.guard.mayFlush(); err != nil {
		return nil, err
	}
	if s.meta, err = openMetadata(filepath.Join(o.Dir, "metadata.json")); err != nil {
		return nil, err
	}
	dir := filepath.Join(o.Dir, "tsdb")
	if s.db, err = tsdb.Open(dir, o.Logger, nil, s.dbOptions(), nil); err != nil {
		return nil, err
	}
	s.logs = [2]logSync{{dir: filepath.Join(dir, "wal")}, {dir: filepath.Join(dir, "wbl")}}
	s.engine = promql.NewEngine(promql.EngineOpts{
		Logger:               o.Logger,
		MaxSamples:           o.MaxSamples,
		Timeout:              o.QueryTimeout,
		LookbackDelta:        o.Lookback,
		EnableAtModifier:     true,
		EnableNegativeOffset: true,
		NoStepSubqueryIntervalFn: func(int64) int64 {
			return time.Minute.Milliseconds()
		},
		Parser: s.parse,
	})
	s.gate.open(o.MaxQueries)
	return s, nil
}

func (s *Samples) dbOptions() *tsdb.Options {
	o := tsdb.DefaultOptions()
	// Measured from the newest sample, which may lie in the future.
	keep := s.opts.Retention + s.opts.FutureRetention
	o.RetentionDuration = keep.Milliseconds()
	o.MaxBytes = s.opts.MaxDiskBytes
	o.WALCompression = compression.Snappy
	// Everything within Bounds must be taken, in whatever order it comes: a
	// sample from tomorrow must not shut out those of today, and an old incident
	// can be imported beside live data.
	o.OutOfOrderTimeWindow = (keep + time.Hour).Milliseconds()
	// As in Prometheus: large blocks are made of small ones up to a tenth of the
	// retention.
	o.MaxBlockDuration = max(min(keep/10, 31*day).Milliseconds(), tsdb.DefaultBlockDuration)
	return o
}

// Bounds implements [store.Samples].
func (s *Samples) Bounds() (earliest, latest time.Time) {
	lo, hi := s.bounds(time.Now(), time.Minute)
	return time.UnixMilli(lo), time.UnixMilli(hi)
}

// bounds returns milliseconds since the epoch.
func (s *Samples) bounds(now time.Time, slack time.Duration) (lo, hi int64) {
	lo = now.Add(slack - s.opts.Retention).UnixMilli()
	hi = now.Add(s.opts.FutureRetention - slack).UnixMilli()
	return max(lo, 0), hi
}

// Stats implements [store.Samples].
func (s *Samples) Stats() store.SampleStats {
	leave, err := s.gate.enter()
	if err != nil {
		return store.SampleStats{}
	}
	defer leave()
	head := s.db.Head()
	out := store.SampleStats{Series: head.NumSeries(), DiskBytes: uint64(max(head.Size(), 0))}
	lo := min(head.MinTime(), head.MinOOOTime())
	hi := max(head.MaxTime(), head.MaxOOOTime())
	for _, b := range s.db.Blocks() {
		out.DiskBytes += uint64(b.Size())
		// A block's end is exclusive.
		lo, hi = min(lo, b.MinTime()), max(hi, b.MaxTime()-1)
	}
	if lo != math.MaxInt64 && hi != math.MinInt64 && lo <= hi {
		out.Earliest, out.Latest = time.UnixMilli(lo), time.UnixMilli(hi)
	}
	return out
}

// Close implements [store.Samples]. It ends running queries.
func (s *Samples) Close() error {
	done, first := s.gate.shut()
	if !first {
		return nil
	}
	defer done()
	s.compacting <- struct{}{} // wait for the one that runs
	err := s.sync(context.Background())
	if cerr := s.db.Close(); err == nil {
		err = cerr
	}
	if cerr := s.engine.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("cannot close samples: %w", err)
	}
	return nil
}
