// Package payload keeps raw inputs and outputs of AI services by the SHA-256 of
// their content, with the references of those who sent them. It says what a
// payload store promises ([Store]) and keeps those promises over any place that
// holds named blobs ([Blobs]): package folder for a local folder, package s3
// for S3-compatible object storage. Both pass package payloadtest.
package payload

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

// Errors of a [Store]. Implementations wrap them.
var (
	// ErrNotFound says that no such payload is kept.
	ErrNotFound = errors.New("payload not found")
	// ErrDamaged says that a payload is kept, but what lies there is not what
	// was stored. Putting the same content again mends it.
	ErrDamaged = errors.New("payload damaged")
	// ErrMismatch says that content does not have the hash that was expected.
	ErrMismatch = errors.New("payload does not match its hash")
	// ErrTooLarge says that content exceeds the limit for one payload or for all.
	ErrTooLarge = errors.New("payload too large")
	// ErrErased says that the user asked for erasure and the payload is from
	// before. It is to be dropped, not tried again.
	ErrErased = errors.New("payload of an erased user")
	// ErrUnavailable marks an error that may go away by itself, such as a full
	// disk. The caller MAY repeat the call.
	ErrUnavailable = errors.New("payload store unavailable")
	// ErrClosed is returned by a store that was closed.
	ErrClosed = errors.New("payload store closed")
)

// Sum is the SHA-256 of a payload's content. The zero Sum means unknown.
type Sum [sha256.Size]byte

// SumOf returns the sum of content.
func SumOf(content []byte) Sum { return sha256.Sum256(content) }

// String returns 64 lower-case hexadecimal digits.
func (s Sum) String() string { return hex.EncodeToString(s[:]) }

// IsZero tells whether the sum is unknown.
func (s Sum) IsZero() bool { return s == Sum{} }

// ParseSum reads 64 lower-case hexadecimal digits.
func ParseSum(text string) (Sum, error) {
	var s Sum
	if len(text) != 2*len(s) {
		return s, fmt.Errorf("cannot read %.80q as SHA-256: it has %d characters, not %d", text, len(text), 2*len(s))
	}
	if n, err := hex.Decode(s[:], []byte(text)); err != nil || s.String() != text {
		return Sum{}, fmt.Errorf("cannot read %q as SHA-256: not lower-case hexadecimal after %d digits", text, 2*n)
	}
	return s, nil
}

// Meta tells who sent a payload. Names longer than [MaxName] bytes are cut.
type Meta struct {
	Service   string
	UserID    string // kept as a keyed hash only; empty when unknown
	RequestID string
	// Time is the record's own time. It is required: retention goes by it, and
	// an erasure covers what is not later than itself.
	Time        time.Time
	ContentType string
	// InputHash is the SHA-256 of the raw input, where the content is not the
	// raw input because it was redacted. It leads from the hash that a record
	// carries to what is kept of it.
	InputHash Sum
}

// MaxName is the longest service, request id and content type, in bytes.
const MaxName = 256

// Ref is a reference to a payload, as it is kept.
type Ref struct {
	Service     string
	User        UserKey // zero when the user is unknown
	RequestID   string
	Time        time.Time // UTC
	ContentType string
	InputHash   Sum // zero when the content is the raw input
}

// Info describes a payload.
type Info struct {
	Sum    Sum
	Size   int64     // bytes
	Newest time.Time // of all references that there ever were
	Refs   []Ref     // by time
	// More says that there were more users than references are kept for
	// ([Options.MaxRefs]); the oldest are not listed.
	More bool
}

// Usage is how much a store holds.
type Usage struct {
	Payloads int   `json:"payloads"`
	Bytes    int64 `json:"bytes"` // of content
}

// Erased is what an erasure removed.
type Erased struct {
	Removed    []Sum // payloads that only this user referred to, sorted
	Shared     []Sum // payloads that others refer to too: the user's references went
	Unreadable []Sum // removed because nothing could tell whose they were
	References int   // of the user, in Removed and Shared
	Bytes      int64 // of content, in Removed and Unreadable
}

// Swept is what retention removed.
type Swept struct {
	Expired int   // payloads beyond the age
	Evicted int   // payloads beyond the bounds on bytes and number, oldest first
	Bytes   int64 // of content, in both
}

// Store keeps payloads by their content. All methods may be called
// concurrently. One process at a time may have a store open: the local folder
// enforces it with a lock, for S3 the operator gives each recorder a prefix of
// its own.
//
// Durable means: it survives the end of the process and, as far as the place
// keeps its word about synced data, loss of power. A method that returns an
// error has done its work wholly, in part, or not at all; it MAY be repeated,
// and the repetition makes whole what the first call began. A context that ends
// is such an error.
type Store interface {
	// Put keeps content and the reference that m is, and returns its sum. It
	// returns nil only when both are durable. When want is not zero and content
	// has another sum, nothing is kept and the error is [ErrMismatch]. Putting
	// the same content again keeps it once and adds the reference; putting the
	// same reference again changes nothing. Content beyond [Options.MaxPayload]
	// is [ErrTooLarge]. When the bounds on bytes or number are reached, the
	// oldest payloads go to make room. A reference of an erased user that is not
	// later than the erasure is [ErrErased] and is not kept, so that what is
	// applied again from a journal stays erased. Put MUST NOT keep references to
	// content after it returns.
	Put(ctx context.Context, want Sum, m Meta, content []byte) (Sum, error)

	// Get returns the content, which the caller owns. It is checked against its
	// sum: what does not match is [ErrDamaged], never returned.
	Get(ctx context.Context, sum Sum) ([]byte, error)

	// Stat describes a payload without reading its content.
	Stat(ctx context.Context, sum Sum) (Info, error)

	// Walk calls fn for each payload, sorted by sum, never concurrently. Payloads
	// that come or go meanwhile MAY be missed or met. An error from fn ends the
	// walk and is returned as it is.
	Walk(ctx context.Context, fn func(Info) error) error

	// Delete removes a payload and all references to it. It returns nil only
	// when that is durable. A payload that is not kept is no error. It may be
	// put again afterwards.
	Delete(ctx context.Context, sum Sum) error

	// EraseUser removes the user's references and each payload that nobody else
	// refers to, and tells what it removed. It returns nil only when that is
	// durable. Once it has begun it is completed: after a crash in the middle,
	// opening the store finishes it before anything else is answered. An
	// unknown user is no error: the erasure is still remembered for
	// [Options.EraseMemory], see Put. References without a user are others'.
	EraseUser(ctx context.Context, userID string) (Erased, error)

	// Sweep removes what is beyond the age and the bounds, and forgets erasures
	// that are older than [Options.EraseMemory]. The owner calls it from time to
	// time; nothing else removes by age.
	Sweep(ctx context.Context) (Swept, error)

	// Usage tells how much is held.
	Usage() Usage

	// Close waits for running calls and releases the store. Later calls return
	// [ErrClosed].
	Close() error
}
