package redact

import "bytes"

// number looks at digits. It sees them with the groups that follow at single
// spaces or dashes, since cards, phones and identity numbers are written so. It
// does not look at digits that belong to a word (hashes, ids), a decimal
// number, a version, an address, or a compound such as a UUID or a date.
func (s *scanner) number(i int) int {
	end := s.digits(i)
	if isWord(s.byteAt(end)) {
		if end-i == 17 && s.text[end]|0x20 == 'x' && !isWord(s.byteAt(end+1)) && s.free(i) && chineseID(s.text[i:end+1]) {
			return s.add(ChineseID, i, end+1)
		}
		return s.while(end, wordBytes)
	}
	if next := s.byteAt(end + 1); s.byteAt(end) == '.' && isDigit(next) || !s.free(i) {
		return end
	}
	g := s.groups(i)
	if stop, name := s.match(g); name != "" {
		return s.add(name, i, stop)
	}
	if g.sep == '-' {
		return g.end(len(g.lens)) // the rest of a compound is no beginning
	}
	return end
}

func (s *scanner) digits(i int) int {
	for i < len(s.text) && isDigit(s.text[i]) {
		i++
	}
	return i
}

// free tells whether digits may begin at i: not after a decimal point, and not
// after a dash that follows a word with digits.
func (s *scanner) free(i int) bool {
	switch s.byteAt(i - 1) {
	case '.':
		b := s.byteAt(i - 2)
		return isLetter(b) || b >= 0x80
	case '-':
		for k := i - 2; k >= max(0, i-34) && isWord(s.text[k]); k-- {
			if isDigit(s.text[k]) {
				return false
			}
		}
	case '$':
		return false
	}
	return true
}

// groups are runs of digits with the same single separator between them.
type groups struct {
	start int
	sep   byte // 0 when there is one group
	lens  []int
	room  [maxGroups]int
	after bool // the same separator and a digit come before the first
}

const maxGroups = 6

// end returns where the n-th group ends.
func (g *groups) end(n int) int {
	end := g.start + n - 1
	for _, l := range g.lens[:n] {
		end += l
	}
	return end
}

// is tells whether the first groups have these lengths, and none of the length
// of the last one follows, as in a row of numbers.
func (g *groups) is(lens ...int) bool {
	if len(g.lens) < len(lens) {
		return false
	}
	for i, l := range lens {
		if g.lens[i] != l {
			return false
		}
	}
	if len(g.lens) == len(lens) {
		return true
	}
	return g.sep == ' ' && g.lens[len(lens)] != lens[len(lens)-1]
}

func (s *scanner) groups(i int) *groups {
	g := &groups{start: i}
	g.lens = append(g.room[:0], s.digits(i)-i)
	at := i + g.lens[0]
	for len(g.lens) < maxGroups {
		sep := s.byteAt(at)
		if sep != ' ' && sep != '-' || g.sep != 0 && sep != g.sep || !isDigit(s.byteAt(at+1)) {
			break
		}
		end := s.digits(at + 1)
		if isWord(s.byteAt(end)) || s.byteAt(end) == '.' && isDigit(s.byteAt(end+1)) {
			break
		}
		g.sep = sep
		g.lens = append(g.lens, end-at-1)
		at = end
	}
	g.after = s.byteAt(i-1) == ' ' && isDigit(s.byteAt(i-2))
	return g
}

// match tells what the groups are, and where that ends.
func (s *scanner) match(g *groups) (end int, name string) {
	if g.sep != '-' && (s.byteAt(g.end(1)) != '-' || !isWord(s.byteAt(g.end(1)+1))) {
		if end, name = s.matchOne(g); name != "" {
			return end, name
		}
	}
	if n := g.mobile(); n > 0 && chineseMobile(s.joined(g, n)) && s.hint(g.start, g.end(n)) != hintOrdinary {
		return g.end(n), Phone
	}
	if n := g.card(); n > 0 && !g.after && card(s.joined(g, n), true) {
		return g.end(n), Card
	}
	if g.sep != '-' || len(g.lens) != 3 {
		return 0, ""
	}
	switch {
	case g.is(3, 2, 4) && socialSecurity(s.joined(g, 3)):
		return g.end(3), SocialSecurity
	case g.is(3, 3, 4) && northAmerican(s.joined(g, 3)):
		return g.end(3), Phone
	}
	return 0, ""
}

// mobile returns how many groups may be a Chinese mobile number, or 0.
func (g *groups) mobile() int {
	switch {
	case g.is(2, 3, 4, 4):
		return 4
	case g.is(3, 4, 4):
		return 3
	case g.is(2, 11), g.is(4, 11):
		return 2
	}
	return 0
}

// card returns how many groups may be a card's number, or 0.
func (g *groups) card() int {
	switch {
	case g.is(4, 4, 4, 4, 3):
		return 5
	case g.is(4, 4, 4, 4):
		return 4
	case g.is(4, 6, 5), g.is(4, 6, 4):
		return 3
	}
	return 0
}

// joined returns the digits of the first n groups.
func (s *scanner) joined(g *groups, n int) []byte {
	return bytes.ReplaceAll(s.text[g.start:g.end(n)], []byte{g.sep}, nil)
}

// inFormula tells whether a number is one of a formula or of pairs of numbers:
// -n, n*x, m:n.
func (s *scanner) inFormula(start, end int) bool {
	switch s.byteAt(start - 1) {
	case ':':
		if isDigit(s.byteAt(start - 2)) {
			return true
		}
	case '-':
		if b := s.byteAt(start - 2); b == ' ' || b == '(' || b == '=' || b == ',' || b == '[' {
			return true
		}
	}
	return s.byteAt(end) == '*' && s.byteAt(end+1) != '*'
}

// matchOne tells what the first group is by itself.
func (s *scanner) matchOne(g *groups) (end int, name string) {
	end = g.end(1)
	d := s.text[g.start:end]
	switch n := len(d); {
	case n == 9 && socialSecurity(d) && s.hint(g.start, end) == hintSocial:
		return end, SocialSecurity
	case n == 18 && chineseID(d):
		return end, ChineseID
	case n == 11 || n == 13 || n == 15:
		if chineseMobile(d) {
			switch s.hint(g.start, end) {
			case hintPhone:
				return end, Phone
			case hintNone, hintSocial, hintCard:
				if !roundNumber(d) && !s.inFormula(g.start, end) {
					return end, Phone
				}
			}
			return 0, ""
		}
	}
	if len(d) >= 14 && len(d) <= 19 && card(d, false) && s.hint(g.start, end) != hintOrdinary {
		return end, Card
	}
	return 0, ""
}
