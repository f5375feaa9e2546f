package payload

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
)

// UserKey stands for a user: the first 16 bytes of HMAC-SHA-256 of the user id
// under the store's key. It is enough to find a user's payloads again, and
// without the key it cannot be tested against guessed ids. The zero UserKey is
// an unknown user.
type UserKey [16]byte

// String returns 32 hexadecimal digits, or nothing for the unknown user.
func (u UserKey) String() string {
	if u == (UserKey{}) {
		return ""
	}
	return hex.EncodeToString(u[:])
}

func parseUserKey(text string) (UserKey, error) {
	var u UserKey
	if text == "" {
		return u, nil
	}
	if len(text) != 2*len(u) {
		return u, fmt.Errorf("cannot read %.40q as a user's key", text)
	}
	_, err := hex.Decode(u[:], []byte(text))
	return u, err
}

const (
	minUserKey = 16
	newUserKey = 32
)

func keyOf(secret []byte, userID string) UserKey {
	var u UserKey
	if userID != "" {
		copy(u[:], mac(secret, "user:"+userID))
	}
	return u
}

func mac(secret []byte, text string) []byte {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// format is what the blob of that name holds.
type format struct {
	Format   int    `json:"format"`
	UserKey  string `json:"user_key,omitempty"` // only where the store made it
	KeyCheck string `json:"key_check"`          // tells a wrong key from the right one
}

const formatVersion = 1

// openFormat returns the secret for user ids. It makes the format blob in a
// place that has none.
func openFormat(ctx context.Context, blobs Blobs, given []byte) (secret []byte, err error) {
	data, err := blobs.Read(ctx, formatName, 4096)
	if errors.Is(err, fs.ErrNotExist) {
		return makeFormat(ctx, blobs, given)
	}
	if err != nil {
		return nil, err
	}
	var f format
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("cannot read blob %q: %w; restore it from a backup", formatName, err)
	}
	if f.Format != formatVersion {
		return nil, fmt.Errorf("the payloads are in format %d and this version knows format %d: use the version that wrote them", f.Format, formatVersion)
	}
	secret = given
	if len(given) == 0 {
		if secret, err = hex.DecodeString(f.UserKey); err != nil || len(secret) < minUserKey {
			return nil, errors.New("the payloads were written with a user key from the settings, which is missing now: set it again")
		}
	}
	if keyCheck(secret) != f.KeyCheck {
		return nil, errors.New("the payloads were written with another user key: with this one no user would be found for erasure; set the first one again")
	}
	return secret, nil
}

func makeFormat(ctx context.Context, blobs Blobs, given []byte) ([]byte, error) {
	// Without this the payloads of a place whose format was lost would be kept
	// under a new key, and erasure would not find their users.
	err := blobs.List(ctx, objectsDir, func(e Entry) error {
		return fmt.Errorf("%q is there, but not %q: restore it from a backup, or give the payloads a new place", e.Name, formatName)
	})
	if err != nil {
		return nil, err
	}
	f := format{Format: formatVersion}
	secret := given
	if len(given) == 0 {
		secret = make([]byte, newUserKey)
		if _, err := rand.Read(secret); err != nil {
			return nil, err
		}
		f.UserKey = hex.EncodeToString(secret)
	}
	f.KeyCheck = keyCheck(secret)
	data, err := json.Marshal(f)
	if err != nil {
		return nil, err
	}
	return secret, blobs.Write(ctx, Blob{Name: formatName, Data: append(data, '\n')})
}

func keyCheck(secret []byte) string { return hex.EncodeToString(mac(secret, "check")[:8]) }
