package segment

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"strconv"
	"strings"
)

// The format is described in docs/journal-format.md; the two change together.
const (
	formatVersion    = 1
	headerSize       = 64
	recordHeaderSize = 40
	alignment        = 8

	// maxPayload is the largest payload of a record, stored or raw. It bounds
	// what a damaged or hostile file can make a reader allocate.
	maxPayload = 256 << 20

	suffix = ".wal"
)

const (
	segmentMagic = "inquestJ"
	recordMagic  = "iqR1"
)

// Flags of a record.
const (
	// flagBatch says that all that lies before this record in the segment was
	// durable before this record was written.
	flagBatch = 1 << 0
	// flagS2 says that the payload is stored as one S2 block.
	flagS2 = 1 << 1

	knownFlags = flagBatch | flagS2
)

// kindMark is a record without payload that ends a segment at a clean close. Its
// seq is the number that the next entry gets.
const kindMark = 0

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// segmentHeader is the start of a segment file.
type segmentHeader struct {
	version uint32
	salt    uint32 // mixed into the checksums of the segment's records
	id      uint64 // order of segments
	first   uint64 // no record of the segment has a smaller number, none of an earlier segment a larger or the same
	created int64  // ns since the Unix epoch
}

func (h segmentHeader) encode() []byte {
	b := make([]byte, headerSize)
	copy(b, segmentMagic)
	binary.LittleEndian.PutUint32(b[8:], h.version)
	binary.LittleEndian.PutUint32(b[12:], h.salt)
	binary.LittleEndian.PutUint64(b[16:], h.id)
	binary.LittleEndian.PutUint64(b[24:], h.first)
	binary.LittleEndian.PutUint64(b[32:], uint64(h.created))
	binary.LittleEndian.PutUint32(b[60:], crc32.Checksum(b[:60], castagnoli))
	return b
}

// decodeSegmentHeader returns false when b holds no intact header.
func decodeSegmentHeader(b []byte) (segmentHeader, bool) {
	if len(b) < headerSize || string(b[:8]) != segmentMagic ||
		binary.LittleEndian.Uint32(b[60:]) != crc32.Checksum(b[:60], castagnoli) {
		return segmentHeader{}, false
	}
	return segmentHeader{
		version: binary.LittleEndian.Uint32(b[8:]),
		salt:    binary.LittleEndian.Uint32(b[12:]),
		id:      binary.LittleEndian.Uint64(b[16:]),
		first:   binary.LittleEndian.Uint64(b[24:]),
		created: int64(binary.LittleEndian.Uint64(b[32:])),
	}, true
}

// fileName repeats what recovery needs of the header, so that a damaged header
// costs no entry.
func (h segmentHeader) fileName() string {
	return fmt.Sprintf("%010d-%020d-%08x%s", h.id, h.first, h.salt, suffix)
}

// parseFileName returns false for names that are not of segments.
func parseFileName(name string) (segmentHeader, bool) {
	parts := strings.Split(strings.TrimSuffix(name, suffix), "-")
	if !strings.HasSuffix(name, suffix) || len(parts) != 3 {
		return segmentHeader{}, false
	}
	id, err1 := strconv.ParseUint(parts[0], 10, 64)
	first, err2 := strconv.ParseUint(parts[1], 10, 64)
	salt, err3 := strconv.ParseUint(parts[2], 16, 32)
	h := segmentHeader{version: formatVersion, id: id, first: first, salt: uint32(salt)}
	if err1 != nil || err2 != nil || err3 != nil || id == 0 || first == 0 || h.fileName() != name {
		return segmentHeader{}, false
	}
	return h, true
}

// recordHeader comes before each payload.
type recordHeader struct {
	stored     uint32 // bytes of the payload in the file
	raw        uint32 // bytes of the payload itself
	kind       uint8
	flags      uint8
	seq        uint64
	received   int64
	payloadCRC uint32 // of the stored bytes
}

// endMark is the record that ends a segment at a clean close.
func endMark(next uint64) recordHeader {
	return recordHeader{kind: kindMark, flags: flagBatch, seq: next, payloadCRC: payloadChecksum(nil)}
}

// size is what the record takes in the file.
func (h recordHeader) size() int64 { return recordSize(int(h.stored)) }

func recordSize(stored int) int64 {
	return (recordHeaderSize + int64(stored) + alignment - 1) / alignment * alignment
}

// put writes the header into the first bytes of b.
func (h recordHeader) put(b []byte, salt uint32) {
	copy(b, recordMagic)
	binary.LittleEndian.PutUint32(b[4:], h.stored)
	binary.LittleEndian.PutUint32(b[8:], h.raw)
	b[12], b[13], b[14], b[15] = h.kind, h.flags, 0, 0
	binary.LittleEndian.PutUint64(b[16:], h.seq)
	binary.LittleEndian.PutUint64(b[24:], uint64(h.received))
	binary.LittleEndian.PutUint32(b[32:], h.payloadCRC)
	binary.LittleEndian.PutUint32(b[36:], saltedCRC(b[:36], salt))
}

// saltedCRC keeps a payload that contains what looks like a record from being
// taken for one: senders do not know the salt.
func saltedCRC(b []byte, salt uint32) uint32 {
	var s [4]byte
	binary.LittleEndian.PutUint32(s[:], salt)
	return crc32.Update(crc32.Checksum(s[:], castagnoli), castagnoli, b)
}

func payloadChecksum(stored []byte) uint32 { return crc32.Checksum(stored, castagnoli) }

// decodeRecordHeader returns false when b does not begin with an intact header.
func decodeRecordHeader(b []byte, salt uint32) (recordHeader, bool) {
	if len(b) < recordHeaderSize || string(b[:4]) != recordMagic ||
		binary.LittleEndian.Uint32(b[36:]) != saltedCRC(b[:36], salt) {
		return recordHeader{}, false
	}
	h := recordHeader{
		stored:     binary.LittleEndian.Uint32(b[4:]),
		raw:        binary.LittleEndian.Uint32(b[8:]),
		kind:       b[12],
		flags:      b[13],
		seq:        binary.LittleEndian.Uint64(b[16:]),
		received:   int64(binary.LittleEndian.Uint64(b[24:])),
		payloadCRC: binary.LittleEndian.Uint32(b[32:]),
	}
	return h, h.valid() && b[14] == 0 && b[15] == 0
}

// valid checks what a checksum cannot: that the fields go together.
func (h recordHeader) valid() bool {
	switch {
	case h.seq == 0, h.seq == math.MaxUint64, h.stored > maxPayload, h.raw > maxPayload, h.flags&^knownFlags != 0:
		return false
	case h.kind == kindMark:
		return h.stored == 0 && h.raw == 0 && h.flags == flagBatch
	case h.flags&flagS2 != 0:
		return h.stored < h.raw
	}
	return h.stored == h.raw
}
