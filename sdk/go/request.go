package inquest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/propagation"
)

// Names of the contract between services.
const (
	HeaderRequestID = "x-request-id"         // never rewritten when present
	HeaderInputHash = "x-inquest-input-hash" // SHA-256 of the request's raw input
	KeyRequestID    = "request.id"           // baggage member and attribute
	KeyUserID       = "user.id"              // baggage member and attribute
	KeyBizType      = "biz.type"             // baggage member and attribute
)

// maxRequestID is the longest request id, in characters.
const maxRequestID = 256

// Request is what is known of the request that a context serves.
type Request struct {
	ID      string
	UserID  string // who asked, best a pseudonym; may be empty
	BizType string // product or scenario; may be empty
}

// request is shared by all that serve one request in this process.
type request struct {
	Request
	mu        sync.Mutex
	inputHash string
}

type requestKey struct{}

// NewRequestID returns an id that no other request has.
func NewRequestID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return "r-" + hex.EncodeToString(b[:])
}

// ValidRequestID reports whether an id can be carried: 1 to 256 characters, none
// of them blank or control.
func ValidRequestID(id string) bool {
	if id == "" || !utf8.ValidString(id) || utf8.RuneCountInString(id) > maxRequestID {
		return false
	}
	for _, r := range id {
		if r <= ' ' || r == 0x7f {
			return false
		}
	}
	return true
}

// WithRequest returns a context that carries r, here and, as baggage, to other
// services. An empty or invalid id becomes the one that ctx has, or a new one.
// Fields that are empty are taken from ctx when it serves the same request.
func WithRequest(ctx context.Context, r Request) context.Context {
	before := current(ctx)
	if !ValidRequestID(r.ID) {
		r.ID = NewRequestID()
		if before != nil {
			r.ID = before.ID
		}
	}
	now := &request{Request: r}
	if before != nil && before.ID == r.ID {
		if now.UserID == "" {
			now.UserID = before.UserID
		}
		if now.BizType == "" {
			now.BizType = before.BizType
		}
		now.inputHash = before.hash()
	}
	ctx = context.WithValue(ctx, requestKey{}, now)
	b := baggage.FromContext(ctx)
	for _, kv := range now.attributes() {
		m, err := baggage.NewMemberRaw(string(kv.Key), kv.Value.AsString())
		if err != nil {
			continue // not UTF-8: it stays in this process
		}
		if next, err := b.SetMember(m); err == nil {
			b = next
		}
	}
	return baggage.ContextWithBaggage(ctx, b)
}

// RequestOf returns the request that ctx serves: the one of [WithRequest], else
// the one in its baggage. ok is false when there is none.
func RequestOf(ctx context.Context) (r Request, ok bool) {
	if c := current(ctx); c != nil {
		return c.Request, true
	}
	return Request{}, false
}

// RequestID returns the id of the request that ctx serves, or "".
func RequestID(ctx context.Context) string {
	r, _ := RequestOf(ctx)
	return r.ID
}

// SetInput remembers the hash of the request's raw input for the events that
// follow. [Logger.Ingress] does so by itself. Without [WithRequest] above it, ctx
// has no place for it and nothing is remembered.
func SetInput(ctx context.Context, raw string) { SetInputHash(ctx, HashInput(raw)) }

// SetInputHash is SetInput for an input whose hash is known. What is no hash is
// passed over.
func SetInputHash(ctx context.Context, hash string) {
	if r, ok := ctx.Value(requestKey{}).(*request); ok && isHash(hash) {
		r.mu.Lock()
		r.inputHash = hash
		r.mu.Unlock()
	}
}

// InputHash returns the hash of the request's raw input, or "" when it is not
// known.
func InputHash(ctx context.Context) string {
	if c := current(ctx); c != nil {
		return c.hash()
	}
	return ""
}

// HashInput returns the SHA-256 of raw's bytes in hexadecimal digits.
func HashInput(raw string) string {
	h := sha256.Sum256([]byte(raw))
	return hex.EncodeToString(h[:])
}

// Propagator carries trace context and baggage, and with them the request id.
func Propagator() propagation.TextMapPropagator {
	return propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
}

func current(ctx context.Context) *request {
	if r, ok := ctx.Value(requestKey{}).(*request); ok {
		return r
	}
	b := baggage.FromContext(ctx)
	id := b.Member(KeyRequestID).Value()
	if !ValidRequestID(id) {
		return nil
	}
	return &request{Request: Request{id, b.Member(KeyUserID).Value(), b.Member(KeyBizType).Value()}}
}

func (r *request) hash() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.inputHash
}

// attributes returns what names the request on spans and log records.
func (r Request) attributes() []attribute.KeyValue {
	out := []attribute.KeyValue{attribute.String(KeyRequestID, r.ID)}
	if r.UserID != "" {
		out = append(out, attribute.String(KeyUserID, r.UserID))
	}
	if r.BizType != "" {
		out = append(out, attribute.String(KeyBizType, r.BizType))
	}
	return out
}

// isHash reports whether s is 64 lower-case hexadecimal digits.
func isHash(s string) bool {
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return len(s) == 64
}
