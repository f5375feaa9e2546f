package redact

import (
	"bytes"
	"encoding/json"
	"strings"
)

// maxNested is how deep JSON in strings of JSON is looked into.
const maxNested = 4

// looksLikeJSON tells whether text is an object, a list or a string in JSON.
func looksLikeJSON(text []byte) bool {
	trimmed := bytes.TrimLeft(text, " \t\r\n")
	if len(trimmed) == 0 {
		return false
	}
	switch trimmed[0] {
	case '{', '[', '"':
		return json.Valid(text)
	}
	return false
}

// json redacts valid JSON: strings, names of members too, and numbers.
func (r *Redactor) json(text []byte, depth int) ([]byte, bool) {
	j := jsonRedactor{r: r, text: text, depth: depth}
	for i := 0; i < len(text); {
		switch b := text[i]; {
		case b == '"':
			i = j.str(i)
		case b == '-' || isDigit(b):
			i = j.num(i)
		default:
			i++
		}
	}
	if j.done == 0 && j.out == nil {
		return text, false
	}
	return append(j.out, text[j.done:]...), true
}

type jsonRedactor struct {
	r     *Redactor
	text  []byte
	depth int
	key   string // of the last member
	out   []byte // what text[:done] became; nil when nothing was taken out yet
	done  int
}

// put replaces a part of the text.
func (j *jsonRedactor) put(start, end int, with []byte) {
	j.out = append(j.out, j.text[j.done:start]...)
	j.out = append(j.out, with...)
	j.done = end
}

// str redacts the string that begins at i and returns where it ends.
func (j *jsonRedactor) str(i int) int {
	end, escaped := i+1, false
	for j.text[end] != '"' {
		if j.text[end] == '\\' {
			escaped = true
			end++
		}
		end++
	}
	inner := j.text[i+1 : end]
	end++
	isKey := end < len(j.text) && nextByte(j.text[end:]) == ':'
	if isKey {
		j.key = ""
	}
	if !escaped {
		if out, redacted := j.value(inner); redacted {
			j.put(i+1, end-1, out)
		}
		if isKey {
			j.key = keyOf(inner)
		}
		return end
	}
	var text string
	if json.Unmarshal(j.text[i:end], &text) != nil {
		return end // it is valid, so this does not happen
	}
	if out, redacted := j.value([]byte(text)); redacted {
		if quoted, ok := quote(out); ok {
			j.put(i, end, quoted)
		}
	}
	if isKey {
		j.key = keyOf([]byte(text))
	}
	return end
}

// keyOf returns the end of a name, which says most of what it holds.
func keyOf(name []byte) string {
	return strings.ToLower(string(name[max(0, len(name)-maxKey):]))
}

// value redacts what a string means.
func (j *jsonRedactor) value(text []byte) ([]byte, bool) {
	if len(text) == 0 {
		return text, false
	}
	if kind := secretKind(j.key); kind != "" && !strings.Contains(j.key, "::") && len(text) >= 4 && len(text) <= maxSecret && j.r.built[kind] != nil && !bytes.HasPrefix(text, []byte("[redacted:")) && !notSecret(text, j.key) {
		return j.r.built[kind].replacement, true
	}
	if j.depth < maxNested && (text[0] == '{' || text[0] == '[') && json.Valid(text) {
		return j.r.json(text, j.depth+1)
	}
	return j.r.plain(text, j.key)
}

// num redacts a number. Identifiers and sizes are often numbers, phones and
// cards seldom: those are taken only where the name of the member says so.
func (j *jsonRedactor) num(i int) int {
	end := i + 1
	for end < len(j.text) && (isDigit(j.text[end]) || strings.IndexByte(".eE+-", j.text[end]) >= 0) {
		end++
	}
	for _, sp := range j.r.scan(j.text[i:end], j.key) {
		if name := sp.rule.name; (name == Phone || name == Card) && !containsAny(j.key, phoneParts) && !containsAny(j.key, cardParts) {
			continue
		}
		j.put(i, end, append(append([]byte{'"'}, sp.rule.replacement...), '"'))
		break
	}
	return end
}

func nextByte(text []byte) byte {
	for _, b := range text {
		if b != ' ' && b != '\t' && b != '\r' && b != '\n' {
			return b
		}
	}
	return 0
}

func quote(text []byte) ([]byte, bool) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if enc.Encode(string(text)) != nil {
		return nil, false
	}
	return bytes.TrimSuffix(out.Bytes(), []byte{'\n'}), true
}
