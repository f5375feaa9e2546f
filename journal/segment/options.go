package segment

import (
	"errors"
	"log/slog"
	"time"

	"inquest/journal/vfs"
)

// ErrUnknown is in an error of Append, beside [journal.ErrClosed], when it is
// unknown whether the entry is stored: a sync failed, and so did all that would
// have made sure that the entry never appears. Where it is not in the error, the
// entry is not stored.
var ErrUnknown = errors.New("unknown whether the entry is stored")

// Options say where a [Log] keeps its entries and how many.
type Options struct {
	// Dir is the journal's own folder; it is made when it is missing.
	Dir string
	// FS is the file system; the machine's when nil.
	FS vfs.FS
	// SegmentBytes is the size at which a segment file is followed by the next.
	// A file is longer by one group of entries at most. Default 64 MiB; at most
	// a quarter of MaxBytes.
	SegmentBytes int64
	// MaxBytes bounds the segment files together. Beyond it Append returns
	// [journal.ErrFull]. 0 means no bound.
	MaxBytes int64
	// MinFreeBytes is the room on the disk below which Append returns
	// [journal.ErrFull]. Default 256 MiB; a negative value means none.
	MinFreeBytes int64
	// MaxEntryBytes bounds one payload. Default 65 MiB: an OTLP message of 64 MiB
	// grows a little when it is admitted. At most 256 MiB and three quarters of
	// MaxBytes.
	MaxEntryBytes int
	// MaxGroupBytes bounds the entries that wait for one sync, and so the memory
	// for them; further calls of Append wait. A single entry may be larger.
	// Default 16 MiB.
	MaxGroupBytes int
	// Compression of payloads. Entries written with another setting stay
	// readable.
	Compression Compression
	// RetryInterval is how long a disk that failed is left alone; until then
	// Append repeats the failure. Default 250 ms; a negative value means none.
	RetryInterval time.Duration
	// Logger gets what people should know: recovery, damage, a disk that fails.
	// Discarded when nil.
	Logger *slog.Logger

	// readPause is the time between two tries to read a block at opening.
	readPause time.Duration
}

const (
	defaultSegmentBytes  = 64 << 20
	defaultMinFreeBytes  = 256 << 20
	defaultMaxEntryBytes = 65 << 20
	defaultMaxGroupBytes = 16 << 20
	defaultRetryInterval = 250 * time.Millisecond
	defaultReadPause     = 20 * time.Millisecond
)

func (o *Options) setDefaults() {
	if o.FS == nil {
		o.FS = vfs.OS{}
	}
	if o.SegmentBytes <= 0 {
		o.SegmentBytes = defaultSegmentBytes
	}
	if o.MaxBytes > 0 {
		o.SegmentBytes = max(1, min(o.SegmentBytes, o.MaxBytes/4))
	}
	if o.MinFreeBytes == 0 {
		o.MinFreeBytes = defaultMinFreeBytes
	}
	o.MinFreeBytes = max(0, o.MinFreeBytes)
	if o.MaxEntryBytes <= 0 {
		o.MaxEntryBytes = defaultMaxEntryBytes
	}
	o.MaxEntryBytes = min(o.MaxEntryBytes, maxPayload)
	if o.MaxBytes > 0 {
		// A larger one would be answered with "full" for ever.
		o.MaxEntryBytes = max(1, min(o.MaxEntryBytes, int(min(o.MaxBytes/4*3, maxPayload))))
	}
	if o.MaxGroupBytes <= 0 {
		o.MaxGroupBytes = defaultMaxGroupBytes
	}
	if o.RetryInterval == 0 {
		o.RetryInterval = defaultRetryInterval
	}
	if o.readPause == 0 {
		o.readPause = defaultReadPause
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}
