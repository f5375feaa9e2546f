package decision

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// spanRule is a [SpanRule]; words of Chinese are looked for anywhere in the name.
type spanRule struct {
	kind        Type
	all, unless []string
}

func newSpans(rules []SpanRule) []spanRule {
	out := make([]spanRule, len(rules))
	for i, r := range rules {
		out[i] = spanRule{r.Type, lowered(r.All), lowered(r.Unless)}
	}
	return out
}

func lowered(words []string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = strings.ToLower(w)
	}
	return out
}

// Longest name of a span that is read, in bytes and words.
const (
	maxSpanName  = 256
	maxNameWords = 32
)

// Span tells the type of decision that a span is named for, such as
// "cache.lookup", "fallback_to_rules", "RetryRequest" or "模型降级".
func (r *Recogniser) Span(name string) (Type, bool) {
	name = start(name, maxSpanName)
	var words []string
	for i := range r.spans {
		s := &r.spans[i]
		if words == nil {
			words = nameWords(name)
		}
		if s.matches(words) {
			return s.kind, true
		}
	}
	return "", false
}

func (s *spanRule) matches(words []string) bool {
	for _, w := range s.all {
		if !hasWord(words, w) {
			return false
		}
	}
	for _, w := range s.unless {
		if hasWord(words, w) {
			return false
		}
	}
	return true
}

func hasWord(words []string, w string) bool {
	if w[0] < utf8.RuneSelf {
		return slices.Contains(words, w)
	}
	return slices.ContainsFunc(words, func(s string) bool { return strings.Contains(s, w) })
}

// nameWords cuts a name into words, in lower case: at what is no letter or
// digit, where a small letter meets a capital, and between scripts.
func nameWords(name string) []string {
	words := make([]string, 0, 8)
	from, last := 0, rune(0)
	add := func(to int) {
		if to > from && len(words) < maxNameWords {
			words = append(words, strings.ToLower(name[from:to]))
		}
		from = to
	}
	for i, c := range name {
		switch {
		case !unicode.IsLetter(c) && !unicode.IsDigit(c):
			add(i)
			from = i + utf8.RuneLen(c)
			if c == utf8.RuneError {
				_, n := utf8.DecodeRuneInString(name[i:])
				from = i + n
			}
		case unicode.IsUpper(c) && unicode.IsLower(last), unicode.Is(unicode.Han, c) != unicode.Is(unicode.Han, last):
			add(i)
		}
		last = c
	}
	add(len(name))
	return words
}
