package segment

import (
	"fmt"
	"slices"

	"github.com/klauspost/compress/s2"
)

// Compression says how payloads are kept on disk.
type Compression uint8

const (
	// CompressS2 keeps payloads as S2 blocks where that makes them smaller by an
	// eighth at least. It is the default: for OTLP it costs less processor time
	// than writing the bytes that it saves.
	CompressS2 Compression = iota
	// CompressNone keeps payloads as they are.
	CompressNone
)

// minCompress is the payload size below which compression is not tried.
const minCompress = 512

// pack returns the bytes to store for payload and the record's flags. The bytes
// are payload itself or lie in buf, which is made larger where necessary.
func (c Compression) pack(payload []byte, buf *[]byte) ([]byte, uint8) {
	if c != CompressS2 || len(payload) < minCompress {
		return payload, 0
	}
	*buf = slices.Grow((*buf)[:0], s2.MaxEncodedLen(len(payload)))
	packed := s2.Encode((*buf)[:cap(*buf)], payload)
	if len(packed) > len(payload)-len(payload)/8 {
		return payload, 0
	}
	return packed, flagS2
}

// unpack returns a record's payload, in buf where it differs from stored. It
// allocates at most h.raw bytes.
func (h recordHeader) unpack(stored, buf []byte) ([]byte, error) {
	if h.flags&flagS2 == 0 {
		return stored, nil
	}
	n, err := s2.DecodedLen(stored)
	if err != nil || n != int(h.raw) {
		return nil, fmt.Errorf("entry %d: the block says that it holds %d bytes, its record %d", h.seq, n, h.raw)
	}
	payload, err := s2.Decode(slices.Grow(buf[:0], n)[:n], stored)
	if err != nil {
		return nil, fmt.Errorf("entry %d: %w", h.seq, err)
	}
	return payload, nil
}
