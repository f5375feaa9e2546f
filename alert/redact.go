package alert

import (
	"errors"
	"net/url"
	"strings"
)

// redactor takes a hook's secrets out of texts: errors of the network name the
// URL, and a receiver may echo what it got.
type redactor struct{ r *strings.Replacer }

// shortestSecret is the length from which a part of a URL may be a key. Shorter
// ones are words such as "send".
const shortestSecret = 8

func newRedactor(h *Hook) redactor {
	var pairs []string
	hide := func(s string) {
		if s != "" {
			pairs = append(pairs, s, hidden)
		}
	}
	// The replacer takes the first of the list that fits at a place: the longer
	// ones come first.
	hide(string(h.URL))
	if u, err := url.Parse(string(h.URL)); err == nil {
		if uri := u.RequestURI(); len(uri) >= shortestSecret {
			hide(uri)
		}
		if len(u.Path) >= shortestSecret {
			hide(u.EscapedPath())
			hide(u.Path)
		}
		if len(u.RawQuery) >= shortestSecret {
			hide(u.RawQuery)
		}
		for _, vs := range u.Query() {
			for _, v := range vs {
				if len(v) >= shortestSecret {
					hide(v)
					hide(url.QueryEscape(v))
				}
			}
		}
		for _, part := range strings.Split(u.Path, "/") {
			if len(part) >= shortestSecret {
				hide(part)
			}
		}
		if p, ok := u.User.Password(); ok {
			hide(p)
		}
	}
	hide(string(h.Secret))
	hide(url.QueryEscape(string(h.Secret)))
	return redactor{strings.NewReplacer(pairs...)}
}

// text returns s in one line without the hook's secrets.
func (r redactor) text(s string) string { return clean(r.r.Replace(s), 512) }

// error returns err without the hook's secrets. The URL that net/http puts in
// front is left out as a whole.
func (r redactor) error(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return errors.New(r.text(err.Error()))
}
