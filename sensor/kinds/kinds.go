// Package kinds lists the kinds of findings that sensors make, with the quadrant in
// which each is made, what it says, and what must be recorded for it. Where a sensor
// works by a table, the list is made of that table.
package kinds

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"inquest/record"
)

// Kind is a kind of finding in one quadrant. A kind that several quadrants have is
// several entries.
type Kind struct {
	Name     string          `json:"name"`
	Quadrant record.Quadrant `json:"quadrant"`
	// Text says what is measured, in a sentence, with its unit.
	Text string `json:"text"`
	// Needs says what must be recorded for it, in a sentence.
	Needs string `json:"needs"`
	// Ways is whether the finding is about the way from one entity to another, and so
	// can be expected on the ways into or out of an entity.
	Ways bool `json:"ways,omitempty"`
}

// all is the list, by quadrant and name.
var all = sync.OnceValue(func() []Kind {
	out := slices.Concat(plain, classes(), attributeKinds(), topics(), checks())
	for i := range out {
		out[i].Text, out[i].Needs = sentence(out[i].Text), sentence(out[i].Needs)
	}
	order := map[record.Quadrant]int{}
	for i, q := range record.Quadrants {
		order[q] = i
	}
	slices.SortStableFunc(out, func(a, b Kind) int {
		return cmp.Or(cmp.Compare(order[a.Quadrant], order[b.Quadrant]), strings.Compare(a.Name, b.Name))
	})
	return merged(out)
})

// merged makes one entry of those with the same name and quadrant: several sensors
// make such findings.
func merged(list []Kind) []Kind {
	out := list[:0]
	for _, k := range list {
		if n := len(out); n > 0 && out[n-1].Name == k.Name && out[n-1].Quadrant == k.Quadrant {
			out[n-1].Text += " " + k.Text
			out[n-1].Needs += " Or: " + k.Needs
			out[n-1].Ways = out[n-1].Ways || k.Ways
			continue
		}
		out = append(out, k)
	}
	return out
}

// sentence begins with a capital, unless a name stands first, and ends in a full stop.
func sentence(s string) string {
	if first, _, _ := strings.Cut(s, " "); first != "" && !strings.ContainsAny(first, "._`*") {
		s = strings.ToUpper(s[:1]) + s[1:]
	}
	return strings.TrimSuffix(s, ".") + "."
}

// All returns the kinds by quadrant, in the order of [record.Quadrants], and by name.
func All() []Kind { return slices.Clone(all()) }

// Get returns the kind of a name in a quadrant.
func Get(name string, q record.Quadrant) (Kind, bool) {
	for _, k := range all() {
		if k.Name == name && k.Quadrant == q {
			return k, true
		}
	}
	return Kind{}, false
}

// Quadrants returns the quadrants in which sensors make findings of a kind.
func Quadrants(name string) []record.Quadrant {
	var out []record.Quadrant
	for _, k := range all() {
		if k.Name == name {
			out = append(out, k.Quadrant)
		}
	}
	return out
}

// Near returns up to three kinds of a quadrant whose names are near, the nearest
// first.
func Near(name string, q record.Quadrant) []string {
	var names []string
	for _, k := range all() {
		if k.Quadrant == q {
			names = append(names, k.Name)
		}
	}
	return Nearest(name, names)
}

// Nearest returns up to three of the names that may have been meant, the nearest
// first: a third of the letters may be otherwise, or one name holds the other.
func Nearest(name string, names []string) []string {
	type near struct {
		name     string
		distance int
	}
	var found []near
	for _, n := range names {
		d := distance(name, n)
		part := len(name) >= 3 && strings.Contains(n, name) || len(n) >= 3 && strings.Contains(name, n)
		if 3*d <= max(len(name), 3) || part {
			found = append(found, near{n, d})
		}
	}
	slices.SortStableFunc(found, func(a, b near) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), strings.Compare(a.name, b.name))
	})
	var out []string
	for _, f := range found[:min(3, len(found))] {
		if f.distance <= found[0].distance+1 { // others are far behind
			out = append(out, f.name)
		}
	}
	return out
}

// distance is Levenshtein's, in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := row[0]
		row[0] = i + 1
		for j := range len(b) {
			d := last
			if a[i] != b[j] {
				d++
			}
			last = row[j+1]
			row[j+1] = min(d, row[j]+1, last+1)
		}
	}
	return row[len(b)]
}
