package catalog

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"inquest/record"
	"inquest/sensor/kinds"
)

// Problem is one thing that is wrong in a file.
type Problem struct {
	File string `json:"file,omitempty"`
	// Line counts from 1; 0 is the file as a whole.
	Line int    `json:"line,omitempty"`
	Text string `json:"text"`
}

// String returns file:line: text.
func (p Problem) String() string {
	switch {
	case p.File != "" && p.Line > 0:
		return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Text)
	case p.File != "":
		return p.File + ": " + p.Text
	case p.Line > 0:
		return fmt.Sprintf("line %d: %s", p.Line, p.Text)
	}
	return p.Text
}

// Problems is all that is wrong. It is an error.
type Problems []Problem

// Error has a line for each problem.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i := range p {
		lines[i] = p[i].String()
	}
	return strings.Join(lines, "\n")
}

// found is a problem of a fault, and the way to the field that has it.
type found struct {
	at   []any
	text string
}

var idPattern = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

// Places are the values of [Expectation.Where].
var Places = []Where{WhereSelf, WhereIn, WhereOut, WhereCallers, WhereHosted, WhereHost, WhereEachHosted}

// Entities are the kinds of entities that can be at fault.
var Entities = []record.EntityKind{
	record.EntityService, record.EntityPod, record.EntityNode, record.EntityGPU, record.EntityModel,
	record.EntityModelVersion, record.EntityAdapter, record.EntityDependency,
}

// Lint reports everything that is wrong with a fault, as far as it can be told without
// the rest of the catalogue.
func (f *Fault) Lint() error {
	var errs []error
	for _, x := range f.lint() {
		errs = append(errs, errors.New(x.text))
	}
	return errors.Join(errs...)
}

func (f *Fault) lint() []found {
	var out []found
	bad := func(at []any, format string, args ...any) { out = append(out, found{at, fmt.Sprintf(format, args...)}) }
	if !idPattern.MatchString(f.ID) {
		bad([]any{"id"}, "id %q: use small letters, digits and hyphens", f.ID)
	}
	for _, x := range []struct{ name, value string }{
		{"title", f.Title}, {"mechanism", f.Mechanism}, {"remedy", f.Remedy}, {"check", f.Check},
	} {
		if strings.TrimSpace(x.value) == "" {
			bad([]any{x.name}, "%s is empty", x.name)
		}
	}
	if len(f.At) == 0 {
		bad([]any{"at"}, "at is empty: name the kinds of entities that can have the fault (%s)", words(Entities))
	}
	for i, k := range f.At {
		switch {
		case !slices.Contains(Entities, k):
			bad([]any{"at", i}, "at: nothing of kind %q can be at fault: it is one of %s", k, words(Entities))
		case slices.Contains(f.At[:i], k):
			bad([]any{"at", i}, "at: %s is named twice", k)
		}
	}
	for i, id := range f.Refines {
		switch {
		case id == f.ID:
			bad([]any{"refines", i}, "refines: a fault cannot refine itself")
		case slices.Contains(f.Refines[:i], id):
			bad([]any{"refines", i}, "refines: %s is named twice", id)
		}
	}
	if len(f.Expect) == 0 {
		bad([]any{"expect"}, "expect is empty: a fault without evidence cannot be found")
	}
	cause := false
	for i := range f.Expect {
		e := &f.Expect[i]
		for _, x := range e.lint() {
			bad(append([]any{"expect", i}, x.at...), "expect %d: %s", i+1, x.text)
		}
		cause = cause || !e.Symptom && !e.Absent
	}
	if len(f.Expect) > 0 && !cause {
		bad([]any{"expect"}, "all evidence is symptoms or must be absent: nothing would point to the cause")
	}
	return out
}

func (e *Expectation) lint() []found {
	var out []found
	bad := func(field, format string, args ...any) {
		out = append(out, found{[]any{field}, fmt.Sprintf(format, args...)})
	}
	known := slices.Contains(record.Quadrants, e.Quadrant)
	if !known {
		bad("quadrant", "unknown quadrant %q: it is one of %s", e.Quadrant, words(record.Quadrants))
	}
	if len(e.Kinds) == 0 {
		bad("kinds", "kinds is empty: name the findings, any of which will do")
	}
	for i, name := range e.Kinds {
		if slices.Contains(e.Kinds[:i], name) {
			out = append(out, found{[]any{"kinds", i}, fmt.Sprintf("kind %s is named twice", name)})
		} else if known {
			if text := e.lintKind(name); text != "" {
				out = append(out, found{[]any{"kinds", i}, text})
			}
		}
	}
	if !slices.Contains(Places, e.Where) {
		bad("where", "unknown where %q: it is one of %s", e.Where, words(Places))
	}
	switch e.Direction {
	case "", record.DirectionUp, record.DirectionDown:
	default:
		bad("direction", "direction %q is not up, down or empty", e.Direction)
	}
	if e.Seen <= 0 || e.Seen >= 1 || math.IsNaN(e.Seen) {
		bad("seen", "seen %v is not between 0 and 1: it is the probability that the finding shows", e.Seen)
	}
	if e.AtLeast < 0 || e.AtLeast > 1 || math.IsNaN(e.AtLeast) {
		bad("at_least", "at_least %v is not between 0 and 1: it is a share of requests", e.AtLeast)
	}
	if strings.TrimSpace(e.Text) == "" {
		bad("text", "text is empty: say what the evidence shows")
	}
	if e.Absent && (e.Essential || e.Symptom) {
		bad("absent", "what must be absent is neither essential nor a symptom")
	}
	return out
}

// lintKind says what is wrong with a kind where it is expected.
func (e *Expectation) lintKind(name string) string {
	k, ok := kinds.Get(name, e.Quadrant)
	if !ok {
		if other := kinds.Quadrants(name); len(other) > 0 {
			return fmt.Sprintf("no sensor makes findings of kind %q in %s, only in %s%s", name, e.Quadrant, words(other), meant(kinds.Near(name, e.Quadrant)))
		}
		near := kinds.Near(name, e.Quadrant)
		if len(near) == 0 {
			return fmt.Sprintf("no sensor makes findings of kind %q: see inquest catalog kinds", name)
		}
		return fmt.Sprintf("no sensor makes findings of kind %q%s", name, meant(near))
	}
	if !k.Ways && (e.Where == WhereIn || e.Where == WhereOut) {
		return fmt.Sprintf("findings of kind %q are not about the way between two entities: where cannot be %s", name, e.Where)
	}
	return ""
}

func words[T ~string](list []T) string {
	out := make([]string, len(list))
	for i, w := range list {
		out[i] = string(w)
	}
	return strings.Join(out, ", ")
}
