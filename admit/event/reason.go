package event

import (
	"cmp"
	"fmt"
	"math/big"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// Codes of reasons. They are stable: people count and alert by them.
const (
	CodeJSON       = "schema.json"       // not JSON
	CodeDuplicate  = "schema.duplicate"  // a member is given twice
	CodeConflict   = "schema.conflict"   // the parts of a record contradict one another
	CodeDepth      = "schema.depth"      // nested too deep
	CodeRequired   = "schema.required"   // a member is missing
	CodeType       = "schema.type"       // a value of another type
	CodeEnum       = "schema.enum"       // none of the allowed values
	CodePattern    = "schema.pattern"    // text of another form
	CodeFormat     = "schema.format"     // not in the named format, such as a date-time
	CodeRange      = "schema.range"      // a number that is too small or too large
	CodeLength     = "schema.length"     // text that is too short or too long
	CodeItems      = "schema.items"      // a list with too few, too many or equal items
	CodeProperties = "schema.properties" // members that are not allowed, too few or too many
	CodeNot        = "schema.not"        // a value that is excluded
	CodeChoice     = "schema.choice"     // none, or more than one, of several forms
	CodeOther      = "schema.other"      // a rule of a user's schema that is none of these
	CodeHash       = "hash.mismatch"     // the input is not what its hash says
	CodeEarly      = "time.early"        // before 1970
	CodeLate       = "time.late"         // after 2262
	CodeSize       = "size"              // a line that is too long
)

// Reason says why an event is refused.
type Reason struct {
	// Code is short and stable: one of the constants.
	Code string
	// Rule is the JSON pointer into the schema to the rule that is broken. It is
	// empty where no rule of the schema is.
	Rule string
	// Detail tells a person what is wrong and what to send instead.
	Detail string
}

// maxQuoted is how much of a value a reason quotes, in bytes.
const maxQuoted = 64

// quoted returns a value as JSON would show it, cut.
func quoted(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		if len(v) > maxQuoted {
			return fmt.Sprintf("%q… (%d bytes)", strings.ToValidUTF8(v[:maxQuoted], ""), len(v))
		}
		return strconv.Quote(v)
	case map[string]any:
		return fmt.Sprintf("an object of %d members", len(v))
	case []any:
		return fmt.Sprintf("a list of %d items", len(v))
	default:
		return cut(fmt.Sprint(v))
	}
}

func cut(s string) string {
	if len(s) <= maxQuoted {
		return s
	}
	return strings.ToValidUTF8(s[:maxQuoted], "") + "…"
}

// failure is one broken rule.
type failure struct {
	at      []string // where in the event
	keyword string   // the last name of the rule
	rule    string   // JSON pointer into the schema
	kind    jsonschema.ErrorKind
}

// reasonOf returns the first of the broken rules that err tells, in the order of
// places in the event and then of keywords. The library's own order is not
// always the same.
func (v *Validator) reasonOf(err error, view map[string]any) *Reason {
	top, ok := err.(*jsonschema.ValidationError) //nolint:errorlint // the library returns it bare
	if !ok {
		return &Reason{Code: CodeOther, Detail: err.Error()}
	}
	var all []failure
	collect(top, &all)
	first := slices.MinFunc(all, func(a, b failure) int {
		return cmp.Or(slices.Compare(a.at, b.at), cmp.Compare(a.keyword, b.keyword), cmp.Compare(a.rule, b.rule))
	})
	code, text := explain(first, valueAt(view, first.at))
	if s := v.subschema(first); s != nil && s.Description != "" {
		text += " (" + strings.TrimSuffix(s.Description, ".") + ")"
	}
	return &Reason{Code: code, Rule: first.rule, Detail: text}
}

// collect gathers the rules that are broken in themselves. What lies below a
// choice or an exclusion is a part of it, not a reason of its own.
func collect(e *jsonschema.ValidationError, all *[]failure) {
	switch e.ErrorKind.(type) {
	case *kind.Schema, *kind.Group, *kind.Reference, *kind.AllOf:
		for _, cause := range e.Causes {
			collect(cause, all)
		}
		if len(e.Causes) > 0 {
			return
		}
	}
	path := e.ErrorKind.KeywordPath()
	switch e.ErrorKind.(type) {
	case *kind.Not:
		path = []string{"not"}
	case *kind.PropertyNames:
		path = nil // the location has it
	}
	f := failure{at: slices.Clone(e.InstanceLocation), kind: e.ErrorKind}
	_, f.rule, _ = strings.Cut(e.SchemaURL, "#")
	if rule, err := url.PathUnescape(f.rule); err == nil {
		f.rule = rule
	}
	for _, name := range path {
		f.rule += "/" + escapePointer(name)
	}
	f.keyword = f.rule[strings.LastIndexByte(f.rule, '/')+1:]
	*all = append(*all, f)
}

