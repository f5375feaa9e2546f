package event

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// scanner reads JSON text strictly. A method that returns false says nothing
// about whether the text is JSON: it only is not what the fast path reads, and
// encoding/json is asked. The text must be valid UTF-8.
type scanner struct {
	s     string
	i     int
	plain bool // no control characters and no escapes: a quote ends a string
}

// newScanner returns a scanner of s, false when s is not UTF-8.
func newScanner(s string) (scanner, bool) {
	return scanner{s: s, plain: !hasControls(s) && strings.IndexByte(s, '\\') < 0}, utf8.ValidString(s)
}

// hasControls tells whether s has a byte below the space.
func hasControls(s string) bool {
	const low, high = 0x0101010101010101, 0x8080808080808080
	for len(s) >= 8 {
		x := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
		// A byte below n leaves its highest bit set when n is taken from it.
		if (x-low*' ')&^x&high != 0 {
			return true
		}
		s = s[8:]
	}
	for i := range len(s) {
		if s[i] < ' ' {
			return true
		}
	}
	return false
}

// peek returns the next byte after white space, 0 at the end.
func (c *scanner) peek() byte {
	for c.i < len(c.s) {
		b := c.s[c.i]
		if b > ' ' {
			return b
		}
		if b != ' ' && b != '\n' && b != '\r' && b != '\t' {
			return 0
		}
		c.i++
	}
	return 0
}

// take reads b after white space.
func (c *scanner) take(b byte) bool {
	if c.peek() != b {
		return false
	}
	c.i++
	return true
}

func (c *scanner) word(w string) bool {
	if len(c.s)-c.i < len(w) || c.s[c.i:c.i+len(w)] != w {
		return false
	}
	c.i += len(w)
	return true
}

// name reads the name of a member and the colon. A name with an escape is left
// to encoding/json.
func (c *scanner) name() (string, bool) {
	if !c.take('"') {
		return "", false
	}
	start := c.i
	for ; c.i < len(c.s); c.i++ {
		switch b := c.s[c.i]; {
		case b == '"':
			name := c.s[start:c.i]
			c.i++
			return name, c.take(':')
		case b == '\\' || b < ' ':
			return "", false
		}
	}
	return "", false
}

// text reads a string whose quote is next. It allocates only for escapes.
func (c *scanner) text() (string, bool) {
	c.i++
	start := c.i
	if c.plain {
		n := strings.IndexByte(c.s[start:], '"')
		if n < 0 {
			return "", false
		}
		c.i += n + 1
		return c.s[start : start+n], true
	}
	for i := start; i < len(c.s); i++ {
		switch b := c.s[i]; {
		case b == '"':
			c.i = i + 1
			return c.s[start:i], true
		case b == '\\':
			c.i = i
			return c.escaped(start)
		case b < ' ':
			return "", false
		}
	}
	return "", false
}

// escaped reads the rest of a string that began at start and has an escape next.
func (c *scanner) escaped(start int) (string, bool) {
	b := append(make([]byte, 0, 2*(c.i-start)+64), c.s[start:c.i]...)
	for c.i < len(c.s) {
		switch ch := c.s[c.i]; {
		case ch == '"':
			c.i++
			return string(b), true
		case ch < ' ':
			return "", false
		case ch != '\\':
			b = append(b, ch)
			c.i++
		default:
			var ok bool
			if b, ok = c.escape(b); !ok {
				return "", false
			}
		}
	}
	return "", false
}

// plainEscapes are what one character after a backslash stands for.
var plainEscapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

func (c *scanner) escape(b []byte) ([]byte, bool) {
	if c.i+1 >= len(c.s) {
		return b, false
	}
	if p := plainEscapes[c.s[c.i+1]]; p != 0 {
		c.i += 2
		return append(b, p), true
	}
	r, ok := c.unit()
	if !ok {
		return b, false
	}
	if utf16.IsSurrogate(r) {
		low, ok := c.unit()
		// A lone half has no meaning; encoding/json decides.
		if r = utf16.DecodeRune(r, low); !ok || r == utf8.RuneError {
			return b, false
		}
	}
	return utf8.AppendRune(b, r), true
}

