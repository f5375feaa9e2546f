package decision

import "strings"

// prefilter tells quickly of most texts that they have none of some words. It
// looks for the words' first bytes, in one step a byte and without a branch that
// is often taken.
type prefilter struct {
	mask uint32 // of a gram, as many bytes as are looked at together
	bits [1 << 16 / 64]uint64
	// rest is what has to follow a gram.
	rest map[uint32][]string
}

// gramSize is how many bytes are looked at together, where the words have them.
const gramSize = 4

// newPrefilter prepares for words, which are in lower case.
func newPrefilter(words []string) *prefilter {
	n := gramSize
	for _, w := range words {
		n = min(n, len(w))
	}
	p := &prefilter{mask: uint32(1)<<(8*n) - 1, rest: map[uint32][]string{}} // all bits for 4
	for _, w := range words {
		gram := uint32(0)
		for i := range n {
			gram = gram<<8 | uint32(w[i])
		}
		h := gramHash(gram)
		p.bits[h/64] |= 1 << (h % 64)
		p.rest[gram] = append(p.rest[gram], w[n:])
	}
	return p
}

func gramHash(gram uint32) uint32 { return gram * 2654435761 >> 16 }

// smallBytes is [lower] of each byte.
var smallBytes = func() (l [256]uint8) {
	for b := range l {
		l[b] = lower(byte(b))
	}
	return l
}()

// maybe is false only for a text without any of the words.
func (p *prefilter) maybe(text string) bool {
	gram := uint32(0)
	for i := range len(text) {
		gram = (gram<<8 | uint32(smallBytes[text[i]])) & p.mask
		if h := gramHash(gram); p.bits[h/64]>>(h%64)&1 != 0 && p.follows(gram, text[i+1:]) {
			return true
		}
	}
	return false
}

// follows tells whether one of the words that begin with gram goes on as text.
func (p *prefilter) follows(gram uint32, text string) bool {
	for _, rest := range p.rest[gram] {
		if len(text) < len(rest) {
			continue
		}
		n := 0
		for n < len(rest) && smallBytes[text[n]] == rest[n] {
			n++
		}
		if n == len(rest) {
			return true
		}
	}
	return false
}

// telling returns, for each pattern, its words that are the rarest: the group
// whose shortest word is the longest. Without one of them it cannot match.
func telling(patterns []Pattern) []string {
	var out []string
	for i := range patterns {
		best, length := -1, 0
		for g, group := range patterns[i].Words {
			shortest := 0
			for _, w := range group {
				if shortest == 0 || len(w) < shortest {
					shortest = len(w)
				}
			}
			if shortest > length {
				best, length = g, shortest
			}
		}
		if best >= 0 {
			for _, w := range patterns[i].Words[best] {
				out = append(out, strings.ToLower(w))
			}
		}
	}
	return out
}
