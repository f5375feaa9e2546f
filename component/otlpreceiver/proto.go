package otlpreceiver

import (
	"encoding/base64"
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"inquest/admit"
)

// protoFilter leaves the records out of a protobuf request that do not decode.
// Length prefixes fence every record in, so one can be left out without
// understanding it.
type protoFilter struct {
	// strict decodes a whole request.
	strict func([]byte) error
	report *admit.Report
	kind   admit.LetterKind
	base   []byte // the request, to tell offsets
	buf    []byte // of wrap
}

// request returns body without what does not decode.
func (f *protoFilter) request(m *message, body []byte) ([]byte, error) {
	f.base = body
	c := f.split(m, nil, body)
	if c.brokenAt >= 0 {
		return nil, malformed("request is not an OTLP protobuf message: it breaks at byte %d of %d", c.brokenAt, len(body))
	}
	if len(c.rest) > 0 {
		if err := f.check(nil, c.rest); err != nil {
			return nil, malformed("request is not an OTLP protobuf message: %s", cause(err))
		}
	}
	return append(c.rest, c.children...), nil
}

// contents is a container taken apart.
type contents struct {
	rest     []byte // fields of its own
	children []byte // fields that hold records, without the bad ones
	records  int    // in children
	brokenAt int    // offset in the request where it cannot be read on, or -1
}

// split takes a container apart and leaves out what does not decode.
func (f *protoFilter) split(m *message, path []protowire.Number, buf []byte) contents {
	c := contents{brokenAt: -1}
	for len(buf) > 0 {
		num, typ, n := protowire.ConsumeTag(buf)
		size := n
		if n >= 0 {
			if v := protowire.ConsumeFieldValue(num, typ, buf[n:]); v >= 0 {
				size += v
			} else {
				size = v
			}
		}
		if size < 0 {
			// All of these are slices of the request, so capacities tell offsets.
			c.brokenAt = cap(f.base) - cap(buf)
			return c
		}
		piece := buf[:size]
		buf = buf[size:]
		child := m.byNumber(num)
		switch {
		case !child.holds():
			c.rest = append(c.rest, piece...)
		case typ != protowire.BytesType:
			f.reject(1, piece, fmt.Sprintf("%s: wire type is %d, want %d", child.msg.name, typ, protowire.BytesType))
		default:
			val, _ := protowire.ConsumeBytes(piece[n:])
			good, records, ok := f.child(child, append(path, num), val)
			if ok {
				c.children = protowire.AppendTag(c.children, num, typ)
				c.children = protowire.AppendBytes(c.children, good)
				c.records += records
			}
		}
	}
	return c
}

// child returns what is kept of a record or container; ok is false when that
// is nothing.
func (f *protoFilter) child(child *field, path []protowire.Number, val []byte) (good []byte, records int, ok bool) {
	if child.msg.role == unit {
		if err := f.check(path, val); err != nil {
			f.reject(1, val, f.reason(child.msg, path, val, err))
			return nil, 0, false
		}
		return val, 1, true
	}
	c := f.split(child.msg, path, val)
	if c.brokenAt >= 0 {
		// How many records follow cannot be told; it is one at least.
		f.reject(1, val, fmt.Sprintf("%s cannot be read on from byte %d of the request", child.msg.name, c.brokenAt))
	}
	if len(c.rest) > 0 {
		if err := f.check(path, c.rest); err != nil {
			f.reject(max(c.records, 1), val, f.reason(child.msg, path, c.rest, err))
			return nil, 0, false
		}
	}
	return append(c.rest, c.children...), c.records, true
}

// reject refuses n records that raw holds.
func (f *protoFilter) reject(n int, raw []byte, reason string) {
	f.report.Reject(n, reason)
	f.report.Put(admit.Letter{
		Reason: codeDecode, Detail: reason, Kind: f.kind, Records: n,
		Payload: base64.StdEncoding.EncodeToString(raw), Encoding: admit.EncodingBase64,
	})
}

// check decodes a message that lies at path within a request.
func (f *protoFilter) check(path []protowire.Number, val []byte) error {
	if len(path) == 0 {
		return f.strict(val)
	}
	f.buf = wrap(f.buf[:0], path, val)
	return f.strict(f.buf)
}

// wrap appends a request that holds just val, at path.
func wrap(dst []byte, path []protowire.Number, val []byte) []byte {
	var sizes [8]int // of each level's value, the outermost first
	size := len(val)
	for i := len(path) - 1; i >= 0; i-- {
		sizes[i] = size
		size = protowire.SizeTag(path[i]) + protowire.SizeBytes(size)
	}
	for i, num := range path {
		dst = protowire.AppendTag(dst, num, protowire.BytesType)
		dst = protowire.AppendVarint(dst, uint64(sizes[i]))
	}
	return append(dst, val...)
}

// reason names the field that makes a message fail to decode.
func (f *protoFilter) reason(m *message, path []protowire.Number, val []byte, err error) string {
	for len(val) > 0 {
		num, typ, n := protowire.ConsumeTag(val)
		if n < 0 {
			return m.name + ": it breaks where a field should begin"
		}
		size := protowire.ConsumeFieldValue(num, typ, val[n:])
		name := m.fieldName(num)
		if name == "" {
			name = fmt.Sprintf("field %d", num)
		}
		if size < 0 {
			return fmt.Sprintf("%s: %s is longer than the %s", m.name, name, m.name)
		}
		if err := f.check(path, val[:n+size]); err != nil {
			return fmt.Sprintf("%s: %s: %s", m.name, name, cause(err))
		}
		val = val[n+size:]
	}
	return m.name + ": " + cause(err)
}

// cause words a decoder's error for the sender, without any of the sender's
// data in it, so that equal reasons are equal.
func cause(err error) string {
	text := err.Error()
	switch {
	case strings.Contains(text, "invalid TraceID length"):
		return "a trace id must have 16 bytes"
	case strings.Contains(text, "invalid SpanID length"):
		return "a span id must have 8 bytes"
	case strings.Contains(text, "max recursion depth"):
		return "nested too deeply"
	case strings.Contains(text, "unexpected EOF"):
		return "it ends too early"
	case strings.Contains(text, "ID.UnmarshalJSONIter"):
		return "an id is not hexadecimal digits of the right number"
	case strings.Contains(text, "strconv."):
		return "a number is malformed or out of range"
	case strings.Contains(text, "base64"):
		return "bytes are not base64"
	}
	text, _, _ = strings.Cut(text, ", error found in ") // jsoniter quotes the input from here on
	text = strings.TrimPrefix(strings.TrimPrefix(text, "proto: "), "unmarshal: ")
	if len(text) > 200 {
		text = text[:200]
	}
	return strings.ToValidUTF8(text, "�")
}
