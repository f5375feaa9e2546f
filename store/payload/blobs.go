package payload

import (
	"context"
	"time"
)

// Blob is a named piece of data.
type Blob struct {
	Name string // parts separated by slashes
	Data []byte
}

// Entry is a blob in a listing.
type Entry struct {
	Name string
	Size int64 // bytes; -1 where the listing does not tell
	// Modified is when the blob was written; zero where the listing does not tell.
	Modified time.Time
}

// Blobs is a place that holds blobs by name. All methods may be called
// concurrently, but calls about one name take turns, and nothing is written
// while List runs.
type Blobs interface {
	// Write makes each name hold its data. All names are in one folder. It
	// returns nil only when all are durable; at every other outcome, loss of
	// power included, each name holds what it held before or its data, whole. It
	// MUST NOT keep references to the data.
	Write(ctx context.Context, blobs ...Blob) error

	// Read returns what name holds. A missing name matches [fs.ErrNotExist]. It
	// reads at most limit+1 bytes, so that the caller sees that there are more.
	Read(ctx context.Context, name string, limit int64) ([]byte, error)

	// Remove takes the names away, which are in one folder. Missing ones are no
	// error. It returns nil only when that is durable and no older version of
	// them is left.
	Remove(ctx context.Context, names ...string) error

	// List calls fn for each blob below folder dir, in no order; an error from
	// fn ends it and is returned. Leaf names are at most two folders down, in
	// folders of two hexadecimal digits. What interrupted writes have left is
	// removed, durably, and not listed.
	List(ctx context.Context, dir string, fn func(Entry) error) error

	// Close releases the place.
	Close() error
}
