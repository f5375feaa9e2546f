package decision

import (
	"errors"
	"math"
)

// maxWords bounds the words of a table.
const maxWords = 256

// wordSet is a set of words by number.
type wordSet [maxWords / 64]uint64

func (s *wordSet) add(i int) { s[i/64] |= 1 << (i % 64) }

func (s *wordSet) join(t *wordSet) {
	for i := range s {
		s[i] |= t[i]
	}
}

func (s *wordSet) meets(t *wordSet) bool {
	for i := range s {
		if s[i]&t[i] != 0 {
			return true
		}
	}
	return false
}

// scanner finds words in a text in one pass, whatever their number: the
// automaton of Aho and Corasick (1975), all steps worked out beforehand. Letters
// of ASCII match in either case.
type scanner struct {
	class   [256]uint8 // bytes that the words tell apart; 0 is any other
	classes int
	next    []uint32  // by state × classes + class: twice the next state × classes, plus 1 where it found something
	found   []wordSet // by state
	some    []bool    // by state: found is not empty
}

func lower(b byte) byte {
	if 'A' <= b && b <= 'Z' {
		return b + 'a' - 'A'
	}
	return b
}

// newScanner prepares for words, which are in lower case.
func newScanner(words []string) (*scanner, error) {
	s := &scanner{classes: 1}
	for _, w := range words {
		for i := range len(w) {
			if s.class[w[i]] == 0 {
				if s.classes > math.MaxUint8 {
					return nil, errors.New("the words have too many different bytes")
				}
				s.class[w[i]] = uint8(s.classes)
				s.classes++
			}
		}
	}
	for b := 'A'; b <= 'Z'; b++ {
		s.class[b] = s.class[lower(byte(b))]
	}
	s.grow()
	for n, w := range words {
		at := 0
		for i := range len(w) {
			step := at*s.classes + int(s.class[w[i]])
			if s.next[step] == 0 {
				if len(s.some) > math.MaxUint16 {
					return nil, errors.New("the words are too long together")
				}
				s.next[step] = uint32(len(s.some))
				s.grow()
			}
			at = int(s.next[step])
		}
		s.found[at].add(n)
		s.some[at] = true
	}
	s.link()
	return s, nil
}

func (s *scanner) grow() {
	s.next = append(s.next, make([]uint32, s.classes)...)
	s.found = append(s.found, wordSet{})
	s.some = append(s.some, false)
}

// link fills in where a state goes when its word does not go on.
func (s *scanner) link() {
	fail := make([]int, len(s.some))
	queue := make([]int, 0, len(s.some))
	for c := range s.classes {
		if n := int(s.next[c]); n != 0 {
			queue = append(queue, n)
		}
	}
	for i := 0; i < len(queue); i++ {
		at := queue[i]
		s.found[at].join(&s.found[fail[at]])
		s.some[at] = s.some[at] || s.some[fail[at]]
		for c := range s.classes {
			other := s.next[fail[at]*s.classes+c]
			if n := int(s.next[at*s.classes+c]); n != 0 {
				fail[n] = int(other)
				queue = append(queue, n)
			} else {
				s.next[at*s.classes+c] = other
			}
		}
	}
	for i, n := range s.next {
		s.next[i] = n * uint32(s.classes) << 1
		if s.some[n] {
			s.next[i]++
		}
	}
}

// scan returns the words in text.
func (s *scanner) scan(text string) (found wordSet, any bool) {
	at := 0
	for i := range len(text) {
		step := s.next[at+int(s.class[text[i]])]
		at = int(step >> 1)
		if step&1 != 0 {
			found.join(&s.found[at/s.classes])
			any = true
		}
	}
	return found, any
}
