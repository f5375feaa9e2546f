package event

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
)

// The view of an event is what the library validates: text, bool, int64, float64,
// json.Number, nil, []any and map[string]any.

func sortedNames(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

// viewOf builds the view of what the record itself gives, without filling in.
func (v *Validator) viewOf(lr plog.LogRecord) (map[string]any, form, *Reason) {
	flat, why := v.flatView(lr.Attributes())
	if why != nil {
		return nil, 0, why
	}
	body := lr.Body()
	if !isObject(body) || len(flat) > 0 && !hasMarker(body) {
		return flat, attributeForm, nil
	}
	var view map[string]any
	if body.Type() == pcommon.ValueTypeMap {
		view, why = mapView(body.Map(), "", 1)
	} else {
		view, why = jsonView(body.Str())
	}
	if why == nil {
		why = unite(view, flat, "")
	}
	return view, bodyForm, why
}

// unite adds the members of more to view. Where both have one it must be equal.
func unite(view, more map[string]any, path string) *Reason {
	for _, name := range sortedNames(more) {
		at := join(path, name)
		mine, both := view[name]
		if !both {
			view[name] = more[name]
			continue
		}
		a, isMap := mine.(map[string]any)
		b, areMaps := more[name].(map[string]any)
		if isMap && areMaps {
			if why := unite(a, b, at); why != nil {
				return why
			}
			continue
		}
		if fmt.Sprint(mine) != fmt.Sprint(more[name]) {
			return &Reason{Code: CodeConflict, Detail: fmt.Sprintf("%s is %s in the body and %s in the attribute %s: send it once, or the same",
				at, quoted(mine), quoted(more[name]), Prefix+at)}
		}
	}
	return nil
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func tooDeep(at string) *Reason {
	return &Reason{Code: CodeDepth, Detail: fmt.Sprintf("%s is nested deeper than %d levels: flatten it or send it as JSON text", at, MaxDepth)}
}

func twice(at string) *Reason {
	return &Reason{Code: CodeDuplicate, Detail: fmt.Sprintf("%s is given twice: send it once", at)}
}

// jsonView reads a JSON object.
func jsonView(s string) (map[string]any, *Reason) {
	v, why := jsonValue(s)
	if why != nil {
		return nil, why
	}
	view, ok := v.(map[string]any)
	if !ok {
		return nil, &Reason{Code: CodeJSON, Detail: fmt.Sprintf("the text is %s: send a JSON object", quoted(v))}
	}
	return view, nil
}

// jsonValue reads JSON text.
func jsonValue(s string) (any, *Reason) {
	if i := invalidAt(s); i >= 0 {
		return nil, &Reason{Code: CodeJSON, Detail: fmt.Sprintf("the text is not UTF-8 at byte %d: send UTF-8", i)}
	}
	c, _ := newScanner(s)
	if v, ok := c.view(1); ok && c.peek() == 0 && c.i == len(s) {
		return v, nil
	}
	var raw json.RawMessage
	if err := json.Unmarshal([]byte(s), &raw); err != nil {
		return nil, notJSON(s, err)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return (&reader{d}).value("", 1)
}

func invalidAt(s string) int {
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}

func notJSON(s string, err error) *Reason {
	at := len(s)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		at = max(0, min(int(syntax.Offset)-1, len(s)))
	}
	detail := fmt.Sprintf("the text is not JSON at byte %d, near %s, because of %v: send a JSON object", at, quoted(s[at:min(at+maxQuoted/2, len(s))]), err)
	for _, word := range []string{"NaN", "Infinity", "-Infinity"} {
		if strings.HasPrefix(s[at:], word) || at > 0 && strings.HasPrefix(s[at-1:], word) {
			detail = fmt.Sprintf("the text has %s at byte %d, which is no JSON: send null instead", word, at)
		}
	}
	return &Reason{Code: CodeJSON, Detail: detail}
}

// reader reads valid JSON and refuses what the view cannot hold: a member given
// twice, too much nesting, numbers without a double.
type reader struct{ d *json.Decoder }

func (r *reader) value(path string, depth int) (any, *Reason) {
	t, err := r.d.Token()
	if err != nil {
		return nil, &Reason{Code: CodeJSON, Detail: fmt.Sprintf("the text is not JSON, because of %v: send a JSON object", err)}
	}
	switch t := t.(type) {
	case json.Delim:
		if depth > MaxDepth {
			return nil, tooDeep(path)
		}
		if t == '[' {
			return r.list(path, depth)
		}
		return r.object(path, depth)
	case json.Number:
		if !isSane(t) {
			return nil, &Reason{Code: CodeRange, Detail: fmt.Sprintf("%s is %s, which no double can hold: send a number between -1.7e308 and 1.7e308, or null", path, cut(string(t)))}
		}
	}
	return t, nil
}

func (r *reader) list(path string, depth int) (any, *Reason) {
	items := []any{}
	for r.d.More() {
		v, why := r.value(join(path, strconv.Itoa(len(items))), depth+1)
		if why != nil {
			return nil, why
		}
		items = append(items, v)
	}
	_, _ = r.d.Token() // the bracket: the text is valid JSON
	return items, nil
}

func (r *reader) object(path string, depth int) (any, *Reason) {
	m := map[string]any{}
	for r.d.More() {
		t, _ := r.d.Token()
		name, _ := t.(string)
		at := join(path, name)
		if _, again := m[name]; again {
			return nil, twice(at)
		}
		v, why := r.value(at, depth+1)
		if why != nil {
			return nil, why
		}
		m[name] = v
	}
	_, _ = r.d.Token()
	return m, nil
}

// Limits on numbers: beyond them a double holds nothing of a number, and the
// exact arithmetic of the library would take long or fail.
const (
	maxDigits   = 512
	maxExponent = 1000
)

func isSane(n json.Number) bool {
	s := string(n)
	if len(s) > maxDigits {
		return false
	}
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		if e, err := strconv.Atoi(s[i+1:]); err != nil || e > maxExponent || e < -maxExponent {
			return false
		}
	}
	f, err := strconv.ParseFloat(s, 64)
	return err == nil && !math.IsInf(f, 0)
}

// literalOf returns the number as it is stored.
func literalOf(n json.Number) literal {
	s := string(n)
	if !strings.ContainsAny(s, ".eE") {
		if i, err := strconv.ParseInt(s, 10, 64); err == nil {
			return literal{isInt: true, i: i}
		}
	}
	f, _ := strconv.ParseFloat(s, 64) // isSane has tried it
	return literal{f: f}
}

// mapView reads an OTLP map.
func mapView(m pcommon.Map, path string, depth int) (map[string]any, *Reason) {
	if depth > MaxDepth {
		return nil, tooDeep(path)
	}
	view := make(map[string]any, m.Len())
	for name, v := range m.All() {
		at := join(path, name)
		if _, again := view[name]; again {
			return nil, twice(at)
		}
		var why *Reason
		if view[name], why = otlpView(v, at, depth); why != nil {
			return nil, why
		}
	}
	return view, nil
}

func otlpView(v pcommon.Value, path string, depth int) (any, *Reason) {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return v.Str(), nil
	case pcommon.ValueTypeBool:
		return v.Bool(), nil
	case pcommon.ValueTypeInt:
		return v.Int(), nil
	case pcommon.ValueTypeDouble:
		return v.Double(), nil
	case pcommon.ValueTypeBytes:
		return base64.StdEncoding.EncodeToString(v.Bytes().AsRaw()), nil
	case pcommon.ValueTypeMap:
		return mapView(v.Map(), path, depth+1)
	case pcommon.ValueTypeSlice:
		if depth+1 > MaxDepth {
			return nil, tooDeep(path)
		}
		items := make([]any, 0, v.Slice().Len())
		for i, item := range v.Slice().All() {
			x, why := otlpView(item, join(path, strconv.Itoa(i)), depth+1)
			if why != nil {
				return nil, why
			}
			items = append(items, x)
		}
		return items, nil
	}
	return nil, nil
}

