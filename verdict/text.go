package verdict

import (
	"fmt"
	"math"
	"strings"

	"inquest/record"
)

// describe says a finding in a sentence.
func describe(f *record.Finding) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s of %s", strings.ReplaceAll(f.Kind, "_", " "), f.Entity.Name)
	if f.Peer != nil {
		fmt.Fprintf(&b, " with %s", f.Peer.Name)
	}
	if f.Subject != "" {
		fmt.Fprintf(&b, " (%s)", f.Subject)
	}
	fmt.Fprintf(&b, " %s: %s, usually %s", word(f.Direction), quantity(f.Observed, f.Unit), quantity(f.Expected, f.Unit))
	return b.String()
}

func word(d record.Direction) string {
	switch d {
	case record.DirectionUp:
		return "rose"
	case record.DirectionDown:
		return "fell"
	case record.DirectionAppeared:
		return "appeared"
	default:
		return "vanished"
	}
}

func quantity(v float64, unit string) string {
	if unit == "1" {
		return fmt.Sprintf("%.3g %%", 100*v)
	}
	unit = strings.Trim(unit, "{}")
	if a := math.Abs(v); a >= 1e6 || a > 0 && a < 1e-3 {
		return strings.TrimSpace(fmt.Sprintf("%.3e %s", v, unit))
	}
	return strings.TrimSpace(fmt.Sprintf("%.4g %s", v, unit))
}

func summary(v *Verdict) string {
	switch v.State {
	case StateInconclusive:
		if len(v.Examined) == 0 {
			return "Inconclusive: no source could be examined."
		}
		if len(v.Alternatives) == 0 {
			return "Inconclusive: nothing examined differs from the baseline in a way that points to a cause."
		}
		a := v.Alternatives[0]
		return fmt.Sprintf("Inconclusive: nothing separates. The best of the weak hypotheses is %s at %s.", lower(a.Title), a.Entity.Name)
	default:
		where := ""
		switch {
		case v.Cause.Code != nil:
			where = fmt.Sprintf(", between %q and %q", v.Cause.Code.After, v.Cause.Code.Before)
		case v.Cause.Metric != "":
			where = ", shown by " + v.Cause.Metric
		}
		state := "Confirmed"
		if v.State == StateSuspected {
			state = "Suspected"
		}
		out := fmt.Sprintf("%s: %s at %s %s%s (%d of 4 quadrants).", state, lower(v.Cause.Title),
			strings.ReplaceAll(string(v.Cause.Entity.Kind), "_", " "), v.Cause.Entity.Name, where, len(v.Quadrants))
		for i := range v.Also {
			a := &v.Also[i]
			out += fmt.Sprintf(" Besides it, %s: %s at %s %s (%d of 4 quadrants).", a.State, lower(a.Title),
				strings.ReplaceAll(string(a.Entity.Kind), "_", " "), a.Entity.Name, len(a.Quadrants))
		}
		return out
	}
}

// lower begins a title in small letters, unless it begins with an abbreviation.
func lower(s string) string {
	if len(s) > 1 && s[1] >= 'A' && s[1] <= 'Z' {
		return s
	}
	return strings.ToLower(s[:min(1, len(s))]) + s[min(1, len(s)):]
}

// nextChecks names what would tell more: first what the verdict lacks, then the
// check of the cause.
func nextChecks(v *Verdict, ranked []*hypothesis) []string {
	var out []string
	add := func(s string) {
		for _, o := range out {
			if o == s {
				return
			}
		}
		out = append(out, s)
	}
	for _, m := range v.NotExamined {
		add(fmt.Sprintf("Make %s of %s available: %s.", m.Quadrant, m.Source, m.Reason))
	}
	if v.State != StateConfirmed {
		for _, h := range ranked[:min(2, len(ranked))] {
			for i := range h.pieces {
				p := &h.pieces[i]
				if !p.examined && len(out) < 8 {
					add(fmt.Sprintf("To tell %s at %s: see in %s whether %s.", lower(h.fault.Title), h.entity.Name, p.expect.Quadrant, p.expect.Text))
				}
			}
		}
	}
	if v.Cause != nil {
		add(v.Cause.Remedy)
		add("Repaired when: " + v.Cause.Check)
	}
	return out
}
