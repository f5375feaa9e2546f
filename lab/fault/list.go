package fault

import (
	"slices"
	"strings"
)

// All returns the faults that the laboratory makes, by identifier.
func All() []Fault {
	out := slices.Concat(inference(), services(), inputs(), infrastructure())
	slices.SortFunc(out, func(a, b Fault) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// Get returns a fault by its identifier.
func Get(id string) (Fault, bool) {
	for _, f := range All() {
		if f.ID == id {
			return f, true
		}
	}
	return Fault{}, false
}
