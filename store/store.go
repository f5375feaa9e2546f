// Package store says what inquest asks of the places where telemetry lies:
// records (logs, spans, exemplars, findings) and samples (metrics). It holds
// interfaces only; package local keeps them in embedded stores. Every
// implementation passes package storetest.
//
// Queries are in two languages everywhere: LogsQL for records, PromQL for
// samples. Callers push filtering and aggregation down in them.
package store

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"inquest/record"
)

// ErrQuery marks an error that the query's author must mend: a syntax error,
// an unknown function, a limit that the query exceeds. Implementations wrap it.
var ErrQuery = errors.New("bad query")

// ErrUnavailable marks an error that may go away by itself: a remote store that
// does not answer, a disk without room. Nothing of the call's data was refused
// for good. Implementations wrap it.
var ErrUnavailable = errors.New("store unavailable")

// Batch is the rows that one journal entry becomes. Applying the same entry
// gives the same rows in the same order.
type Batch struct {
	// Seq is the journal entry's number; it is also in each row as
	// [record.FieldSeq].
	Seq  uint64
	Rows []record.Row
}

// Records keeps records. All methods may be called concurrently, except that
// Append, Missing and Sync are called by one goroutine, the applier.
type Records interface {
	RecordReader

	// Append adds the batch's rows. It MUST NOT keep references to them after
	// it returns. Rows become visible to queries within a second or at the next
	// Flush, and durable at the next Sync. Rows whose time lies outside
	// [Records.Bounds] MUST be reported in an error, never dropped silently; the
	// caller checks before, so this is a defect. On [ErrUnavailable] the caller
	// MAY append the same batch again, after asking Missing.
	Append(ctx context.Context, b Batch) error

	// Missing returns the rows of b that the store does not hold, each as often
	// as it is missing. It makes re-application after a crash exact: part of a
	// batch may have reached the disk. It is called only between opening the
	// store and the first Append of the batch.
	Missing(ctx context.Context, b Batch) ([]record.Row, error)

	// Flush makes all rows appended before the call visible to queries that
	// begin after it returns.
	Flush(ctx context.Context) error

	// Sync returns nil only when every row appended before the call survives
	// power loss.
	Sync(ctx context.Context) error

	// Bounds returns the earliest and the latest time that Append takes now.
	Bounds() (earliest, latest time.Time)

	// Stats tells about size and content.
	Stats() RecordStats

	// Close syncs and releases the store. No other method may be called after.
	Close() error
}

// RecordReader answers questions about records. It is what the engine and the
// API see.
type RecordReader interface {
	// QueryRecords runs q and calls fn once for each row of the answer, never
	// concurrently. The fields are valid only during the call. Rows come in no
	// order unless the query sorts them. An error from fn ends the query and is
	// returned as it is. A bad query is [ErrQuery].
	QueryRecords(ctx context.Context, q RecordQuery, fn func(fields []record.Field) error) error
}

// RecordQuery is a LogsQL query over a time range.
type RecordQuery struct {
	// LogsQL is the query, pipes included.
	LogsQL string
	// From (inclusive) and To (exclusive) bound the rows' times, in addition to
	// any _time filter of the query. Zero means unbounded.
	From, To time.Time
	// Limit is the largest number of rows returned; 0 means no limit. Without a
	// sort in the query it is unspecified which rows come.
	Limit int
}

// RecordStats is what [Records.Stats] returns.
type RecordStats struct {
	Rows      uint64    `json:"rows"`       // rows held
	DiskBytes uint64    `json:"disk_bytes"` // compressed bytes on disk
	Earliest  time.Time `json:"earliest,omitzero"`
	Latest    time.Time `json:"latest,omitzero"`
}

// Samples keeps metric points. All methods may be called concurrently, except
// that AppendMetrics and Sync are called by one goroutine, the applier.
type Samples interface {
	SampleReader

	// AppendMetrics adds the points of md, named and typed as OpenTelemetry's
	// Prometheus compatibility says, resource attributes as labels. Appending a
	// point again (same series, same time, same value) MUST change nothing, so
	// re-application after a crash is exact. Points that cannot be stored are
	// returned as rejections, and the rest is stored. An error means that
	// nothing is known to be stored and the caller MAY repeat the call.
	AppendMetrics(ctx context.Context, md pmetric.Metrics) ([]Rejection, error)

	// Sync returns nil only when every point appended before the call survives
	// power loss. Points are visible when AppendMetrics returns.
	Sync(ctx context.Context) error

	// Bounds returns the earliest and the latest time that AppendMetrics takes now.
	Bounds() (earliest, latest time.Time)

	Stats() SampleStats
	Close() error
}

// Rejection is a part of a batch that a store cannot take, and why.
type Rejection struct {
	Points int
	Reason string
}

// SampleReader answers questions about samples. Exemplars are records
// ([record.TypeExemplar]), since they outlive the head of a time-series store
// only there.
type SampleReader interface {
	// QueryInstant evaluates a PromQL expression at one time. A bad query is
	// [ErrQuery].
	QueryInstant(ctx context.Context, expr string, at time.Time) (Result, error)
	// QueryRange evaluates a PromQL expression at from, from+step, … ≤ to.
	QueryRange(ctx context.Context, expr string, from, to time.Time, step time.Duration) (Result, error)
	// Series returns the label sets that match any of the selectors
	// (`up{job="x"}`) and have a sample between from and to, sorted. At most
	// limit of them, when limit is above 0.
	Series(ctx context.Context, selectors []string, from, to time.Time, limit int) ([]labels.Labels, error)
	// LabelNames and LabelValues are sorted; without selectors they cover all series.
	LabelNames(ctx context.Context, selectors []string, from, to time.Time, limit int) ([]string, error)
	LabelValues(ctx context.Context, name string, selectors []string, from, to time.Time, limit int) ([]string, error)
	// Metadata returns type, unit and help by metric name, for the names asked
	// or, when none is asked, for all.
	Metadata(ctx context.Context, names ...string) (map[string]Metadata, error)
}

// Result is the answer to a PromQL query. Value is a promql.Vector,
// promql.Matrix, promql.Scalar or promql.String that the caller owns.
type Result struct {
	Value    parser.Value
	Warnings []string
}

// Metadata describes a metric.
type Metadata struct {
	Type string // counter, gauge, histogram, summary, unknown
	Unit string
	Help string
}

// SampleStats is what [Samples.Stats] returns.
type SampleStats struct {
	Series    uint64    `json:"series"` // active series
	DiskBytes uint64    `json:"disk_bytes"`
	Earliest  time.Time `json:"earliest,omitzero"`
	Latest    time.Time `json:"latest,omitzero"`
}