// unit reads \uXXXX.
func (c *scanner) unit() (rune, bool) {
	if len(c.s)-c.i < 6 || c.s[c.i] != '\\' || c.s[c.i+1] != 'u' {
		return 0, false
	}
	var r rune
	for _, b := range []byte(c.s[c.i+2 : c.i+6]) {
		switch {
		case b >= '0' && b <= '9':
			b -= '0'
		case b >= 'a' && b <= 'f':
			b -= 'a' - 10
		case b >= 'A' && b <= 'F':
			b -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(b)
	}
	c.i += 6
	return r, true
}

// maxLiteral is the longest number that the fast path reads, in bytes.
const maxLiteral = 40

// literal is a number as the stored form holds it: an integer where it is
// written as one and fits, else a double.
type literal struct {
	isInt bool
	i     int64
	f     float64
	whole bool // f is exactly what was written, and has no fraction
}

func (c *scanner) number() (literal, bool) {
	start := c.i
	if c.i < len(c.s) && c.s[c.i] == '-' {
		c.i++
	}
	first := c.i
	digits := c.digits()
	if digits == 0 || digits > 1 && c.s[first] == '0' {
		return literal{}, false
	}
	isInt, zeros := true, true
	if c.i < len(c.s) && c.s[c.i] == '.' {
		c.i++
		from := c.i
		if isInt = false; c.digits() == 0 {
			return literal{}, false
		}
		for i := from; zeros && i < c.i; i++ {
			zeros = c.s[i] == '0'
		}
	}
	if c.i < len(c.s) && c.s[c.i]|0x20 == 'e' {
		c.i++
		isInt, zeros = false, false
		if c.i < len(c.s) && (c.s[c.i] == '+' || c.s[c.i] == '-') {
			c.i++
		}
		if n := c.digits(); n == 0 || n > 3 {
			return literal{}, false
		}
	}
	return parseLiteral(c.s[start:c.i], isInt, zeros)
}

func (c *scanner) digits() int {
	start := c.i
	for c.i < len(c.s) && c.s[c.i]-'0' <= 9 {
		c.i++
	}
	return c.i - start
}

// parseLiteral reads the text of a number. zeros says that it has no fraction
// but zeros, and no exponent.
func parseLiteral(s string, isInt, zeros bool) (literal, bool) {
	if len(s) > maxLiteral {
		return literal{}, false
	}
	if isInt && len(s) < 19 {
		var i int64
		for _, b := range []byte(s) {
			if b != '-' {
				i = i*10 + int64(b-'0')
			}
		}
		if s[0] == '-' {
			i = -i
		}
		return literal{isInt: true, i: i}, true
	}
	if isInt {
		if i, err := strconv.ParseInt(s, 10, 64); err == nil {
			return literal{isInt: true, i: i}, true
		}
	}
	f, err := strconv.ParseFloat(s, 64)
	return literal{f: f, whole: zeros && isWhole(f)}, err == nil
}

// skip reads any value.
func (c *scanner) skip(depth int) bool {
	if depth > MaxDepth {
		return false
	}
	switch c.peek() {
	case '"':
		_, ok := c.text()
		return ok
	case '{':
		return c.skipGroup('}', depth+1)
	case '[':
		return c.skipGroup(']', depth+1)
	case 't':
		return c.word("true")
	case 'f':
		return c.word("false")
	case 'n':
		return c.word("null")
	}
	_, ok := c.number()
	return ok
}

// skipGroup reads the members of an object or list up to its end.
func (c *scanner) skipGroup(end byte, depth int) bool {
	c.i++
	if c.take(end) {
		return true
	}
	for {
		if end == '}' {
			if _, ok := c.name(); !ok {
				return false
			}
		}
		if !c.skip(depth) {
			return false
		}
		if c.take(end) {
			return true
		}
		if !c.take(',') {
			return false
		}
	}
}

// view reads any value as the library takes it, see view.go. It refuses a member
// that is given twice.
func (c *scanner) view(depth int) (any, bool) {
	b := c.peek()
	if (b == '{' || b == '[') && depth > MaxDepth {
		return nil, false
	}
	switch b {
	case '"':
		return c.text()
	case '{':
		return c.viewObject(depth)
	case '[':
		return c.viewList(depth)
	case 't':
		return true, c.word("true")
	case 'f':
		return false, c.word("false")
	case 'n':
		return nil, c.word("null")
	}
	start := c.i
	_, ok := c.number()
	return json.Number(c.s[start:c.i]), ok
}

func (c *scanner) viewList(depth int) (any, bool) {
	c.i++
	items := []any{}
	if c.take(']') {
		return items, true
	}
	for {
		v, ok := c.view(depth + 1)
		if !ok {
			return nil, false
		}
		items = append(items, v)
		if c.take(']') {
			return items, true
		}
		if !c.take(',') {
			return nil, false
		}
	}
}

func (c *scanner) viewObject(depth int) (any, bool) {
	c.i++
	m := map[string]any{}
	if c.take('}') {
		return m, true
	}
	for {
		name, ok := c.name()
		if !ok {
			return nil, false
		}
		v, ok := c.view(depth + 1)
		if !ok {
			return nil, false
		}
		before := len(m)
		if m[name] = v; len(m) == before {
			return nil, false
		}
		if c.take('}') {
			return m, true
		}
		if !c.take(',') {
			return nil, false
		}
	}
}
