package attributes

import (
	"fmt"
	"slices"
)

// Reading is how the attributes of one kind are read.
type Reading struct {
	Kind string
	// Texts say what is measured, one for each attribute, without a full stop.
	Texts []string
	// Attributes are the names that are read; one that ends in * stands for all that
	// begin so.
	Attributes []string
}

// Readings returns what the table reads, by kind, in the order of the table.
func (t *Table) Readings() []Reading {
	var out []Reading
	for _, r := range t.rules {
		i := slices.IndexFunc(out, func(x Reading) bool { return x.Kind == r.Kind })
		if i < 0 {
			i = len(out)
			out = append(out, Reading{Kind: r.Kind})
		}
		out[i].Texts = append(out[i].Texts, r.text())
		out[i].Attributes = append(out[i].Attributes, r.Name)
	}
	return out
}

func (r *rule) text() string {
	switch r.Read {
	case readRatio:
		return fmt.Sprintf("%s as a share of %s", r.Name, r.Of)
	case readValue:
		return "which " + r.Name
	case readFlag:
		return fmt.Sprintf("share of requests with %s true", r.Name)
	case readList:
		return fmt.Sprintf("share of requests with %s not empty", r.Name)
	case readMiss:
		return fmt.Sprintf("share of %s false", r.Name)
	case readReaches:
		return fmt.Sprintf("share of %s at or above %s", r.Name, r.Of)
	default:
		return r.Name
	}
}
