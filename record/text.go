package record

import (
	"encoding/base64"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// texts turns values into text. The texts are cut from large pieces, so a batch
// costs few allocations; a piece is never written twice, so a text stays what
// it is for as long as anyone holds it.
type texts struct {
	piece   strings.Builder
	scratch []byte
	pairs   []pair
}

// pair is one entry of an attribute map.
type pair struct {
	key   string
	value pcommon.Value
}

const pieceSize = 64 << 10

// take returns b as a string.
func (t *texts) take(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	if len(b) > pieceSize/4 {
		return string(b)
	}
	if t.piece.Cap()-t.piece.Len() < len(b) {
		t.piece.Reset()
		t.piece.Grow(pieceSize)
	}
	start := t.piece.Len()
	t.piece.Write(b)
	return t.piece.String()[start:]
}

// value returns a value as text: a string as it is, maps and slices as JSON,
// bytes in base64, numbers as JSON writes them.
func (t *texts) value(v pcommon.Value) string {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return valid(v.Str())
	case pcommon.ValueTypeInt:
		return t.int(v.Int())
	case pcommon.ValueTypeBool:
		if v.Bool() {
			return "true"
		}
		return "false"
	case pcommon.ValueTypeDouble:
		t.scratch = appendFloat(t.scratch[:0], v.Double())
	case pcommon.ValueTypeBytes:
		t.scratch = base64.StdEncoding.AppendEncode(t.scratch[:0], v.Bytes().AsRaw())
	case pcommon.ValueTypeMap, pcommon.ValueTypeSlice:
		t.scratch = t.appendJSON(t.scratch[:0], v)
	default:
		return ""
	}
	return t.take(t.scratch)
}

func (t *texts) int(i int64) string {
	t.scratch = strconv.AppendInt(t.scratch[:0], i, 10)
	return t.take(t.scratch)
}

const hexDigits = "0123456789abcdef"

// id returns the hexadecimal digits of an id; one of zeros is absent.
func (t *texts) id(id []byte) string {
	var bits byte
	for _, b := range id {
		bits |= b
	}
	if bits == 0 {
		return ""
	}
	t.scratch = appendHex(t.scratch[:0], id)
	return t.take(t.scratch)
}

func appendHex(dst, id []byte) []byte {
	for _, b := range id {
		dst = append(dst, hexDigits[b>>4], hexDigits[b&15])
	}
	return dst
}

// appendJSON appends a value as JSON. Keys are sorted and unique, so that equal
// values have equal text.
func (t *texts) appendJSON(dst []byte, v pcommon.Value) []byte {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return appendQuoted(dst, v.Str())
	case pcommon.ValueTypeInt:
		return strconv.AppendInt(dst, v.Int(), 10)
	case pcommon.ValueTypeBool:
		return strconv.AppendBool(dst, v.Bool())
	case pcommon.ValueTypeDouble:
		f := v.Double()
		if math.IsNaN(f) || math.IsInf(f, 0) { // JSON has no number for it
			dst = append(dst, '"')
			dst = appendFloat(dst, f)
			return append(dst, '"')
		}
		return appendFloat(dst, f)
	case pcommon.ValueTypeBytes:
		dst = append(dst, '"')
		dst = base64.StdEncoding.AppendEncode(dst, v.Bytes().AsRaw())
		return append(dst, '"')
	case pcommon.ValueTypeMap:
		return t.appendMap(dst, v.Map(), (*texts).appendJSON)
	case pcommon.ValueTypeSlice:
		dst = append(dst, '[')
		for i, s := 0, v.Slice(); i < s.Len(); i++ {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = t.appendJSON(dst, s.At(i))
		}
		return append(dst, ']')
	default:
		return append(dst, "null"...)
	}
}

// appendMap appends a map as a JSON object, each value by appendValue. Of two
// entries with one key the last counts.
func (t *texts) appendMap(dst []byte, m pcommon.Map, appendValue func(*texts, []byte, pcommon.Value) []byte) []byte {
	start := len(t.pairs)
	for k, v := range m.All() {
		t.pairs = append(t.pairs, pair{valid(k), v})
	}
	end := len(t.pairs)
	slices.SortStableFunc(t.pairs[start:end], func(a, b pair) int { return strings.Compare(a.key, b.key) })
	dst = append(dst, '{')
	first := true
	for i := start; i < end; i++ {
		p := t.pairs[i] // a nested map may move t.pairs
		if i+1 < end && t.pairs[i+1].key == p.key {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(appendQuoted(dst, p.key), ':')
		dst = appendValue(t, dst, p.value)
	}
	clear(t.pairs[start:end])
	t.pairs = t.pairs[:start]
	return append(dst, '}')
}

// appendText appends a value's text as a JSON string.
func (t *texts) appendText(dst []byte, v pcommon.Value) []byte {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return appendQuoted(dst, v.Str())
	case pcommon.ValueTypeMap, pcommon.ValueTypeSlice:
		return appendQuoted(dst, string(t.appendJSON(nil, v)))
	case pcommon.ValueTypeEmpty:
		return append(dst, `""`...)
	case pcommon.ValueTypeBytes:
		return t.appendJSON(dst, v)
	default:
		dst = append(dst, '"')
		if v.Type() == pcommon.ValueTypeDouble {
			dst = appendFloat(dst, v.Double())
		} else {
			dst = t.appendJSON(dst, v)
		}
		return append(dst, '"')
	}
}

// appendFloat writes a number without an exponent where that is short, since
// LogsQL indexes and compares such numbers best.
func appendFloat(dst []byte, f float64) []byte {
	switch abs := math.Abs(f); {
	case math.IsNaN(f):
		return append(dst, "NaN"...)
	case math.IsInf(f, 1):
		return append(dst, "Infinity"...)
	case math.IsInf(f, -1):
		return append(dst, "-Infinity"...)
	case abs != 0 && (abs < 1e-6 || abs >= 1e21):
		return strconv.AppendFloat(dst, f, 'e', -1, 64)
	default:
		return strconv.AppendFloat(dst, f, 'f', -1, 64)
	}
}

// appendQuoted appends s as a JSON string; what is not UTF-8 becomes U+FFFD.
func appendQuoted(dst []byte, s string) []byte {
	s = valid(s)
	dst = append(dst, '"')
	start := 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, `\n`...)
		case '\r':
			dst = append(dst, `\r`...)
		case '\t':
			dst = append(dst, `\t`...)
		default:
			dst = append(dst, `\u00`...)
			dst = append(dst, hexDigits[c>>4], hexDigits[c&15])
		}
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

// valid replaces what is not UTF-8 by U+FFFD.
func valid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
