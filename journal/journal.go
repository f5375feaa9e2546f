// Package journal keeps batches on disk from the moment their sender is
// answered until the stores hold them. An entry that Append acknowledged is
// never lost: not by a crash of the process, not by loss of power.
package journal

import (
	"context"
	"errors"
	"io"
)

// Kind says how an entry's payload is encoded.
type Kind uint8

// Kinds of payload. Values are part of the on-disk format and never change.
const (
	KindLogs    Kind = 1 // OTLP ExportLogsServiceRequest, protobuf
	KindTraces  Kind = 2 // OTLP ExportTraceServiceRequest, protobuf
	KindMetrics Kind = 3 // OTLP ExportMetricsServiceRequest, protobuf
	KindRows    Kind = 4 // rows that inquest itself writes, such as verdicts, JSON
	// KindParts is several payloads that are applied together: for each its
	// kind (1 byte), its length (unsigned varint) and its bytes.
	KindParts Kind = 5
)

// Entry is one acknowledged batch.
type Entry struct {
	// Seq numbers entries 1, 2, 3 … without gaps in the order of the journal. It
	// is never given twice, also not after a crash.
	Seq uint64
	// Received is when the batch arrived, ns since the Unix epoch.
	Received int64
	Kind     Kind
	// Payload is the encoded batch.
	Payload []byte
}

// Errors that Append returns, wrapped.
var (
	// ErrFull means there is no room on disk or the journal is at its limit. The
	// entry is not stored. It may succeed later: the sender should retry.
	ErrFull = errors.New("journal full")
	// ErrTooLarge means the payload is above the journal's limit and will never
	// be taken.
	ErrTooLarge = errors.New("entry too large")
	// ErrClosed means the journal is closed or was stopped by an I/O error.
	ErrClosed = errors.New("journal closed")
)

// Journal is an append-only sequence of entries. All methods may be called
// concurrently, unless stated otherwise.
type Journal interface {
	// Append stores one entry and returns its number. It returns nil only when
	// the entry is durable: written, and synced to the device. Concurrent calls
	// share a sync (group commit). When ctx ends first, Append returns its error
	// and the entry MAY be stored all the same, as with any lost answer. After
	// any other error the entry is not stored and never appears to a reader,
	// unless the error says that this is unknown. Append MUST NOT keep payload
	// after it returns.
	Append(ctx context.Context, kind Kind, received int64, payload []byte) (seq uint64, err error)

	// Read returns a reader whose first entry is the first with Seq ≥ from that
	// the journal still holds.
	Read(from uint64) (Reader, error)

	// Truncate lets go of entries with Seq < before. It MAY keep more than that,
	// and never lets go of others.
	Truncate(before uint64) error

	// Stats tells about content and health.
	Stats() Stats

	// Close waits for running calls of Append and releases the journal.
	Close() error
}

// Reader walks through durable entries in order. It is used by one goroutine.
type Reader interface {
	// Next returns the next entry. It waits for one to become durable until ctx
	// ends. Payload is valid until the next call. A damaged range that had to be
	// set aside is skipped; it is reported in [Stats] and by [Reader.Skipped].
	// After Close of the journal it returns [io.EOF].
	Next(ctx context.Context) (Entry, error)
	// Skipped returns how many entries or, where they could not be counted,
	// damaged ranges this reader passed over.
	Skipped() uint64
	io.Closer
}

// Stats is a snapshot of a journal's state and of its work since opening.
type Stats struct {
	First         uint64 `json:"first"` // number of the first entry held
	Last          uint64 `json:"last"`  // number of the last entry; 0 when none was ever written
	Segments      int    `json:"segments"`
	Bytes         int64  `json:"bytes"` // on disk
	Appends       uint64 `json:"appends"`
	AppendedBytes uint64 `json:"appended_bytes"`
	Syncs         uint64 `json:"syncs"`
	SyncNanos     uint64 `json:"sync_ns"`   // total time in sync calls
	Failures      uint64 `json:"failures"`  // appends refused or failed
	Healed        uint64 `json:"healed"`    // torn tails cut at opening
	SetAside      uint64 `json:"set_aside"` // damaged ranges set aside
}
