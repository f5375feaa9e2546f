package redact

import (
	"bytes"
	"slices"
	"strings"
)

// word looks at a word that begins with a letter, for the prefixes that
// services give their keys and tokens, and goes past it.
func (s *scanner) word(i int) int {
	// Most words end here.
	switch s.text[i] {
	case 's', 'g', 'A', 'x', 'h', 'n', 'e', 'S', 'r', 'p', 'b', 'B', 'a':
	default:
		return s.while(i, wordBytes)
	}
	end := s.while(i, wordBytes)
	if end-i < 2 {
		return end
	}
	w := s.text[i:end]
	if stop := s.prefixed(i, w); stop > 0 {
		return s.add(APIKey, i, stop)
	}
	switch w[0] {
	case 'e':
		if stop := s.jwt(i, w); stop > 0 {
			return s.add(Token, i, stop)
		}
	case 'b', 'B':
		return s.scheme(end, w)
	}
	return end
}

// keyForms are keys that are one word: a prefix and how long the word is.
var keyForms = []struct {
	prefix   string
	min, max int
}{
	{"AKIA", 20, 20},
	{"ASIA", 20, 20},
	{"ABIA", 20, 20},
	{"ACCA", 20, 20}, // AWS
	{"ghp_", 40, 255},
	{"gho_", 40, 255},
	{"ghu_", 40, 255},
	{"ghs_", 40, 255},
	{"ghr_", 40, 255}, // GitHub
	{"github_pat_", 33, 255},
	{"hf_", 37, 100},   // Hugging Face
	{"npm_", 40, 40},   // npm
	{"gsk_", 40, 100},  // Groq
	{"nvapi_", 40, 99}, // NVIDIA
	{"sk_live_", 24, 255},
	{"sk_test_", 24, 255},
	{"rk_live_", 24, 255},
	{"rk_test_", 24, 255},
	{"pk_live_", 24, 255}, // Stripe
	{"xai_", 40, 255},
}

// dashForms are keys of several words with dashes: a prefix and how long all is.
var dashForms = []struct {
	prefix   string
	min, max int
}{
	{"sk-", 23, 300},                                                                                                       // OpenAI, Anthropic, DeepSeek, DashScope, …
	{"xoxa-", 20, 300}, {"xoxb-", 20, 300}, {"xoxp-", 20, 300}, {"xoxr-", 20, 300}, {"xoxs-", 20, 300}, {"xapp-", 20, 300}, // Slack
	{"glpat-", 26, 100}, // GitLab
	{"AIza", 39, 39},    // Google
	{"pypi-", 60, 400},  // PyPI
	{"nvapi-", 40, 120}, // NVIDIA
	{"xai-", 40, 200},   // xAI
	{"pplx-", 40, 120},  // Perplexity
	{"SG.", 69, 69},     // SendGrid: two parts with a dot
	{"r8_", 40, 40},     // Replicate
	{"hvs.", 90, 300},   // Vault
	{"AGE-SECRET-KEY-1", 74, 74},
}

// prefixed returns the end of the key that word w at i begins, or 0.
func (s *scanner) prefixed(i int, w []byte) int {
	for _, f := range keyForms {
		if len(w) >= f.min && len(w) <= f.max && w[0] == f.prefix[0] && strings.HasPrefix(string(w[:len(f.prefix)]), f.prefix) && mixed(w[len(f.prefix):]) {
			return i + len(w)
		}
	}
	for _, f := range dashForms {
		if w[0] != f.prefix[0] || !s.has(i, f.prefix) {
			continue
		}
		end := s.keys.until(i+len(f.prefix), s.keyRun)
		if f.prefix == "SG." && s.byteAt(end) == '.' {
			end = s.while(end+1, keyBytes)
		}
		if n := end - i; n >= f.min && n <= f.max && hasRandomPart(s.text[i+len(f.prefix):end]) {
			return end
		}
	}
	return 0
}

// hasRandomPart tells whether a part between dashes is long and mixed: names
// with dashes have short ones.
func hasRandomPart(b []byte) bool {
	for part := range bytes.SplitSeq(b, []byte{'-'}) {
		if len(part) >= 16 && mixed(part) {
			return true
		}
	}
	return false
}

// jwt returns the end of a JSON Web Token that begins with w, or 0: two parts
// of base64 that hold JSON, and a signature that may be empty.
func (s *scanner) jwt(i int, w []byte) int {
	if !bytes.HasPrefix(w, []byte("eyJ")) {
		return 0
	}
	head := s.keys.until(i, s.keyRun)
	if head-i < 16 || !s.has(head, ".eyJ") {
		return 0
	}
	body := s.jwtBody.until(head+1, s.keyRun)
	if body-head < 16 || s.byteAt(body) != '.' {
		return 0
	}
	return s.while(body+1, keyBytes)
}

