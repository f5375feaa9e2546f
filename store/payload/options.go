package payload

import (
	"errors"
	"fmt"
	"time"
)

// Options are the settings of a store. Zero values mean the defaults.
type Options struct {
	MaxPayload  int64         // bytes of one payload; default 1 MiB
	MaxTotal    int64         // bytes of content of all payloads; default 10 GiB
	MaxPayloads int           // number of payloads, which bounds memory (about 200 bytes each); default 1,000,000
	MaxAge      time.Duration // by the newest reference's time; default 30 days; negative: no bound
	// MaxRefs is how many references are kept for one payload; default 100. When
	// there are more, the oldest of those go whose user has another; when all
	// are of different users, the oldest, and the payload is marked [Info.More].
	MaxRefs int
	// EraseMemory is how long an erasure is remembered, to keep away payloads
	// that a journal, a re-driven dead letter or an import brings again; default
	// 90 days.
	EraseMemory time.Duration
	// UserKey is the secret under which user ids are hashed, at least 16 bytes.
	// When empty, a random one is made with the store and kept in it.
	UserKey []byte
	// Now tells the time; default time.Now.
	Now func() time.Time
}

// Defaults of [Options].
const (
	DefaultMaxPayload  = 1 << 20
	DefaultMaxTotal    = 10 << 30
	DefaultMaxPayloads = 1_000_000
	DefaultMaxAge      = 30 * 24 * time.Hour
	DefaultMaxRefs     = 100
	DefaultEraseMemory = 90 * 24 * time.Hour
)

func (o Options) withDefaults() (Options, error) {
	if o.MaxPayload < 0 || o.MaxTotal < 0 || o.MaxPayloads < 0 || o.MaxRefs < 0 || o.EraseMemory < 0 {
		return o, errors.New("cannot open the payload store: a limit is below zero")
	}
	if n := len(o.UserKey); n > 0 && n < minUserKey {
		return o, fmt.Errorf("cannot open the payload store: the user key has %d bytes; give at least %d random ones", n, minUserKey)
	}
	orDefault(&o.MaxPayload, DefaultMaxPayload)
	orDefault(&o.MaxTotal, DefaultMaxTotal)
	orDefault(&o.MaxPayloads, DefaultMaxPayloads)
	orDefault(&o.MaxAge, DefaultMaxAge)
	orDefault(&o.MaxRefs, DefaultMaxRefs)
	orDefault(&o.EraseMemory, DefaultEraseMemory)
	if o.Now == nil {
		o.Now = time.Now
	}
	return o, nil
}

func orDefault[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}
