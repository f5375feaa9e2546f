package apitype

import "time"

// ErasedPayloads is what the erasure of a user removed. Payloads are named by
// SHA-256.
type ErasedPayloads struct {
	Removed    []string `json:"removed"`    // only this user referred to them
	Shared     []string `json:"shared"`     // others refer to them too: the user's references went
	Unreadable []string `json:"unreadable"` // removed because nothing could tell whose they were
	References int      `json:"references"`
	Bytes      int64    `json:"bytes"` // of content, in removed and unreadable
	// DeadLetters is how many dead letters of the user were removed, with the raw
	// input in them.
	DeadLetters int `json:"dead_letters"`
	// Remains is what was not removed.
	Remains []Remains `json:"remains"`
}

// Remains is something of a user that an erasure does not remove.
type Remains struct {
	What   string    `json:"what"` // records, dead_letters, journal or set_aside
	Count  int       `json:"count"`
	Until  time.Time `json:"until,omitzero"` // when it goes by itself, at the latest; absent where it does not
	Detail string    `json:"detail"`
}
