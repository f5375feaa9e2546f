package logs

import (
	"errors"
	"math"
)

// finder finds phrases in a text in one pass, whatever their number: the automaton
// of Aho and Corasick (1975), all steps worked out beforehand. Letters of ASCII
// match in either case.
type finder struct {
	class   [256]uint8 // bytes that the phrases tell apart; 0 is any other
	classes uint32
	next    []uint32  // by state × classes + class: twice the next state × classes, plus 1 where a phrase ends
	ends    [][]int32 // phrases that end, by state
	phrases []phrase
}

// phrase is one that is looked for.
type phrase struct {
	length      int
	front, back bool // no letter or digit may stand before it, after it
}

func small(b byte) byte {
	if 'A' <= b && b <= 'Z' {
		return b + 'a' - 'A'
	}
	return b
}

// wordByte reports whether a byte goes on a word. Underscores join identifiers.
func wordByte(b byte) bool {
	b = small(b)
	return b >= 'a' && b <= 'z' || b >= '0' && b <= '9' || b == '_'
}

// newFinder prepares for phrases, which are in small letters and may end in *.
func newFinder(phrases []string) (*finder, error) {
	f := &finder{classes: 1}
	texts := make([]string, len(phrases))
	for i, p := range phrases {
		open := p[len(p)-1] == '*'
		if open {
			p = p[:len(p)-1]
		}
		texts[i] = p
		f.phrases = append(f.phrases, phrase{len(p), wordByte(p[0]), !open && wordByte(p[len(p)-1])})
		for k := range len(p) {
			if f.class[p[k]] == 0 {
				if f.classes > math.MaxUint8 {
					return nil, errors.New("the phrases have too many different bytes")
				}
				f.class[p[k]] = uint8(f.classes)
				f.classes++
			}
		}
	}
	for b := 'A'; b <= 'Z'; b++ {
		f.class[b] = f.class[small(byte(b))]
	}
	f.grow()
	for n, p := range texts {
		at := uint32(0)
		for i := range len(p) {
			step := at*f.classes + uint32(f.class[p[i]])
			if f.next[step] == 0 {
				f.next[step] = uint32(len(f.ends))
				f.grow()
			}
			at = f.next[step]
		}
		f.ends[at] = append(f.ends[at], int32(n))
	}
	f.link()
	return f, nil
}

func (f *finder) grow() {
	f.next = append(f.next, make([]uint32, f.classes)...)
	f.ends = append(f.ends, nil)
}

// link fills in where a state goes when its phrase does not go on.
func (f *finder) link() {
	fail := make([]uint32, len(f.ends))
	queue := make([]uint32, 0, len(f.ends))
	for c := range f.classes {
		if n := f.next[c]; n != 0 {
			queue = append(queue, n)
		}
	}
	for i := 0; i < len(queue); i++ {
		at := queue[i]
		f.ends[at] = append(f.ends[at], f.ends[fail[at]]...)
		for c := range f.classes {
			other := f.next[fail[at]*f.classes+c]
			if n := f.next[at*f.classes+c]; n != 0 {
				fail[n] = other
				queue = append(queue, n)
			} else {
				f.next[at*f.classes+c] = other
			}
		}
	}
	for i, n := range f.next {
		f.next[i] = n * f.classes << 1
		if len(f.ends[n]) > 0 {
			f.next[i]++
		}
	}
}

// find calls fn with each phrase that stands in text, at each of its places.
func (f *finder) find(text string, fn func(phrase int32)) {
	at := uint32(0)
	for i := range len(text) {
		step := f.next[at+uint32(f.class[text[i]])]
		at = step >> 1
		if step&1 == 0 {
			continue
		}
		for _, n := range f.ends[at/f.classes] {
			p := &f.phrases[n]
			if from := i + 1 - p.length; p.front && from > 0 && wordByte(text[from-1]) {
				continue
			}
			if p.back && i+1 < len(text) && wordByte(text[i+1]) {
				continue
			}
			fn(n)
		}
	}
}

// reader tells what texts speak of. It is used by one goroutine.
type reader struct {
	table  *Table
	round  uint32
	seen   []uint32 // round in which a phrase was found last, by phrase
	found  []int32  // phrases of this round
	has    []uint32 // round in which a topic was found last, by topic
	topics []int    // of this round, in the order of the table's phrases in the text
	kernel bool     // a line of a kernel is among them
}

func newReader(t *Table) *reader {
	return &reader{table: t, seen: make([]uint32, len(t.of)), has: make([]uint32, len(t.names))}
}

const (
	headBytes = 4096 // of a text that are looked at,
	tailBytes = 1024 // and at its end: a stack trace may tell the error last
)

// begin starts with another record.
func (r *reader) begin() {
	r.round++
	r.found, r.topics, r.kernel = r.found[:0], r.topics[:0], false
}

// read looks for phrases in a text of the record.
func (r *reader) read(text string) {
	if len(text) > headBytes+tailBytes {
		r.scan(text[:headBytes])
		r.scan(text[len(text)-tailBytes:])
		return
	}
	r.scan(text)
}

func (r *reader) scan(text string) {
	first := len(r.found)
	r.table.finder.find(text, func(n int32) {
		if r.seen[n] != r.round {
			r.seen[n] = r.round
			r.found = append(r.found, n)
		}
	})
	for _, n := range r.found[first:] {
		for _, i := range r.table.of[n] {
			r.apply(&r.table.rules[i], text)
		}
	}
}

func (r *reader) apply(x *rule, text string) {
	if r.has[x.topic] == r.round && !x.kernel {
		return
	}
	for _, n := range x.phrases {
		if r.seen[n] != r.round {
			return
		}
	}
	if x.match != nil && !x.match.MatchString(text) {
		return
	}
	r.kernel = r.kernel || x.kernel
	r.add(x.topic)
}

func (r *reader) add(topic int) {
	if r.has[topic] != r.round {
		r.has[topic] = r.round
		r.topics = append(r.topics, topic)
	}
}
