package spool

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
)

// version of the format, in the header.
const version = 1

// prefixBytes is the checksum and its space.
const prefixBytes = 9

// Header is a spool file's first line: what its records have in common, as
// OTLP/JSON writes it.
type Header struct {
	Version  int             `json:"inquest.spool"`
	Resource json.RawMessage `json:"resource"`
	Scope    json.RawMessage `json:"scope,omitempty"`
}

// appendLine appends the line that carries payload.
func appendLine(b, payload []byte) []byte {
	var sum [4]byte
	c := crc32.ChecksumIEEE(payload)
	sum[0], sum[1], sum[2], sum[3] = byte(c>>24), byte(c>>16), byte(c>>8), byte(c)
	b = hex.AppendEncode(b, sum[:])
	b = append(b, ' ')
	b = append(b, payload...)
	return append(b, '\n')
}

// decodeLine returns the JSON of a line without its line feed.
func decodeLine(raw []byte) ([]byte, error) {
	if len(raw) < prefixBytes || raw[prefixBytes-1] != ' ' {
		return nil, errors.New("the line has no checksum")
	}
	var sum [4]byte
	if _, err := hex.Decode(sum[:], raw[:prefixBytes-1]); err != nil {
		return nil, errors.New("the line has no checksum")
	}
	want := uint32(sum[0])<<24 | uint32(sum[1])<<16 | uint32(sum[2])<<8 | uint32(sum[3])
	payload := raw[prefixBytes:]
	if got := crc32.ChecksumIEEE(payload); got != want {
		return nil, fmt.Errorf("the checksum does not agree: %08x, want %08x", got, want)
	}
	return payload, nil
}

// decodeHeader reads the first line of a file.
func decodeHeader(raw []byte) (Header, error) {
	payload, err := decodeLine(raw)
	if err != nil {
		return Header{}, err
	}
	var h Header
	if err := json.Unmarshal(payload, &h); err != nil {
		return Header{}, fmt.Errorf("the header is not JSON: %w", err)
	}
	if h.Version != version {
		return Header{}, fmt.Errorf("the file is of version %d of the format, want %d", h.Version, version)
	}
	return h, nil
}
