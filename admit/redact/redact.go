// Package redact takes personal data and secrets out of text before it is kept:
// e-mail addresses, phone numbers, payment cards, identity numbers, keys and
// tokens, and what the user's own rules say. What is taken out is replaced by
// [redacted:RULE], which does not tell how long it was.
//
// Built-in rules prefer leaving a doubtful number in to taking an ordinary one
// out: identifiers, times, sizes and hashes are evidence. Each rule says in its
// file what it takes and what it does not; docs/payloads.md has the table.
package redact

import (
	"bytes"
	"cmp"
	"slices"
)

// Names of the built-in rules.
const (
	Email          = "email"
	Phone          = "phone"
	Card           = "card"
	ChineseID      = "cn_id"
	SocialSecurity = "us_ssn"
	APIKey         = "api_key"
	Token          = "token"
	PrivateKey     = "private_key"
	Password       = "password"
	URLCredentials = "url_credentials"
)

// BuiltIn returns the names of the built-in rules.
func BuiltIn() []string {
	return []string{Email, Phone, Card, ChineseID, SocialSecurity, APIKey, Token, PrivateKey, Password, URLCredentials}
}

// Redactor applies rules. It is safe for concurrent use, and the same text
// always gives the same result.
type Redactor struct {
	built map[string]*rule // without those that are off
	user  []userRule
}

// rule is what a span is replaced for.
type rule struct {
	name        string
	replacement []byte
}

// New returns a redactor with the built-in rules that are not off and the
// user's own.
func New(c Config) (*Redactor, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	r := &Redactor{built: map[string]*rule{}}
	for _, name := range BuiltIn() {
		if !slices.Contains(c.Off, name) {
			r.built[name] = &rule{name: name, replacement: []byte(defaultReplacement(name))}
		}
	}
	for _, u := range c.Rules {
		compiled, err := u.compile()
		if err != nil {
			return nil, err
		}
		r.user = append(r.user, compiled)
	}
	return r, nil
}

func defaultReplacement(name string) string { return "[redacted:" + name + "]" }

// Redact returns text without what the rules take out, and whether anything
// was. When nothing was, it returns text itself. JSON stays JSON: strings are
// redacted by what they mean, escapes and JSON within strings included, and a
// number becomes a string. Other text is redacted as it stands. The time is
// linear in the length of text.
func (r *Redactor) Redact(text []byte) (out []byte, redacted bool) {
	if looksLikeJSON(text) {
		return r.json(text, 0)
	}
	return r.plain(text, "")
}

// plain redacts text that is no JSON. key names what it is the value of.
func (r *Redactor) plain(text []byte, key string) ([]byte, bool) {
	spans := r.scan(text, key)
	if len(spans) == 0 {
		return text, false
	}
	return replace(text, spans), true
}

// span is a part of a text that a rule takes out.
type span struct {
	start, end int
	rule       *rule
}

// scan finds the spans, sorted and apart.
func (r *Redactor) scan(text []byte, key string) []span {
	s := scanner{r: r, text: text, key: key}
	s.run()
	for i := range r.user {
		s.spans = r.user[i].find(text, s.spans)
	}
	return merge(s.spans)
}

// merge sorts spans and unites those that overlap, so that whatever any rule
// takes is out. The first one's rule names the whole.
func merge(spans []span) []span {
	if len(spans) < 2 {
		return spans
	}
	slices.SortStableFunc(spans, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
	})
	out := spans[:1]
	for _, next := range spans[1:] {
		if last := &out[len(out)-1]; next.start < last.end {
			last.end = max(last.end, next.end)
		} else {
			out = append(out, next)
		}
	}
	return out
}

func replace(text []byte, spans []span) []byte {
	var out bytes.Buffer
	out.Grow(len(text))
	at := 0
	for _, sp := range spans {
		out.Write(text[at:sp.start])
		out.Write(sp.rule.replacement)
		at = sp.end
	}
	out.Write(text[at:])
	return out.Bytes()
}
