package alias

import (
	"bytes"
	"encoding/json"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// convert turns a source's value into the canonical one. It is false when the
// value is not what the source promises; then nothing is derived of it.
func (d *Deriver) convert(s *source, h hit) (string, bool) {
	value, text := h.value, h.text
	if s.Member != "" {
		var ok bool
		if value, text, ok = d.parsed.member(value, s.Member); !ok {
			return "", false
		}
	}
	if value == "" {
		return "", false
	}
	if !text && value[0] == '[' && s.canonical.Type != Strings {
		// An attribute of a header is a list, mostly of one.
		var list []string
		if json.Unmarshal([]byte(value), &list) != nil || len(list) != 1 {
			return "", false
		}
		value, text = list[0], true
	}
	if s.extract != nil {
		value = extracted(s.extract, value)
	}
	if s.Values != nil {
		if v, ok := s.Values[strings.ToLower(value)]; ok {
			value = v
		} else if s.Others == "drop" {
			return "", false
		}
	}
	if a := s.canonical; a.Limit > 0 && len(value) > a.Limit || a.isNever(value) {
		return "", false
	}
	return typed(value, text, s.canonical.Type, s.scale)
}

func (a *attribute) isNever(value string) bool {
	if value == "" {
		return true
	}
	for _, n := range a.Never {
		if strings.EqualFold(n, value) {
			return true
		}
	}
	return false
}

// extracted is the first group of the expression that holds something, or the
// whole value where there is none.
func extracted(e *regexp.Regexp, value string) string {
	if m := e.FindStringSubmatch(value); m != nil {
		for _, group := range m[1:] {
			if group != "" {
				return group
			}
		}
	}
	return value
}

// typed checks a value and writes it as its type is written.
func typed(value string, text bool, t Type, scale float64) (string, bool) {
	switch t {
	case Int, Double:
		return typedNumber(value, t, scale)
	case Bool:
		switch {
		case strings.EqualFold(value, "true"):
			return "true", true
		case strings.EqualFold(value, "false"):
			return "false", true
		}
		return "", false
	case Strings:
		return typedList(value, text)
	default:
		return value, true
	}
}

func typedNumber(value string, t Type, scale float64) (string, bool) {
	if t == Int && scale == 1 {
		if _, err := strconv.ParseInt(value, 10, 64); err == nil {
			return value, true
		}
	}
	f, err := strconv.ParseFloat(value, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return "", false
	}
	if scale == 1 && t == Double {
		return value, true
	}
	f = scaled(f, scale)
	if t == Int {
		if f != math.Trunc(f) || math.Abs(f) >= 1<<53 {
			return "", false
		}
		return strconv.FormatInt(int64(f), 10), true
	}
	return strconv.FormatFloat(f, 'f', -1, 64), true
}

// typedList is a JSON array of strings: one as it is, or of a single value.
func typedList(value string, text bool) (string, bool) {
	if value[0] == '[' {
		var list []string
		if json.Unmarshal([]byte(value), &list) == nil {
			if len(list) == 0 {
				return "", false
			}
			return encodeJSON(list)
		}
	}
	if !text && value[0] == '{' {
		return "", false
	}
	return encodeJSON([]string{value})
}

// scaled multiplies. It divides where the factor is a fraction like 1/1000, so
// that 3 ms are 0.003 s and not a number close to it.
func scaled(v, factor float64) float64 {
	if factor < 1 {
		if inverse := math.Round(1 / factor); math.Abs(inverse*factor-1) < 1e-12 {
			return v / inverse
		}
	}
	return v * factor
}

// encodeJSON writes v without escapes that only web pages need.
func encodeJSON(v any) (string, bool) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "", false
	}
	return strings.TrimSuffix(b.String(), "\n"), true
}

// parsed are the JSON objects of a record that were read: many canonical
// attributes come out of one, and their sources do not stand together.
type parsed []parsedObject

type parsedObject struct {
	of      string
	members map[string]json.RawMessage // nil: not an object
}

func (p *parsed) reset() {
	clear(*p)
	*p = (*p)[:0]
}

// object returns the members of a JSON object.
func (p *parsed) object(of string) map[string]json.RawMessage {
	for _, o := range *p {
		if o.of == of {
			return o.members
		}
	}
	o := parsedObject{of: of}
	if json.Unmarshal([]byte(of), &o.members) != nil {
		o.members = nil
	}
	*p = append(*p, o)
	return o.members
}

// member returns the member of a JSON object at a path with dots.
func (p *parsed) member(object, path string) (value string, text, ok bool) {
	if object == "" {
		return "", false, false
	}
	members := p.object(object)
	for {
		first, rest, more := strings.Cut(path, ".")
		raw := bytes.TrimSpace(members[first])
		if len(raw) == 0 || string(raw) == "null" {
			return "", false, false
		}
		if !more {
			if raw[0] != '"' {
				return string(raw), false, true
			}
			var s string
			err := json.Unmarshal(raw, &s)
			return s, true, err == nil
		}
		path, members = rest, nil
		if json.Unmarshal(raw, &members) != nil {
			return "", false, false
		}
	}
}
