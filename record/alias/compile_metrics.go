package alias

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

func (c *compiler) metrics(list []*metric) {
	seen := map[string]bool{}
	rank := 0
	for _, m := range list {
		if err := CheckCanonical(m.Name); err != nil {
			c.bad(m.at, "%v", err)
			continue
		}
		if seen[m.Name] {
			c.bad(m.at, "%s comes twice: make it one entry", m.Name)
			continue
		}
		seen[m.Name] = true
		if m.Off {
			continue
		}
		switch m.Type {
		case Gauge, Counter, Histogram:
		default:
			c.bad(m.at, "%s: type %q is none of gauge, counter, histogram", m.Name, m.Type)
			continue
		}
		if len(m.From) == 0 {
			c.bad(m.at, "%s: from must name a source or more", m.Name)
		}
		c.t.metricList = append(c.t.metricList, m)
		for _, s := range m.From {
			s.canonical, s.rank = m, rank
			rank++
			if err := c.metricSource(s); err != nil {
				c.bad(s.at, "%s from %q: %v", m.Name, s.Name, err)
			}
		}
	}
}

func (c *compiler) metricSource(s *metricSource) (err error) {
	m := s.canonical
	d := c.dialects[s.Dialect]
	switch {
	case len(s.Name) < minName || len(s.Name) > maxSource:
		return fmt.Errorf("a source's name has %d to %d characters", minName, maxSource)
	case d == nil:
		return fmt.Errorf("dialect %q is not declared", s.Dialect)
	case s.Name == m.Name:
		return errors.New("it is the canonical name itself")
	case s.Blank < 0:
		return errors.New("blank is below 0")
	}
	for label, values := range s.Only {
		if len(values) == 0 {
			return fmt.Errorf("only: label %q has no values", label)
		}
	}
	if s.scale, err = scaleOf(s.Scale, s.Unit, m.Unit); err != nil {
		return err
	}
	s.rename = map[string]string{}
	maps.Copy(s.rename, d.Labels)
	maps.Copy(s.rename, s.Labels)
	s.group = fmt.Sprint(m.Name, s.Only, s.Set) // prints maps sorted
	unit := s.Unit
	if unit == "" {
		unit = m.Unit
	}
	// What is stored under the canonical name anyway is not stored again.
	stored := spellings(m.Name, m.Unit, nil)
	for _, name := range spellings(s.Name, unit, d.Prefixes) {
		if slices.Contains(stored, name) {
			continue
		}
		for _, o := range c.t.metrics[name] {
			if o == s || disjoint(o.Only, s.Only) {
				continue
			}
			return fmt.Errorf("%q already leads to %s (%s:%d); take it out there with without, or tell the points apart with only", name, o.canonical.Name, o.at.file, o.at.line)
		}
		c.t.metrics[name] = append(c.t.metrics[name], s)
	}
	return nil
}

// disjoint tells whether no point can pass both.
func disjoint(a, b map[string][]string) bool {
	for label, values := range a {
		if others, ok := b[label]; ok && !slices.ContainsFunc(values, func(v string) bool { return slices.Contains(others, v) }) {
			return true
		}
	}
	return false
}

// spellings are the forms in which a metric's name arrives: with colons and
// dots or with underscores, with or without the unit and the _total that
// Prometheus' naming adds, behind a prefix.
func spellings(name, unit string, prefixes []string) []string {
	base := strings.TrimSuffix(name, "_total")
	plain := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, base)
	forms := []string{base, plain}
	if word := unitWords[unit]; word != "" && strings.Contains(base, ".") {
		forms = append(forms, plain+"_"+word)
	}
	var out []string
	for _, f := range forms {
		for _, p := range append([]string{""}, prefixes...) {
			for _, suffix := range []string{"", "_total"} {
				if spelled := p + f + suffix; !slices.Contains(out, spelled) {
					out = append(out, spelled)
				}
			}
		}
	}
	return out
}

// unitWords are Prometheus' words for units.
var unitWords = map[string]string{
	"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds", "min": "minutes", "h": "hours",
	"By": "bytes", "KiBy": "kibibytes", "MiBy": "mebibytes", "GiBy": "gibibytes", "kBy": "kilobytes", "MBy": "megabytes", "GBy": "gigabytes",
	"1": "ratio", "%": "percent", "J": "joules", "W": "watts", "Hz": "hertz", "Cel": "celsius",
}
