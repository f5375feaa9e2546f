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
	if d := string(s.text[i+1 : end]); d == "openssh.com" || d == "libssh.org" {
		return i + 1 // names of algorithms
	}
	if string(s.text[start:i]) == "git" && s.byteAt(end) == ':' || s.product(i, end) {
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

// notDomains are ends of names of files and systemd units that have the form of a
// top-level domain and are none.
var notDomains = strings.Fields("png jpg jpeg gif svg webp bmp ico css js json jsonl html txt csv tsv yaml yml conf ini log " +
	"gz bz2 tar whl onnx gguf safetensors npy npz ckpt pth service socket scope slice timer mount")

// notVersions are ends of versions, which begin with a digit.
var notVersions = strings.Fields("alpha beta rc snapshot final")

// commonTops are top-level domains in which a bracket may follow an address.
var commonTops = strings.Fields("com org net edu gov mil info cn hk tw jp kr de fr uk us eu ru in br au ca it es nl se ch at be pl io ai co")

// members are what is asked of the right factor of a matrix product.
var members = strings.Fields("weight weights transpose data detach grad values value conj inverse half float bias")

// product tells whether the @ at i is the matrix product of Python, with end
// behind what looks like a domain: q@k.transpose(-2, -1), x@self.weight.
func (s *scanner) product(i, end int) bool {
	labels := bytes.Split(s.text[i+1:end], []byte{'.'})
	top := strings.ToLower(string(labels[len(labels)-1]))
	if slices.Contains(commonTops, top) {
		return false
	}
	next := s.byteAt(end)
	return next == '(' || next == '[' || string(labels[0]) == "self" || slices.Contains(members, top)
}

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
	name := strings.ToLower(string(top))
	return !slices.Contains(notDomains, name) && (!isDigit(labels[0][0]) || !slices.Contains(notVersions, name))
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