func escapePointer(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

func valueAt(view map[string]any, at []string) any {
	var v any = view
	for _, name := range at {
		switch parent := v.(type) {
		case map[string]any:
			v = parent[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(parent) {
				return nil
			}
			v = parent[i]
		default:
			return nil
		}
	}
	return v
}

// subschema finds the schema that describes the place of a failure, for its text.
func (v *Validator) subschema(f failure) *jsonschema.Schema {
	names := f.at
	if missing := missingOf(f.kind); len(missing) > 0 {
		names = append(slices.Clone(names), missing[0])
	}
	s := v.schema
	for _, name := range names {
		for s.Ref != nil && s.Properties == nil {
			s = s.Ref
		}
		next := s.Properties[name]
		if next == nil {
			return nil
		}
		s = next
	}
	return s
}

func missingOf(k jsonschema.ErrorKind) []string {
	var missing []string
	switch k := k.(type) {
	case *kind.Required:
		missing = k.Missing
	case *kind.DependentRequired:
		missing = k.Missing
	case *kind.Dependency:
		missing = k.Missing
	}
	return missing
}

// explain gives a failure its code and says what to send.
func explain(f failure, value any) (code, text string) {
	at := strings.Join(f.at, ".")
	if missing := missingOf(f.kind); len(missing) > 0 {
		paths := make([]string, len(missing))
		for i, name := range missing {
			paths[i] = join(at, name)
		}
		return CodeRequired, strings.Join(paths, ", ") + " is missing: send it"
	}
	if at == "" {
		at = "the event"
	}
	code, want := wanted(f.kind)
	return code, fmt.Sprintf("%s is %s: %s", at, quoted(value), want)
}

func number(r *big.Rat) string {
	f, _ := r.Float64()
	return strconv.FormatFloat(f, 'f', -1, 64)
}

func list(values []any) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = quoted(v)
	}
	return strings.Join(texts, ", ")
}

// wanted returns the code of a rule and what it asks for.
func wanted(k jsonschema.ErrorKind) (code, want string) {
	switch k := k.(type) {
	case *kind.Type:
		return CodeType, fmt.Sprintf("it is of type %s, send %s", k.Got, strings.Join(k.Want, " or "))
	case *kind.InvalidJsonValue:
		return CodeType, "JSON has no such number, send null or leave it out"
	case *kind.Enum:
		return CodeEnum, "send one of " + list(k.Want)
	case *kind.Const:
		return CodeEnum, "send " + quoted(k.Want)
	case *kind.Pattern:
		return CodePattern, "send text that matches " + k.Want
	case *kind.Format:
		return CodeFormat, fmt.Sprintf("send a %s; this one is not, because %v", k.Want, k.Err)
	case *kind.Minimum:
		return CodeRange, "send " + number(k.Want) + " or more"
	case *kind.Maximum:
		return CodeRange, "send " + number(k.Want) + " or less"
	case *kind.ExclusiveMinimum:
		return CodeRange, "send more than " + number(k.Want)
	case *kind.ExclusiveMaximum:
		return CodeRange, "send less than " + number(k.Want)
	case *kind.MultipleOf:
		return CodeRange, "send a multiple of " + number(k.Want)
	case *kind.MinLength:
		return CodeLength, fmt.Sprintf("send %d characters or more", k.Want)
	case *kind.MaxLength:
		return CodeLength, fmt.Sprintf("it has %d characters, send %d or fewer", k.Got, k.Want)
	}
	return wantedOfGroups(k)
}

// wantedOfGroups is wanted for the rules on lists, members and combinations.
func wantedOfGroups(k jsonschema.ErrorKind) (code, want string) {
	switch k := k.(type) {
	case *kind.MinItems:
		return CodeItems, fmt.Sprintf("send %d items or more", k.Want)
	case *kind.MaxItems:
		return CodeItems, fmt.Sprintf("send %d items or fewer", k.Want)
	case *kind.UniqueItems:
		return CodeItems, fmt.Sprintf("items %d and %d are equal, send each once", k.Duplicates[0], k.Duplicates[1])
	case *kind.Contains, *kind.MinContains, *kind.MaxContains:
		return CodeItems, "send as many items of the form that the rule describes as it asks for"
	case *kind.AdditionalProperties:
		slices.Sort(k.Properties)
		return CodeProperties, "leave out " + strings.Join(k.Properties, ", ")
	case *kind.MinProperties:
		return CodeProperties, fmt.Sprintf("send %d members or more", k.Want)
	case *kind.MaxProperties:
		return CodeProperties, fmt.Sprintf("send %d members or fewer", k.Want)
	case *kind.PropertyNames:
		return CodeProperties, fmt.Sprintf("rename the member %s as the rule asks", quoted(k.Property))
	case *kind.FalseSchema:
		return CodeProperties, "leave it out"
	case *kind.Not:
		return CodeNot, "this value is excluded, send another"
	case *kind.AnyOf, *kind.OneOf:
		return CodeChoice, "send one of the forms that the rule lists"
	}
	return CodeOther, "it breaks the rule"
}