// flatView builds objects of the attributes that are named by a path.
func (v *Validator) flatView(attrs pcommon.Map) (map[string]any, *Reason) {
	view := map[string]any{}
	for attr, value := range attrs.All() {
		path, ok := strings.CutPrefix(attr, Prefix)
		if !ok {
			continue
		}
		if why := v.insert(view, path, value); why != nil {
			return nil, why
		}
	}
	return view, nil
}

func (v *Validator) insert(view map[string]any, path string, value pcommon.Value) *Reason {
	n := v.plan.root
	rest, depth := path, 1
	for {
		name, below, nested := strings.Cut(rest, ".")
		var m *node
		if n != nil {
			if m = n.member(name); m == nil && n.mapOf {
				// Names of such a map may have dots.
				name, nested, m = rest, false, n.rest
			}
		}
		if !nested {
			return v.insertLast(view, name, path, value, m, depth)
		}
		if depth++; depth > MaxDepth {
			return tooDeep(cut(path))
		}
		if view[name] == nil {
			if _, isNull := view[name]; isNull {
				return mixed(path)
			}
			view[name] = map[string]any{}
		}
		next, ok := view[name].(map[string]any)
		if !ok {
			return mixed(path)
		}
		view, n, rest = next, m, below
	}
}

func mixed(path string) *Reason {
	return &Reason{Code: CodeConflict, Detail: fmt.Sprintf("the attribute %s names a member of what another attribute gives as a value: send one of the two", quoted(Prefix+path))}
}

func (v *Validator) insertLast(view map[string]any, name, path string, value pcommon.Value, n *node, depth int) *Reason {
	x, why := otlpView(value, path, depth)
	if why != nil {
		return why
	}
	x, why = fromText(x, n)
	if why != nil {
		return why
	}
	old, again := view[name]
	if !again {
		view[name] = x
		return nil
	}
	a, isMap := old.(map[string]any)
	b, areMaps := x.(map[string]any)
	switch {
	case isMap && areMaps:
		return unite(a, b, path)
	case isMap != areMaps:
		return mixed(path)
	}
	return twice(Prefix + path)
}

// fromText reads text that stands for a list, an object or null where the schema
// does not take text: attributes of many libraries hold no other values.
func fromText(x any, n *node) (any, *Reason) {
	s, ok := x.(string)
	if !ok || n == nil || n.types.has(typeString) {
		return x, nil
	}
	if s != "null" && !strings.HasPrefix(s, "[") && !strings.HasPrefix(s, "{") {
		return x, nil
	}
	v, why := jsonValue(s)
	if why != nil && why.Code == CodeJSON {
		return x, nil // of the wrong type, which the library says better
	}
	return v, why
}