// scheme looks for what follows the words Bearer and Basic. It returns where to
// go on; end is where the word ended.
func (s *scanner) scheme(end int, w []byte) int {
	least := 16
	switch {
	case len(w) == 6 && strings.EqualFold(string(w), "bearer"):
	case len(w) == 5 && strings.EqualFold(string(w), "basic"):
		if !strings.Contains(s.keyBefore(end-len(w)), "authorization") {
			return end
		}
		least = 8
	default:
		return end
	}
	start := end
	for s.byteAt(start) == ' ' {
		start++
	}
	if start == end {
		return end
	}
	stop := s.while(start, base64Bytes)
	if stop-start < least {
		return end
	}
	value := bytes.TrimRight(s.text[start:stop], ".-")
	if least == 16 && !mixed(value) {
		return end
	}
	return s.add(Token, start, start+len(value))
}

// secretNames are the ends of names that hold secrets, without _ and -.
var secretNames = strings.Fields("apikey secretkey accesskey secretaccesskey clientsecret secret accesstoken authtoken " +
	"refreshtoken apitoken sessiontoken bearertoken privatekey accountkey sharedaccesskey encryptionkey signingkey webhooksecret")

// passwordNames are those of passwords.
var passwordNames = strings.Fields("password passwd passwort pwd passphrase 密码 口令")

// secretKind tells what a name in lower case holds: "", Password or APIKey.
func secretKind(name string) string {
	name = strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == ' ' || r == '.' {
			return -1
		}
		return r
	}, name)
	for _, n := range passwordNames {
		if strings.HasSuffix(name, n) {
			return Password
		}
	}
	for _, n := range secretNames {
		if strings.HasSuffix(name, n) {
			return APIKey
		}
	}
	return ""
}

var valueEnds = set(false, " \t\r\n\"'`\\,;&<>)]}|")

// assignment looks at what follows name= or name:, where name holds a secret;
// the mark lies between at and next. A key must have digits and letters; after
// a colon, as in prose, so must a password.
func (s *scanner) assignment(at, next int) int {
	start := next
	for start-next < 4 && strings.IndexByte(" \t\"'=>", s.byteAt(start)) >= 0 {
		start++
	}
	if quote := s.byteAt(next); start > next+1 && (quote == '"' || quote == '\'') {
		return next // it closes what the name is in
	}
	if b := s.byteAt(start); start >= len(s.text) || valueEnds[b] || strings.IndexByte("$%{(*[", b) >= 0 {
		return next
	}
	kind, name := s.assigned(at)
	if kind == "" {
		return next
	}
	end := s.values.until(start, s.valueEnd)
	if end-start > maxSecret {
		return next
	}
	value := bytes.TrimRight(s.text[start:end], ".!?")
	bare := s.byteAt(start-1) != '"' && s.byteAt(start-1) != '\''
	if !secretValue(kind, value, s.text[at] == '=') || notSecret(value, name) || bare && (strings.EqualFold(string(value), name) || isCode(value, s.byteAt(end))) {
		return next
	}
	return s.add(kind, start, start+len(value))
}

// valueEnd returns the end of the value that i is in.
func (s *scanner) valueEnd(i int) int {
	for i < len(s.text) && !valueEnds[s.text[i]] && (s.text[i] < 0x80 || !s.has(i, "，") && !s.has(i, "。")) {
		i++
	}
	return i
}

// assigned tells what the name that ends before at holds, and the name in lower
// case.
func (s *scanner) assigned(at int) (kind, name string) {
	end := at
	for end > 0 && strings.IndexByte(" \"'\\", s.text[end-1]) >= 0 && at-end < 3 {
		end--
	}
	start := end
	for start > 0 && end-start < maxKey && (keyBytes[s.text[start-1]] || s.text[start-1] >= 0x80) {
		start--
	}
	// In arn:aws:secretsmanager:…:secret:name it is the name that follows, and
	// AWS::IAM::AccessKey is a type.
	colon := s.byteAt(start-1) == ':'
	if end-start < 3 || colon && end == at && s.text[at] == ':' || colon && s.byteAt(start-2) == ':' {
		return "", ""
	}
	// Names end alike: most are told from the last byte.
	switch s.text[end-1] | 0x20 {
	case 'y', 't', 'n', 'd', 'e', 0x81 | 0x20, 0xa4 | 0x20:
		name = strings.ToLower(string(s.text[start:end]))
		return secretKind(name), name
	}
	return "", ""
}

// references begin what names a secret or says where it lies.
var references = strings.Fields("arn: file:/ http:// https:// projects/ vault: env: ref+")

