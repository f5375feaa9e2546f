package otlpreceiver

import (
	"encoding/json"
	"fmt"
	"strings"

	"inquest/admit"
)

// jsonFilter leaves the records out of a JSON request that do not decode. It is
// given valid JSON, so each record's end is known.
type jsonFilter struct {
	// strict decodes a whole request.
	strict func([]byte) error
	report *admit.Report
	kind   admit.LetterKind
	buf    []byte // of check
}

// request returns body without what does not decode.
func (f *jsonFilter) request(m *message, body []byte) ([]byte, error) {
	c, ok := f.split(m, nil, body)
	if !ok {
		return nil, malformed("request is not an OTLP JSON message: it is not an object")
	}
	return c.children, nil
}

// jsonContents is a container taken apart.
type jsonContents struct {
	rest     []byte // an object of the container's own members, not closed
	children []byte // the whole object, without the bad records
	records  int
}

// split takes a container apart and leaves out what does not decode. It tells
// whether raw is an object.
func (f *jsonFilter) split(m *message, path []*field, raw []byte) (jsonContents, bool) {
	var c jsonContents
	if isNull(trimSpace(raw)) {
		c.children = []byte("{}")
		return c, true
	}
	var kids []byte
	ok := members(raw, func(key string, val []byte) {
		child := m.byName(key)
		switch {
		case key == "" || isNull(val):
		case !child.holds():
			c.rest = append(appendKey(append(c.rest, separator(c.rest, '{')), key), val...)
		default:
			good, n := f.children(child, append(path, child), val)
			kids = append(appendKey(append(kids, separator(kids, '{')), key), good...)
			c.records += n
		}
	})
	c.children = append(c.children, c.rest...)
	if len(kids) > 0 {
		c.children = append(append(c.children, separator(c.children, '{')), kids[1:]...)
	}
	c.children = append(c.children, closing(c.children, "{}")...)
	return c, ok
}

// children returns the value of a field that leads to records, without the bad
// ones, and how many records it holds.
func (f *jsonFilter) children(child *field, path []*field, val []byte) ([]byte, int) {
	if child.single {
		good, n, ok := f.child(child.msg, path, val)
		if !ok {
			return []byte("null"), 0
		}
		return good, n
	}
	var list []byte
	records := 0
	if !elements(val, func(raw []byte) {
		good, n, ok := f.child(child.msg, path, raw)
		if ok {
			list = append(append(list, separator(list, '[')), good...)
			records += n
		}
	}) {
		f.reject(1, val, child.camel+" is not a list")
	}
	return append(list, closing(list, "[]")...), records
}

// child returns what is kept of a record or container; ok is false when that is
// nothing.
func (f *jsonFilter) child(m *message, path []*field, raw []byte) (good []byte, records int, ok bool) {
	if m.role == unit {
		if raw[0] != '{' && !isNull(raw) {
			f.reject(1, raw, m.name+" is not an object")
			return nil, 0, false
		}
		err := f.check(path, raw)
		if err == nil {
			return raw, 1, true
		}
		if tidied := tidy(raw); f.check(path, tidied) == nil {
			return tidied, 1, true
		}
		f.reject(1, raw, f.reason(m, path, raw, err))
		return nil, 0, false
	}
	c, isObject := f.split(m, path, raw)
	if !isObject {
		f.reject(1, raw, m.name+" is not an object")
		return nil, 0, false
	}
	if len(c.rest) == 0 {
		return c.children, c.records, true
	}
	rest := append(c.rest, '}')
	err := f.check(path, rest)
	if err == nil {
		return c.children, c.records, true
	}
	if tidied := tidy(rest); f.check(path, tidied) == nil {
		return tidy(c.children), c.records, true
	}
	f.reject(max(c.records, 1), raw, f.reason(m, path, rest, err))
	return nil, 0, false
}

// reject refuses n records that raw holds.
func (f *jsonFilter) reject(n int, raw []byte, reason string) {
	f.report.Reject(n, reason)
	f.report.Put(admit.Letter{
		Reason: codeDecode, Detail: reason, Kind: f.kind, Records: n,
		Payload: strings.ToValidUTF8(string(raw), "\uFFFD"), Encoding: admit.EncodingText,
	})
}

// check decodes an object that lies at path within a request.
func (f *jsonFilter) check(path []*field, val []byte) error {
	f.buf = f.buf[:0]
	for _, p := range path {
		f.buf = appendKey(append(f.buf, '{'), p.camel)
		if !p.single {
			f.buf = append(f.buf, '[')
		}
	}
	f.buf = append(f.buf, val...)
	for i := len(path) - 1; i >= 0; i-- {
		if !path[i].single {
			f.buf = append(f.buf, ']')
		}
		f.buf = append(f.buf, '}')
	}
	return f.strict(f.buf)
}

// reason names the member that makes an object fail to decode.
func (f *jsonFilter) reason(m *message, path []*field, raw []byte, err error) string {
	var found string
	members(raw, func(key string, val []byte) {
		if found != "" || isNull(val) {
			return
		}
		alone := append(append(appendKey([]byte{'{'}, key), val...), '}')
		if err := f.check(path, alone); err != nil {
			found = fmt.Sprintf("%s: %s: %s", m.name, key, jsonCause(key, val, err))
		}
	})
	if found == "" {
		return m.name + ": " + cause(err)
	}
	return found
}

// jsonCause words a decoder's error for the sender; ids are what goes wrong
// most often, since generic protobuf libraries write them in base64.
func jsonCause(key string, val []byte, err error) string {
	digits := 0
	switch strings.ReplaceAll(strings.ToLower(key), "_", "") {
	case "traceid":
		digits = 32
	case "spanid", "parentspanid":
		digits = 16
	default:
		return cause(err)
	}
	text := fmt.Sprintf("must be a string of %d hexadecimal digits", digits)
	if n := len(val) - 2; n == 4*((digits/2+2)/3) {
		text += ", this looks like base64"
	}
	return text
}

func syntaxText(err *json.SyntaxError) string {
	return fmt.Sprintf("%s, at byte %d", err.Error(), err.Offset)
}
