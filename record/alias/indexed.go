package alias

import (
	"errors"
	"strings"
)

// Placeholders of numbers in a name: of the element, and of its part.
const (
	elementMark = "<i>"
	partMark    = "<j>"
)

// maxIndex bounds the numbers in an indexed name.
const maxIndex = 9999

// pattern is an indexed name: head <i> middle, or head <i> middle <j> tail.
type pattern struct {
	head, middle, tail string
	parts              bool
}

func isIndexed(name string) bool { return strings.ContainsAny(name, "<>") }

func parsePattern(name string) (pattern, error) {
	var p pattern
	head, rest, ok := strings.Cut(name, elementMark)
	if !ok {
		return p, errors.New("a name with < or > must hold <i> for a number")
	}
	p.head, p.middle = head, rest
	p.middle, p.tail, p.parts = strings.Cut(rest, partMark)
	switch {
	case strings.ContainsAny(p.head+p.middle+p.tail, "<>"):
		return p, errors.New("a name holds at most one <i> and, after it, one <j>")
	case len(p.head) < 2*minName || !strings.HasSuffix(p.head, "."):
		return p, errors.New("before <i> there must be eight characters or more, the last a dot")
	case p.middle == "" && p.parts:
		return p, errors.New("between <i> and <j> there must be something")
	}
	return p, nil
}

// indexGroup is all indexed names with one head.
type indexGroup struct {
	head  string
	names []indexed
}

type indexed struct {
	pattern
	names *names
}

func (g *indexGroup) find(name string) (*names, index) {
	rest, ok := strings.CutPrefix(name, g.head)
	if !ok {
		return nil, index{}
	}
	i, rest, ok := number(rest)
	if !ok {
		return nil, index{}
	}
	for k := range g.names {
		p := &g.names[k]
		if !p.parts {
			if rest == p.middle {
				return p.names, index{i, -1}
			}
			continue
		}
		after, ok := strings.CutPrefix(rest, p.middle)
		if !ok {
			continue
		}
		if j, after, ok := number(after); ok && after == p.tail {
			return p.names, index{i, j}
		}
	}
	return nil, index{}
}

// number cuts a decimal number off.
func number(s string) (n int, rest string, ok bool) {
	k := 0
	for k < len(s) && s[k] >= '0' && s[k] <= '9' {
		n = 10*n + int(s[k]-'0')
		if n > maxIndex {
			return 0, "", false
		}
		k++
	}
	return n, s[k:], k > 0
}
