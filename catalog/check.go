package catalog

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"inquest/record"
	"inquest/sensor/kinds"
)

// Report is what a check of files found.
type Report struct {
	// Problems keep the files from being used.
	Problems Problems `json:"problems"`
	// Notes are what is allowed and may not be meant.
	Notes []Problem `json:"notes"`
	// Files is how many users' files were read.
	Files int `json:"files"`
}

// Check reads users' folders and files together with the catalogue that comes with
// inquest and reports all that is wrong with them. Without any, the built-in
// catalogue alone is checked. Folders come in their order: a later fault replaces an
// earlier one. An error is returned for a name that does not exist.
func Check(names ...string) (*Report, error) {
	sources := []source{builtIn()}
	for _, name := range names {
		s, err := sourceOf(name)
		if err != nil {
			return nil, err
		}
		sources = append(sources, s)
	}
	a := assemble(sources)
	r := &Report{Problems: a.problems, Notes: a.notes, Files: a.own}
	if r.Problems == nil {
		r.Problems = Problems{}
	}
	if r.Notes == nil {
		r.Notes = []Problem{}
	}
	return r, nil
}

// catalogOf reads sources into a catalogue.
func catalogOf(sources []source) (*Catalog, error) {
	a := assemble(sources)
	if len(a.problems) > 0 {
		return nil, fmt.Errorf("cannot use the catalogue:\n%w", a.problems)
	}
	c := &Catalog{byID: map[string]*Fault{}}
	for id, r := range a.files {
		c.byID[id] = r.fault
		c.Faults = append(c.Faults, r.fault)
	}
	slices.SortFunc(c.Faults, func(a, b *Fault) int { return strings.Compare(a.ID, b.ID) })
	if len(c.Faults) == 0 {
		return nil, errors.New("cannot use the catalogue: it has no faults")
	}
	return c, nil
}

// assembly is what all sources give together.
type assembly struct {
	files    map[string]*read // the last of each identifier
	problems Problems
	notes    []Problem
	own      int
}

func assemble(sources []source) *assembly {
	a := &assembly{files: map[string]*read{}}
	replaced := map[string]*read{}
	for _, s := range sources {
		list, problems := s.files()
		a.problems = append(a.problems, problems...)
		for _, r := range list {
			if r.own {
				a.own++
			}
			if f := r.fault; f != nil && f.ID != r.id && idPattern.MatchString(f.ID) {
				r.problems = append(r.problems, Problem{r.file, r.line("id"), fmt.Sprintf("id is %q, and the file is named %s.yaml: they must agree", f.ID, r.id)})
			}
			if old := a.files[r.id]; old != nil {
				replaced[r.id] = old
			}
			a.files[r.id] = r
			a.problems = append(a.problems, r.problems...)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(a.files)) {
		r := a.files[id]
		if r.fault == nil {
			continue
		}
		a.checkRefines(r)
		if r.own {
			a.remark(r, replaced[id])
		}
	}
	return a
}

// checkRefines looks for general faults that are not there, and for circles.
func (a *assembly) checkRefines(r *read) {
	for i, id := range r.fault.Refines {
		if id == r.fault.ID {
			continue // told already
		}
		if a.files[id] == nil {
			a.problems = append(a.problems, Problem{r.file, r.line("refines", i), fmt.Sprintf(
				"refines %q, which is no other fault of the catalogue%s", id, meant(kinds.Nearest(id, slices.Sorted(maps.Keys(a.files)))))})
			continue
		}
		if way := a.way(id, r.id, map[string]bool{}); way != nil {
			a.problems = append(a.problems, Problem{r.file, r.line("refines", i), fmt.Sprintf(
				"refines in a circle: %s", strings.Join(append([]string{r.id}, way...), " refines "))})
		}
	}
}

// way returns the faults from one to another along what they refine, nil when there
// is no such way.
func (a *assembly) way(from, to string, seen map[string]bool) []string {
	if from == to {
		return []string{to}
	}
	r := a.files[from]
	if seen[from] || r == nil || r.fault == nil {
		return nil
	}
	seen[from] = true
	for _, id := range r.fault.Refines {
		if way := a.way(id, to, seen); way != nil {
			return append([]string{from}, way...)
		}
	}
	return nil
}

// remark notes what is allowed in a user's fault and may not be meant.
func (a *assembly) remark(r, old *read) {
	note := func(line int, format string, args ...any) {
		a.notes = append(a.notes, Problem{r.file, line, fmt.Sprintf(format, args...)})
	}
	if old != nil {
		whose := "the built-in fault " + r.id
		if old.own {
			whose = old.file
		}
		var heirs []string
		for _, id := range slices.Sorted(maps.Keys(a.files)) {
			if f := a.files[id].fault; f != nil && slices.Contains(f.Refines, r.id) {
				heirs = append(heirs, id)
			}
		}
		text := "replaces " + whose
		if len(heirs) > 0 {
			text += "; what speaks for it now speaks for " + strings.Join(heirs, ", ") + " too, which refine it"
		}
		note(r.line("id"), "%s", text)
	}
	quads := map[record.Quadrant]bool{}
	essential := false
	for i := range r.fault.Expect {
		e := &r.fault.Expect[i]
		if !e.Absent {
			quads[e.Quadrant] = true
		}
		essential = essential || e.Essential
	}
	if len(quads) == 1 && len(r.fault.Refines) == 0 {
		note(r.line("expect"), "all evidence is of one quadrant: the fault can be suspected, never confirmed")
	}
	if !essential && len(r.fault.Expect) > 0 {
		note(r.line("expect"), "no evidence is essential: the fault is weighed wherever any of it shows")
	}
}

// Of returns a catalogue of the given faults, without the built-in ones. They are not
// checked: that is for those who read them. Two with one identifier are an error.
func Of(faults ...*Fault) (*Catalog, error) {
	c := &Catalog{byID: map[string]*Fault{}}
	for _, f := range faults {
		if c.byID[f.ID] != nil {
			return nil, fmt.Errorf("cannot make a catalogue: two faults are named %s", f.ID)
		}
		c.byID[f.ID] = f
	}
	c.Faults = slices.Clone(faults)
	slices.SortFunc(c.Faults, func(a, b *Fault) int { return strings.Compare(a.ID, b.ID) })
	return c, nil
}
