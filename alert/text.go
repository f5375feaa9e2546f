package alert

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// clean makes one line of UTF-8 of at most limit bytes out of a sender's text.
func clean(s string, limit int) string {
	// A very long text is shortened before work is spent on each of its letters.
	if most := 4*limit + 1024; len(s) > most {
		s = oneLine(s[:most])
		if len(s)+len(cutMark) <= limit {
			return s + cutMark
		}
		return cut(s+cutMark, limit)
	}
	return cut(oneLine(s), limit)
}

// oneLine replaces what is no UTF-8 by U+FFFD and every run of white space and
// control characters by one blank, so that a text cannot begin a line of its own
// in a message. Marks that turn the direction of writing are removed.
func oneLine(s string) string {
	var b strings.Builder
	blank := true // none at the start
	for _, r := range strings.ToValidUTF8(s, "\uFFFD") {
		switch {
		case unicode.IsSpace(r), unicode.IsControl(r):
			if !blank {
				b.WriteByte(' ')
			}
			blank = true
		case unicode.Is(unicode.Bidi_Control, r):
		default:
			b.WriteRune(r)
			blank = false
		}
	}
	return strings.TrimSuffix(b.String(), " ")
}

const cutMark = "… (cut)"

// cut returns s where it has at most limit bytes, else its beginning up to a
// border of runes and a mark, together at most limit bytes.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	n := limit - len(cutMark)
	if n < 0 {
		return ""
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + cutMark
}

// cutRunes is cut with a limit in characters.
func cutRunes(s string, limit int) string {
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	keep := limit - utf8.RuneCountInString(cutMark)
	if keep < 0 {
		return ""
	}
	for i := range s {
		if keep == 0 {
			return s[:i] + cutMark
		}
		keep--
	}
	return s
}

func count(n int64) string { return strconv.FormatInt(n, 10) }

func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

// title is the first line of every message.
func (m *Message) title() string {
	where := ""
	if m.Service != "" {
		where = " in " + m.Service
	}
	if m.Count == 1 {
		return fmt.Sprintf("inquest: %s%s", m.Reason, where)
	}
	return fmt.Sprintf("inquest: %d × %s%s", m.Count, m.Reason, where)
}

// facts are the lines of every message below its title, the important ones
// first. The example's text and hint are not among them.
func (m *Message) facts() []Label {
	out := []Label{{"Severity", string(m.Severity)}, {"Events", m.events()}}
	add := func(name, value string) {
		if value != "" {
			out = append(out, Label{name, value})
		}
	}
	add("Groups", strings.Join(m.Others, "; "))
	add("Service", m.Service)
	add("Source", m.Example.Source)
	add("Example", m.Example.ID)
	for _, l := range m.Example.Labels {
		add(cut(l.Name, 64), l.Value)
	}
	return out
}

func (m *Message) events() string {
	if m.Count == 1 {
		return "1 at " + clock(m.First)
	}
	return fmt.Sprintf("%d from %s to %s", m.Count, clock(m.First), clock(m.Last))
}
