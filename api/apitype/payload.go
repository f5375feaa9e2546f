package apitype

// ErasedPayloads is what the erasure of a user's payloads removed, by SHA-256.
type ErasedPayloads struct {
	Removed    []string `json:"removed"`    // only this user referred to them
	Shared     []string `json:"shared"`     // others refer to them too: the user's references went
	Unreadable []string `json:"unreadable"` // removed because nothing could tell whose they were
	References int      `json:"references"`
	Bytes      int64    `json:"bytes"` // of content, in removed and unreadable
}
