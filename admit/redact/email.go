package redact

import (
	"bytes"
	"slices"
	"strings"
)

// Limits of RFC 5321.
const (
	maxLocal  = 64
	maxDomain = 253
)

// at looks at an @: user:password@ in a URL, or an e-mail address with a
// domain that has a dot and ends in letters. It does not take image@2x.png,
// package@1.2.3, git@host:path, @decorator.
func (s *scanner) at(i int) int {
	if start, ok := s.credentials(i); ok {
		s.add(URLCredentials, start, i)
		return i + 1
	}
	start := i
	for start > s.floor && i-start <= maxLocal && localBytes[s.text[start-1]] {
		start--
	}
	for start < i && !isLetter(s.text[start]) && !isDigit(s.text[start]) && s.text[start] != '_' {
		start++
	}
	if start == i || i-start > maxLocal || s.text[i-1] == '.' {
		return i + 1
	}
	end := s.while(i+1, labelBytes)
	if end-i-1 > maxDomain {
		return i + 1
	}
	n := domain(s.text[i+1 : end])
	if n == 0 {
		return i + 1
	}
	end = i + 1 + n
	if string(s.text[start:i]) == "git" && s.byteAt(end) == ':' {
		return i + 1
	}
	return s.add(Email, start, end)
}

// domain returns how much of b is a host name with a top-level domain.
func domain(b []byte) int {
	labels := bytes.Split(bytes.TrimRight(b, ".-"), []byte{'.'})
	for n := len(labels); n >= 2; n-- {
		if isDomain(labels[:n]) {
			return len(bytes.Join(labels[:n], []byte{'.'}))
		}
	}
	return 0
}

// notDomains are ends of file and version names that have the form of a
// top-level domain.
var notDomains = strings.Fields("png jpg jpeg gif svg webp bmp ico css js json html txt " +
	"alpha beta rc snapshot final service socket scope slice timer mount")

func isDomain(labels [][]byte) bool {
	top := labels[len(labels)-1]
	if len(top) < 2 || slices.ContainsFunc(top, func(b byte) bool { return !isLetter(b) }) && !bytes.HasPrefix(top, []byte("xn--")) {
		return false
	}
	for _, l := range labels {
		if len(l) == 0 || len(l) > 63 || l[0] == '-' {
			return false
		}
	}
	if len(labels) > 2 && allDigits(labels[0]) && allDigits(labels[1]) {
		return false // a version
	}
	return !isDigit(labels[0][0]) || !slices.Contains(notDomains, strings.ToLower(string(top)))
}

func allDigits(b []byte) bool {
	return !slices.ContainsFunc(b, func(c byte) bool { return !isDigit(c) })
}

// maxUserInfo bounds how far back user:password is looked for, in bytes.
const maxUserInfo = 256

// credentials tells where user:password begins, when i ends them in a URL.
func (s *scanner) credentials(i int) (start int, ok bool) {
	colon := false
	for start = i; start > s.floor && i-start < maxUserInfo; start-- {
		switch b := s.text[start-1]; {
		case b == ':':
			colon = true
		case b == '/':
			return start, colon && start < i && s.text[start] != ':' && s.text[i-1] != ':' && start >= 3 && s.has(start-3, "://") && !s.has(start, "[redacted:")
		case b <= ' ', b == '"', b == '\'', b == '<', b == '>', b == '@', b == '\\':
			return 0, false
		}
	}
	return 0, false
}
