package otlpreceiver

import (
	"bytes"
	"encoding/json"
	"errors"
)

// Functions to walk through JSON text without copying it. All of them take
// text that [inspect] found valid.

// safeDepth is a nesting of JSON that surely fits into protobuf's limit of 100:
// each level there is one object or list here at least.
const safeDepth = 90

// shape is what must be known of a JSON request before it is decoded.
type shape struct {
	depth    int  // of nesting
	emptyKey bool // an object has a member named "", which pdata takes for the object's end
}

// inspect tells whether body is JSON that can be decoded within bounds.
func inspect(body []byte) (shape, error) {
	var s shape
	if !json.Valid(body) {
		return s, malformed("request is not JSON: %s", syntaxError(body))
	}
	depth, values := 0, 0
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '{', '[':
			depth++
			values++
			s.depth = max(s.depth, depth)
		case '}', ']':
			depth--
		case 'n': // of null, which stands for an empty object in a list
			values++
		case '"':
			end := i + stringEnd(body[i:])
			if end == i+2 && bytes.HasPrefix(trimSpace(body[end:]), []byte(":")) {
				s.emptyKey = true
			}
			i = end - 1
		}
	}
	if values > maxJSONValues {
		return s, tooManyParts()
	}
	return s, nil
}

// syntaxError says what is wrong with text that is not JSON, and where.
func syntaxError(body []byte) string {
	var raw json.RawMessage
	err := json.Unmarshal(body, &raw)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return syntaxText(syntax)
	}
	return "it cannot be parsed"
}

// members calls fn for each member of an object and tells whether raw is one.
func members(raw []byte, fn func(key string, val []byte)) bool {
	raw = trimSpace(raw)
	if len(raw) == 0 || raw[0] != '{' {
		return false
	}
	raw = trimSpace(raw[1:])
	for len(raw) > 0 && raw[0] != '}' {
		end := stringEnd(raw)
		key := unquote(raw[:end])
		raw = trimSpace(trimSpace(raw[end:])[1:]) // the colon
		end = valueEnd(raw)
		fn(key, raw[:end])
		raw = nextItem(raw[end:])
	}
	return true
}

// elements calls fn for each element of a list and tells whether raw is one.
func elements(raw []byte, fn func(val []byte)) bool {
	raw = trimSpace(raw)
	if len(raw) == 0 || raw[0] != '[' {
		return false
	}
	raw = trimSpace(raw[1:])
	for len(raw) > 0 && raw[0] != ']' {
		end := valueEnd(raw)
		fn(raw[:end])
		raw = nextItem(raw[end:])
	}
	return true
}

// nextItem skips the comma between two items.
func nextItem(raw []byte) []byte {
	raw = trimSpace(raw)
	if len(raw) > 0 && raw[0] == ',' {
		raw = trimSpace(raw[1:])
	}
	return raw
}

// valueEnd returns the length of the value that text begins with.
func valueEnd(text []byte) int {
	switch text[0] {
	case '"':
		return stringEnd(text)
	case '{', '[':
		depth := 0
		for i := 0; i < len(text); i++ {
			switch text[i] {
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			case '"':
				i += stringEnd(text[i:]) - 1
			}
		}
		return len(text)
	}
	if i := bytes.IndexAny(text, ",]} \t\r\n"); i >= 0 {
		return i
	}
	return len(text)
}

// stringEnd returns the length of the string that text begins with.
func stringEnd(text []byte) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

func unquote(text []byte) string {
	if bytes.IndexByte(text, '\\') < 0 {
		return string(text[1 : len(text)-1])
	}
	var s string
	if json.Unmarshal(text, &s) != nil {
		return ""
	}
	return s
}

func trimSpace(text []byte) []byte { return bytes.TrimLeft(text, " \t\r\n") }

func isNull(text []byte) bool { return string(text) == "null" }

// tidy returns an object without members that are null, which means absent, or
// have no name, which pdata cannot read. It copies; other values stay as they are.
func tidy(raw []byte) []byte {
	var out []byte
	switch {
	case members(raw, func(key string, val []byte) {
		if key == "" || isNull(val) {
			return
		}
		out = append(appendKey(append(out, separator(out, '{')), key), tidy(val)...)
	}):
		return append(out, closing(out, "{}")...)
	case elements(raw, func(val []byte) {
		out = append(append(out, separator(out, '[')), tidy(val)...)
	}):
		return append(out, closing(out, "[]")...)
	}
	return raw
}

// separator returns what stands before the next item of an object or list that
// out holds so far.
func separator(out []byte, open byte) byte {
	if len(out) == 0 {
		return open
	}
	return ','
}

// closing returns what ends the object or list that out holds so far.
func closing(out []byte, brackets string) string {
	if len(out) == 0 {
		return brackets
	}
	return brackets[1:]
}

func appendKey(dst []byte, key string) []byte {
	quoted, err := json.Marshal(key)
	if err != nil {
		quoted = []byte(`""`) // a string always has a JSON form
	}
	return append(append(dst, quoted...), ':')
}
