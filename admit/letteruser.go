package admit

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// UserFilter finds the letters of one user, for their erasure. What is in a
// letter is broken by definition, so besides members and attributes it looks at
// texts; a letter too many is better than one that stays.
type UserFilter struct {
	user string
	// plain: however it is written in JSON, it is written like this.
	plain bool
	text  *regexp.Regexp
}

// NewUserFilter returns the filter for a user id, as in business.user_id.
func NewUserFilter(user string) *UserFilter {
	user = strings.ToValidUTF8(user, "\uFFFD") // as letters are
	id := regexp.QuoteMeta(user)
	return &UserFilter{
		user:  user,
		plain: strings.IndexFunc(user, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`"\\/<>&'`, r) }) < 0,
		// user_id":"u-17, user_id = u-17, "user.id","value":{"stringValue":"u-17
		text: regexp.MustCompile(`(?i:user[._]?id)[^\pL\pN]{1,24}(?:value[^\pL\pN]{1,12})?(?:(?:string|int)Value[^\pL\pN]{1,12})?` + id),
	}
}

// Match tells whether the letter's payload names the user.
func (f *UserFilter) Match(l *Letter) bool {
	if f.user == "" {
		return false
	}
	if l.Encoding == EncodingBase64 {
		data, err := base64.StdEncoding.DecodeString(l.Payload)
		return err == nil && (f.matchProto(string(data)) || f.matchText(string(data)))
	}
	if f.plain && !strings.Contains(l.Payload, f.user) && !strings.Contains(l.Payload, `\u`) {
		return false
	}
	return f.matchPiece(l.Payload, 0)
}

// maxNested is how deep JSON in strings of JSON is looked into.
const maxNested = 4

func (f *UserFilter) matchPiece(text string, depth int) bool {
	if f.matchText(text) {
		return true
	}
	start := strings.TrimLeft(text, " \t\r\n\uFEFF")
	if depth > maxNested || start == "" || start[0] != '{' && start[0] != '[' {
		return false
	}
	dec := json.NewDecoder(strings.NewReader(start))
	dec.UseNumber()
	// Tokens, not a tree: of two members with one name both count, and what lies
	// before a break in the text is seen.
	return f.matchTokens(dec, depth)
}

// matchTokens walks through JSON as far as it can be read. A user's name is a
// member with such a name, or in OTLP a pair of key and value.
func (f *UserFilter) matchTokens(dec *json.Decoder, depth int) bool {
	type frame struct {
		object bool
		name   string // of the member whose value comes
		onName bool   // the next string is a name
		named  bool   // a member key of this object names the user's id
		isUser bool   // the value of this object is the user's id
	}
	var stack []frame
	names := false // the value that comes is a user's id
	for {
		tok, err := dec.Token()
		if err != nil {
			return false
		}
		var top *frame
		if len(stack) > 0 {
			top = &stack[len(stack)-1]
		}
		if d, ok := tok.(json.Delim); ok {
			if d == '{' || d == '[' {
				// {"key": "user_id", "value": {"stringValue": …}}, or a plain value.
				inherit := names || top != nil && top.object && top.name == "value" && top.named
				stack = append(stack, frame{object: d == '{', onName: d == '{', isUser: inherit})
				names = false
				continue
			}
			stack = stack[:len(stack)-1]
			if len(stack) > 0 {
				stack[len(stack)-1].onName = stack[len(stack)-1].object
			}
			continue
		}
		if top != nil && top.object && top.onName {
			top.name, top.onName = tok.(string), false
			names = isUserName(top.name)
			continue
		}
		value := ""
		switch v := tok.(type) {
		case string:
			value = v
		case json.Number:
			value = v.String()
		}
		isID := names || top != nil && (top.isUser || top.object && top.name == "value" && top.named)
		if value != "" && (isID && value == f.user || f.matchPiece(value, depth+1)) {
			return true
		}
		names = false
		if top != nil && top.object {
			if top.name == "key" && isUserName(value) {
				top.named = true
			}
			top.onName = true
		}
	}
}

var userNames = []string{"user_id", "user.id", "userid"}

// isUserName tells names of a user's id: business.user_id, user.id, enduser.id
// and the like.
func isUserName(name string) bool {
	name = strings.ToLower(name)
	for _, end := range userNames {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return false
}

// matchText tells whether the pattern, which ends with the user's id, is there
// and the id ends there too.
func (f *UserFilter) matchText(text string) bool {
	for {
		at := f.text.FindStringIndex(text)
		if at == nil {
			return false
		}
		if endsID(text[at[1]:]) {
			return true
		}
		text = text[at[0]+1:]
	}
}

// maxGap is how far apart, in bytes, the name of a user's id and the id are in
// protobuf: tags and lengths of attributes and values lie between.
const maxGap = 16

// matchProto looks in protobuf: for the id behind its length, with a name for it
// before or, as the Collector writes attributes, right after.
func (f *UserFilter) matchProto(data string) bool {
	value := string(binary.AppendUvarint(nil, uint64(len(f.user)))) + f.user
	for from := 0; ; from++ {
		at := strings.Index(data[from:], value)
		if at < 0 {
			return false
		}
		from += at
		before := strings.ToLower(data[max(0, from-maxGap):from])
		for _, name := range userNames {
			if strings.Contains(before, name) {
				return true
			}
		}
		const keyTag = 1<<3 | 2
		if rest := data[from+len(value):]; len(rest) > 2 && rest[0] == keyTag && int(rest[1]) <= len(rest)-2 && isUserName(rest[2:2+int(rest[1])]) {
			return true
		}
	}
}

// endsID tells whether an id that stands before rest can end there.
func endsID(rest string) bool {
	r, size := utf8.DecodeRuneInString(rest)
	switch {
	case size == 0 || r == utf8.RuneError:
		return true
	case r == '_' || r == '-' || r == '@' || unicode.IsLetter(r) || unicode.IsNumber(r):
		return false
	case r == '.':
		next, n := utf8.DecodeRuneInString(rest[size:])
		return n == 0 || !unicode.IsLetter(next) && !unicode.IsNumber(next)
	}
	return true
}
