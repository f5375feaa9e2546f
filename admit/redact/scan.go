package redact

// scanner finds what the built-in rules take, in one pass: it goes from word to
// word and looks closer only where something may begin.
type scanner struct {
	r     *Redactor
	text  []byte
	key   string // what text is the value of
	spans []span
	// floor is where the last escape sequence ended. No span begins before it
	// and ends after it, so that escapes stay whole.
	floor int
	// Where the last runs ended, so that text that keeps promising something is
	// not read again and again.
	keys, jwtBody, values memo
}

// memo remembers a run of bytes: from wherever in it one looks, it ends where
// it ends.
type memo struct{ start, end int }

// until returns the end of the run that i is in, found by end(i) if need be.
func (m *memo) until(i int, end func(int) int) int {
	if i < m.start || i >= m.end {
		*m = memo{i, end(i)}
	}
	return m.end
}

// class says what a byte may be the beginning of.
type class uint8

const (
	other  class = iota
	letter       // letters and _
	digit
	mark // what looks closer by itself
)

var classes = func() (c [256]class) {
	for b := range c {
		switch {
		case b >= '0' && b <= '9':
			c[b] = digit
		case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b == '_':
			c[b] = letter
		}
	}
	for _, b := range []byte("@\\+(-=:") {
		c[b] = mark
	}
	c[wideColon[0]] = mark
	return c
}()

// wideColon is the colon of Chinese text, in UTF-8.
const wideColon = "\uFF1A"

func (s *scanner) run() {
	for i := 0; i < len(s.text); {
		switch classes[s.text[i]] {
		case other:
			i++
		case letter:
			i = s.word(i)
		case digit:
			i = s.number(i)
		case mark:
			i = s.mark(i)
		}
	}
}

// add notes a span, unless its rule is off, and returns where to go on.
func (s *scanner) add(name string, start, end int) int {
	if r := s.r.built[name]; r != nil {
		s.spans = append(s.spans, span{start, end, r})
	}
	return end
}

func (s *scanner) mark(i int) int {
	switch s.text[i] {
	case '@':
		return s.at(i)
	case '\\':
		return s.escape(i)
	case '+':
		return s.plus(i)
	case '(':
		return s.bracket(i)
	case '-':
		return s.dashes(i)
	case '=', ':':
		return s.assignment(i, i+1)
	default:
		if s.has(i, wideColon) {
			return s.assignment(i, i+len(wideColon))
		}
		return i + 1
	}
}

// escape goes past backslashes and the letter or code that belongs to them, so
// that the n of \n is not taken for the beginning of a word.
func (s *scanner) escape(i int) int {
	for i < len(s.text) && s.text[i] == '\\' {
		i++
	}
	if i < len(s.text) {
		switch s.text[i] {
		case 'n', 'r', 't', 'b', 'f', '"', '/':
			i++
		case 'u':
			if s.run4hex(i + 1) {
				i += 5
			}
		}
	}
	s.floor = i
	return i
}

func (s *scanner) run4hex(i int) bool {
	if i+4 > len(s.text) {
		return false
	}
	for _, b := range s.text[i : i+4] {
		if !isHex(b) {
			return false
		}
	}
	return true
}

// has tells whether text goes on with want at i.
func (s *scanner) has(i int, want string) bool {
	return i+len(want) <= len(s.text) && string(s.text[i:i+len(want)]) == want
}

// byteAt returns the byte at i, or 0 outside the text.
func (s *scanner) byteAt(i int) byte {
	if i < 0 || i >= len(s.text) {
		return 0
	}
	return s.text[i]
}

// keyRun returns the end of the key that i is in.
func (s *scanner) keyRun(i int) int { return s.while(i, keyBytes) }

// while returns the end of the longest run of bytes that ok takes, from i.
func (s *scanner) while(i int, ok *[256]bool) int {
	for i < len(s.text) && ok[s.text[i]] {
		i++
	}
	return i
}

func isHex(b byte) bool {
	return isDigit(b) || b >= 'a' && b <= 'f' || b >= 'A' && b <= 'F'
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

func isLetter(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' }

// isWord tells whether b belongs to a word.
func isWord(b byte) bool { return isLetter(b) || isDigit(b) || b == '_' }

// set makes a table of bytes: letters and digits where alnum is set, and more.
func set(alnum bool, more string) *[256]bool {
	var ok [256]bool
	for b := range ok {
		ok[b] = alnum && (isLetter(byte(b)) || isDigit(byte(b)))
	}
	for _, b := range []byte(more) {
		ok[b] = true
	}
	return &ok
}

var (
	wordBytes   = set(true, "_")
	keyBytes    = set(true, "_-") // of keys, base64 for URLs
	base64Bytes = set(true, "._~+/=-")
	labelBytes  = set(true, "-.")
	localBytes  = set(true, "._%+-")
)

// mixed tells whether b has a digit and a letter, as random keys do and most
// names do not.
func mixed(b []byte) bool {
	digits, letters := false, false
	for _, c := range b {
		digits = digits || isDigit(c)
		letters = letters || isLetter(c)
	}
	return digits && letters
}
