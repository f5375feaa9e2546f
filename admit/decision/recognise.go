package decision

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// maxBody is how many bytes of a body are read. Programs say what they decided
// at the start of a line; what follows may be a prompt, which can say anything.
const maxBody = 1024

// maxTries bounds how many matches of one pattern are looked at in one body.
const maxTries = 4

// Recogniser holds a table ready for use. It is safe for concurrent use.
type Recogniser struct {
	quick      *prefilter
	scanner    *scanner
	patterns   []pattern
	attributes attributes
	spans      []spanRule
}

// pattern is a [Pattern] made ready.
type pattern struct {
	*Pattern
	words            []wordSet
	match, unless    *regexp.Regexp
	reason, from, to int // numbers of groups, -1 for none
}

// New makes a recogniser of a table.
func New(t *Table) (*Recogniser, error) {
	if err := t.check(); err != nil {
		return nil, fmt.Errorf("cannot use the table of decisions: %w", err)
	}
	r := &Recogniser{}
	number := map[string]int{}
	var words []string
	for i := range t.Patterns {
		p := pattern{Pattern: &t.Patterns[i], words: make([]wordSet, len(t.Patterns[i].Words))}
		for g, group := range p.Words {
			for _, w := range group {
				w = strings.ToLower(w)
				n, ok := number[w]
				if !ok {
					if n = len(words); n == maxWords {
						return nil, fmt.Errorf("cannot use the table of decisions: its patterns have more than %d different words", maxWords)
					}
					number[w] = n
					words = append(words, w)
				}
				p.words[g].add(n)
			}
		}
		var err error
		if p.match, err = regexp.Compile(p.Match); err != nil {
			return nil, fmt.Errorf("cannot use pattern %s: %w", p.ID, err)
		}
		if p.Unless != "" {
			if p.unless, err = regexp.Compile(p.Unless); err != nil {
				return nil, fmt.Errorf("cannot use pattern %s: %w", p.ID, err)
			}
		}
		p.reason, p.from, p.to = p.match.SubexpIndex("reason"), p.match.SubexpIndex("from"), p.match.SubexpIndex("to")
		r.patterns = append(r.patterns, p)
	}
	var err error
	if r.scanner, err = newScanner(words); err != nil {
		return nil, fmt.Errorf("cannot use the table of decisions: %w", err)
	}
	r.quick = newPrefilter(telling(t.Patterns))
	r.attributes = newAttributes(t.Attributes)
	r.spans = newSpans(t.Spans)
	return r, nil
}

// Body recognises a decision in a log body. A body without the words of the
// table costs one pass over its first KiB and no allocation.
func (r *Recogniser) Body(body string) (Decision, bool) {
	body = start(body, maxBody)
	if !r.quick.maybe(body) {
		return Decision{}, false
	}
	found, any := r.scanner.scan(body)
	if !any {
		return Decision{}, false
	}
	return r.match(body, &found)
}

// match holds body against the patterns whose words it has.
func (r *Recogniser) match(body string, found *wordSet) (Decision, bool) {
	b := buffers.Get().(*[maxBody]byte)
	defer buffers.Put(b)
	small := b[:0]
	for i := range r.patterns {
		p := &r.patterns[i]
		if !p.has(found) {
			continue
		}
		if len(small) == 0 { // made for the first pattern that needs it
			small = b[:len(body)]
			for i := range small {
				small[i] = lower(body[i])
			}
		}
		if d, ok := p.read(body, small); ok {
			return d, true
		}
	}
	return Decision{}, false
}

// buffers hold bodies in small letters.
var buffers = sync.Pool{New: func() any { return new([maxBody]byte) }}