// notSecret tells whether the value of a name, in lower case, holds no secret: it
// is a place, a path, or what Kubernetes calls a secret.
func notSecret(value []byte, name string) bool {
	lower := strings.ToLower(string(value))
	if slices.ContainsFunc(references, func(r string) bool { return strings.HasPrefix(lower, r) }) {
		return true
	}
	if name == "secret" && isName(lower, "") {
		return true
	}
	begin := strings.TrimLeft(lower, ".~")
	if strings.HasPrefix(begin, "/") || len(lower) > 2 && lower[1] == ':' && (lower[2] == '\\' || lower[2] == '/') {
		workingDir := name == "pwd" || name == "oldpwd"
		return workingDir || strings.Count(begin, "/") > 1 && isName(lower, "/")
	}
	return false
}

// isCode tells whether a value without quotes is an expression of a program: an
// element (auth[1]), a member named for what it holds (self.password), another
// argument of that kind (user_password), a type (Optional[str], SecretStr). next
// is what follows it.
func isCode(value []byte, next byte) bool {
	if at := bytes.IndexByte(value, '['); at > 0 {
		return isPath(value[:at]) && (next == ']' || next == '"' || next == '\'')
	}
	text := string(value)
	switch named := secretKind(strings.ToLower(text)) != ""; {
	case !isPath(value):
		return false
	case strings.Contains(text, "."):
		return named || strings.HasPrefix(text, "self.")
	case strings.Contains(text, "_"):
		return named && (next == ',' || next == ')')
	}
	return slices.Contains(codeWords, text)
}

// codeWords are names of variables and types that stand for a secret.
var codeWords = strings.Fields("password passwd passphrase pwd credentials SecretStr SecretBytes str bytes String")

// isPath tells whether b is words joined by dots, as a member of an object is named.
func isPath(b []byte) bool {
	for word := range bytes.SplitSeq(b, []byte{'.'}) {
		if len(word) == 0 || isDigit(word[0]) || slices.ContainsFunc(word, func(c byte) bool { return !isWord(c) }) {
			return false
		}
	}
	return true
}

// isName tells whether the parts of a text, in lower case, are words, maybe with
// a number after them, and none is random.
func isName(text, separators string) bool {
	parts := strings.FieldsFunc(text, func(r rune) bool { return r == '-' || r == '_' || r == '.' || strings.ContainsRune(separators, r) })
	for _, part := range parts {
		word := strings.TrimRight(part, "0123456789")
		if len(part)-len(word) > 4 || strings.ContainsFunc(word, func(r rune) bool { return r < 'a' || r > 'z' }) {
			return false
		}
	}
	return len(parts) > 1
}

const maxSecret = 4096

func secretValue(kind string, value []byte, assigned bool) bool {
	if len(value) < 4 || bytes.HasPrefix(value, []byte("[redacted")) || bytes.ContainsAny(value, "(") {
		return false
	}
	switch strings.ToLower(string(value[:min(len(value), 10)])) {
	case "null", "none", "true", "false", "undefined", "required", "optional", "string":
		return false
	}
	if kind == APIKey {
		return len(value) >= 8 && mixed(value)
	}
	return assigned || !plainWord(value)
}

// plainWord tells whether b may be a word of prose.
func plainWord(b []byte) bool {
	for i, c := range b {
		if !isLetter(c) && c < 0x80 || i > 0 && c >= 'A' && c <= 'Z' {
			return false
		}
	}
	return true
}

// dashes looks for a private key in PEM: from BEGIN to END, or to where it is
// cut off. Line ends may be escaped.
func (s *scanner) dashes(i int) int {
	const begin = "-----BEGIN "
	if !s.has(i, begin) {
		return i + 1
	}
	at := i + len(begin)
	line := bytes.Index(s.text[at:min(len(s.text), at+60)], []byte("-----"))
	if line < 0 || !bytes.HasSuffix(bytes.TrimSuffix(s.text[at:at+line], []byte(" BLOCK")), []byte("PRIVATE KEY")) {
		return i + 1
	}
	at += line + len("-----")
	for at < len(s.text) {
		switch b := s.text[at]; {
		case pemBytes[b]:
			at++
		case b == '\\' && strings.IndexByte("nrt\\/", s.byteAt(at+1)) >= 0 && at+1 < len(s.text):
			at += 2
		case s.has(at, "-----END "):
			stop := at + len("-----END ")
			line := bytes.Index(s.text[stop:min(len(s.text), stop+60)], []byte("-----"))
			if line < 0 {
				return s.add(PrivateKey, i, at)
			}
			return s.add(PrivateKey, i, stop+line+len("-----"))
		case b == '-': // of a header such as Proc-Type
			at++
		default:
			return s.add(PrivateKey, i, at)
		}
	}
	return s.add(PrivateKey, i, at)
}

var pemBytes = set(true, "+/= \t\r\n:,.")
