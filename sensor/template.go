package sensor

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
)

// Templates of log texts. A text is cut into words, words that look like values
// become <*>, and what is left is the template: it depends on this one text
// only, never on the order in which texts came. [MergeTemplates] then joins
// templates that differ in one word which takes too many values.

const (
	templateWords = 24   // words beyond are left out: the start tells the statement
	templateBytes = 4096 // bytes of a text that are looked at
)

// Template returns the template of a log text.
func Template(text string) string {
	if len(text) > templateBytes {
		text = text[:templateBytes]
	}
	if i := strings.IndexByte(text, '\n'); i > 0 {
		text = text[:i] // the first line names the event, a stack trace follows
	}
	words := strings.FieldsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || r == ',' || r == ';' || r == '"' || r == '[' || r == ']' || r == '(' || r == ')' || r == '{' || r == '}'
	})
	var out []string
	for _, w := range words {
		if len(out) == templateWords {
			break
		}
		w = maskWord(w)
		if w == "<*>" && len(out) > 0 && out[len(out)-1] == "<*>" {
			continue // a list of values has any length
		}
		out = append(out, w)
	}
	return strings.Join(out, " ")
}

// maskWord hides the part of a word that is a value.
func maskWord(w string) string {
	if i := strings.IndexAny(w, "=:"); i > 0 && i < len(w)-1 && !strings.ContainsFunc(w[:i], isValueRune) {
		return w[:i+1] + "<*>"
	}
	if strings.ContainsFunc(w, isValueRune) {
		return "<*>"
	}
	return w
}

// isValueRune reports whether a rune makes a word a value.
func isValueRune(r rune) bool {
	return unicode.IsDigit(r) || r == '/' || r == '@' || r == '\''
}

// mergeAbove is the number of different words in one place of otherwise equal
// templates from which the place counts as a value. A statement's own words do
// not vary; a choice of a few (true/false, GET/POST) tells events apart.
const mergeAbove = 8

// MergeTemplates maps each template to the one that stands for its group. It is
// idempotent and depends on the set only.
func MergeTemplates(templates []string) map[string]string {
	set := slices.Clone(templates)
	slices.Sort(set)
	set = slices.Compact(set)
	type slot struct {
		key string // the template with one place open
		at  int
	}
	variants := map[slot]int{}
	split := make([][]string, len(set))
	for i, t := range set {
		split[i] = strings.Split(t, " ")
		for at := range split[i] {
			variants[slot{open(split[i], at), at}]++
		}
	}
	out := make(map[string]string, len(set))
	for i, t := range set {
		out[t] = t
		best := 0
		for at := range split[i] {
			k := slot{open(split[i], at), at}
			if n := variants[k]; n > mergeAbove && cmp.Compare(n, best) > 0 {
				best = n
				out[t] = k.key
			}
		}
	}
	return out
}

func open(words []string, at int) string {
	w := slices.Clone(words)
	w[at] = "<*>"
	return strings.Join(w, " ")
}

// OperationName takes values out of an operation's name ("GET /users/17"), so
// that operations stay few.
func OperationName(name string) string {
	if !strings.ContainsAny(name, "0123456789") {
		return name
	}
	parts := strings.FieldsFunc(name, func(r rune) bool { return r == '/' || r == '?' || unicode.IsSpace(r) })
	for _, p := range parts {
		if isIdentifier(p) {
			name = strings.Replace(name, p, "*", 1)
		}
	}
	return name
}

// isIdentifier tells a value in a path from a word with a number in it ("v1",
// "trip2"): all digits, or a long string in which digits are many.
func isIdentifier(p string) bool {
	digits, other := 0, 0
	for _, r := range p {
		switch {
		case unicode.IsDigit(r):
			digits++
		case r != '-' && r != '_':
			other++
		}
	}
	return digits > 0 && other == 0 || digits >= 4 && len(p) >= 8
}
