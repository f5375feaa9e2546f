package explain

import (
	"fmt"
	"io"
	"strings"

	"inquest/catalog"
	"inquest/record"
	"inquest/verdict"
)

// places say where a finding is expected, in words.
var places = map[catalog.Where]string{
	catalog.WhereSelf: "at the entity", catalog.WhereIn: "on the ways into it", catalog.WhereOut: "on the ways out of it",
	catalog.WhereCallers: "at what calls it", catalog.WhereHosted: "at what runs on it", catalog.WhereHost: "at what it runs on",
	catalog.WhereEachHosted: "at several services that run on it at once",
}

// WriteText writes an explanation for a terminal.
func (x *Explanation) WriteText(w io.Writer) error {
	f := x.Fault
	b := &strings.Builder{}
	para := func(format string, args ...any) { b.WriteString(wrap(fmt.Sprintf(format, args...), "")) }
	head := func(title string) { fmt.Fprintf(b, "\n%s\n", title) }
	para("%s: %s", f.ID, f.Title)
	b.WriteByte('\n')
	para("%s", f.Mechanism)
	at := make([]string, len(f.At))
	for i := range f.At {
		at[i] = strings.ReplaceAll(string(f.At[i]), "_", " ")
	}
	b.WriteByte('\n')
	para("The engine weighs it at each %s.", strings.Join(at, ", "))
	if len(x.Essential) > 0 {
		head("What must be there")
		para("Where one of these is missing (p above %g), the fault is not named. Where nothing at all is recorded of that quadrant, its odds change by %s.", verdict.EssentialStrength, Factor(verdict.UnseenOdds()))
		for i := range x.Essential {
			x.Essential[i].write(b)
		}
	}
	if len(x.For) > 0 {
		head("What speaks for it")
		for i := range x.For {
			x.For[i].write(b)
		}
	}
	if len(x.Against) > 0 {
		head("What must not be there")
		for i := range x.Against {
			x.Against[i].write(b)
		}
	}
	fmt.Fprintln(b)
	para("Factors are of the odds against other faults, for a finding with p = %g, as a clear change has; p-values are corrected for the number of measures among which it is the strongest. On ways, they are for one way; for several services of a host, for two. Other evidence that was not examined changes nothing. Confirmed needs strong evidence (p at most %g) of two quadrants.",
		verdict.TypicalStrength, verdict.StrongStrength)
	x.writeRelations(b)
	head("What to do")
	b.WriteString(wrap(f.Remedy, "  "))
	head("What proves the repair")
	b.WriteString(wrap(f.Check, "  "))
	head("What must be recorded to find it")
	quad := record.Quadrant("")
	for _, n := range x.Needs {
		if n.Quadrant != quad {
			quad = n.Quadrant
			fmt.Fprintf(b, "  %s\n", quad)
		}
		mark := ""
		if n.Essential {
			mark = " (essential)"
		}
		b.WriteString(item("    - ", fmt.Sprintf("%s%s: %s", n.Kind, mark, n.Text)))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (x *Explanation) writeRelations(b *strings.Builder) {
	f := x.Fault
	if len(f.Refines)+len(x.RefinedBy) > 0 {
		fmt.Fprintf(b, "\nKinds of faults\n")
	}
	if len(f.Refines) > 0 {
		b.WriteString(wrap("It is a kind of "+strings.Join(f.Refines, ", ")+". What speaks for the best of these speaks for it as well; evidence that both have counts once.", "  "))
	}
	if len(x.RefinedBy) > 0 {
		b.WriteString(wrap("Kinds of it are "+strings.Join(x.RefinedBy, ", ")+".", "  "))
	}
	if len(x.Rivals) == 0 {
		return
	}
	fmt.Fprintf(b, "\nWhat tells it from others\n")
	for _, r := range x.Rivals {
		relation := ""
		if r.Relation != "" {
			relation = ", " + map[string]string{"refines": "which it refines", "refined by": "which refines it"}[r.Relation]
		}
		b.WriteString(item("  - ", fmt.Sprintf("%s (%s)%s", r.ID, r.Title, relation)))
		if len(r.Ours) > 0 {
			b.WriteString(item("      ", "rather this: "+strings.Join(r.Ours, "; ")))
		}
		if len(r.Theirs) > 0 {
			b.WriteString(item("      ", "rather that: "+strings.Join(r.Theirs, "; ")))
		}
	}
}

// write writes one piece of evidence.
func (e *Evidence) write(b *strings.Builder) {
	b.WriteString(item("  - ", e.Text))
	how := ""
	switch e.Direction {
	case record.DirectionUp:
		how = " rises or appears"
	case record.DirectionDown:
		how = " falls or vanishes"
	default:
		how = " changes"
	}
	least := ""
	if e.AtLeast > 0 {
		least = fmt.Sprintf(", to %g or more", e.AtLeast)
	}
	b.WriteString(item("      ", fmt.Sprintf("%s: %s%s %s%s", e.Quadrant, strings.Join(e.Kinds, " or "), how, places[e.Where], least)))
	var weight string
	switch {
	case e.Absent:
		weight = fmt.Sprintf("seen in %.2g %% of cases; where it shows, %s; where it does not, nothing", 100*e.Seen, Factor(e.Shown))
	case e.Symptom:
		weight = fmt.Sprintf("a symptom, seen in %.2g %% of cases: %s (at most 20 times); where it is missing, %s", 100*e.Seen, Factor(e.Shown), Factor(e.Missing))
	case e.Essential:
		weight = fmt.Sprintf("seen in %.2g %% of cases: %s", 100*e.Seen, Factor(e.Shown))
	default:
		weight = fmt.Sprintf("seen in %.2g %% of cases: %s; where it is missing, %s", 100*e.Seen, Factor(e.Shown), Factor(e.Missing))
	}
	b.WriteString(item("      ", weight))
}

// item wraps a text behind a mark.
func item(mark, s string) string {
	indent := strings.Repeat(" ", len(mark))
	return mark + strings.TrimPrefix(wrap(s, indent), indent)
}

const width = 96

// wrap breaks a text into lines.
func wrap(s, indent string) string {
	b := &strings.Builder{}
	line := indent
	for _, word := range strings.Fields(s) {
		if len(line) > len(indent) && len(line)+1+len(word) > width {
			b.WriteString(line + "\n")
			line = indent
		}
		if len(line) > len(indent) {
			line += " "
		}
		line += word
	}
	b.WriteString(line + "\n")
	return b.String()
}