// start cuts s to at most n bytes, not within a character.
func start(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

func (p *pattern) has(found *wordSet) bool {
	for i := range p.words {
		if !found.meets(&p.words[i]) {
			return false
		}
	}
	return true
}

// read returns the decision of the first match that its sentence does not deny.
// small is body in small letters, byte by byte.
func (p *pattern) read(body string, small []byte) (Decision, bool) {
	from := 0
	for range maxTries {
		if from >= len(small) || !p.match.Match(small[from:]) {
			return Decision{}, false // Match allocates nothing
		}
		at := p.match.FindSubmatchIndex(small[from:])
		for i := range at {
			if at[i] >= 0 {
				at[i] += from
			}
		}
		s := sentence(body, at[0], at[1])
		before := strings.TrimLeft(body[s.from:at[0]], " \t")
		if !denied(before) && !condition.MatchString(before) && (p.unless == nil || !p.unless.Match(small[s.from:s.to])) {
			return p.decision(body, at), true
		}
		from = max(at[1], from+1)
		for from < len(body) && !utf8.RuneStart(body[from]) {
			from++
		}
	}
	return Decision{}, false
}

func (p *pattern) decision(body string, at []int) Decision {
	group := func(n int) string {
		if n < 0 || at[2*n] < 0 {
			return ""
		}
		return body[at[2*n]:at[2*n+1]]
	}
	d := Decision{Type: p.Type, From: object(group(p.from)), To: object(group(p.to))}
	why := tidyReason(group(p.reason))
	if why == "" {
		why = reasonOf(body, at[0], at[1])
	}
	switch {
	case why == "":
		d.Reason = p.Reason
	case p.Reason != "" && p.Type == Cache:
		d.Reason = p.Reason + ": " + why
	default:
		d.Reason = why
	}
	// What the caller keeps must not hold on to the whole body.
	d.Reason, d.From, d.To = strings.Clone(d.Reason), strings.Clone(d.From), strings.Clone(d.To)
	return d
}

type span struct{ from, to int }

// sentence returns where the sentence around a match begins and ends.
func sentence(body string, from, to int) span {
	s := span{0, len(body)}
	for i, c := range body[:from] {
		if ends(body, i, c) {
			s.from = i + utf8.RuneLen(c)
		}
	}
	for i, c := range body[to:] {
		if ends(body, to+i, c) {
			s.to = to + i
			break
		}
	}
	return s
}

// ends tells whether c, at i of body, ends a sentence. A full stop does only
// before a space, since names and numbers hold some.
func ends(body string, i int, c rune) bool {
	switch c {
	case '\n', ';', '；', '。', '！', '!', '?', '？':
		return true
	case utf8.RuneError: // RuneLen would be wrong
		return false
	case '.':
		return i+1 < len(body) && body[i+1] == ' '
	}
	return false
}

// denial is what turns a match round when it stands right before it.
var denial = regexp.MustCompile(`(?i)(?:` +
	`\b(?:no|not|never|without|won['’]?t|don['’]?t|doesn['’]?t|didn['’]?t|isn['’]?t|wasn['’]?t|cannot|can['’]?t|` +
	`instead of|rather than|avoid(?:s|ed|ing)?|prevent(?:s|ed|ing)?|stop(?:s|ped|ping)?|disabl(?:e|es|ed|ing)|` +
	`finished|done|longer|gave up|giving up|give up|before|whether to|if|should|could|may|might|can|please|try|unless)` +
	`[\s:]+(?:(?:we|the|a|an|any|be|to|been|going to|need(?:ed)? to|on|for|it)\s+){0,2}` +
	`|(?:未|没有?|无需|不会?|不再|不用|不必|不需要?|无须|禁止|禁用|避免|停止|取消|关闭|是否|如果|如需|若|当|请|请稍后|稍后|请您?稍后|可|可以|支持|允许|退出|结束|解除|恢复|防止|配置|最大|非|别)(?:再|要|被|有|任何|触发|执行|发生|使用|进行|启用|自动)?\s*)$`)

// denied tells whether the text before a match denies it.
func denied(before string) bool {
	const far = 48
	if len(before) > far {
		at := len(before) - far
		for at < len(before) && !utf8.RuneStart(before[at]) {
			at++
		}
		before = before[at:]
	}
	return denial.MatchString(before)
}

// condition opens a sentence that says what would happen, not what did.
var condition = regexp.MustCompile(`(?i)(?:^|[:"\]|]\s*)(?:if|when|whenever|in case|unless)\s|(?:如果|假如|假设|若是?|一旦)[^，,。]{0,40}(?:则|就|时|，|,|$)`)

// PatternIDs lists the ids of the patterns of bodies, in the order of use.
func (r *Recogniser) PatternIDs() []string {
	ids := make([]string, len(r.patterns))
	for i, p := range r.patterns {
		ids[i] = p.ID
	}
	return slices.Clip(ids)
}
