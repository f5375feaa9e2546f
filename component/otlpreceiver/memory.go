package otlpreceiver

import (
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protowire"

	"inquest/record"
)

// maxDecoded bounds the memory that one request may take when it is decoded.
// Without it a few kilobytes of compressed empty records would take gigabytes:
// an empty record is two bytes on the wire and hundreds in memory. A full
// request of common records stays well below.
const maxDecoded = 8 * record.MaxBatchSize

// maxJSONValues bounds the objects and lists of a JSON request, for the same reason.
const maxJSONValues = maxDecoded / 128

// smallProto is the size of a body that stays below maxDecoded whatever it
// holds, so that it need not be measured.
const smallProto = maxDecoded / 256

// checkMemory refuses a protobuf body whose decoded form would take too much.
// It reads as far as the body is well-formed; what is not is the decoder's matter.
func checkMemory(m *message, body []byte) error {
	if len(body) <= smallProto {
		return nil
	}
	if left := charge(m, body, maxDecoded, 0); left < 0 {
		return tooManyParts()
	}
	return nil
}

func tooManyParts() error {
	return &refusal{
		code: codes.ResourceExhausted, http: 413,
		text: fmt.Sprintf("request takes more than %d MiB of memory when decoded, it has very many small records or attributes: send smaller batches", maxDecoded>>20),
	}
}

// maxDepth is a little above the depth that pdata decodes.
const maxDepth = 512

// charge takes the size of each message in buf off left and returns what is
// left; it stops when nothing is.
func charge(m *message, buf []byte, left int64, depth int) int64 {
	for len(buf) > 0 && left >= 0 && depth < maxDepth {
		num, typ, n := protowire.ConsumeTag(buf)
		if n < 0 {
			return left
		}
		buf = buf[n:]
		n = protowire.ConsumeFieldValue(num, typ, buf)
		if n < 0 {
			return left
		}
		if f := m.byNumber(num); f != nil && typ == protowire.BytesType {
			val, _ := protowire.ConsumeBytes(buf)
			if f.msg.role == packed {
				left -= 12 * int64(len(val)) // 8 bytes each, and room for the list to grow
			} else {
				left = charge(f.msg, val, left-f.msg.size, depth+1)
			}
		}
		buf = buf[n:]
	}
	return left
}
