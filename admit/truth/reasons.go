package truth

import (
	"cmp"
	"slices"
	"strings"
)

// Reasons returns the reasons of which findings are made, what explains the others
// first. Reasons of a look that is not complete yet are not among them.
func Reasons() []Reason {
	var out []Reason
	for r := range severityOf {
		if !r.passing() {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b Reason) int { return cmp.Compare(severityOf[a], severityOf[b]) })
	return out
}

// FindingKind is the kind of findings of a reason.
func (r Reason) FindingKind() string { return strings.ReplaceAll(string(r), ".", "_") }
