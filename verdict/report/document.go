// Package report writes a verdict for people: on a terminal, as Markdown, as
// one HTML page, or as JSON for programs. All forms hold the same content, the
// raw evidence included.
package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"inquest/record"
	"inquest/verdict"
)

// document is a report before it is laid out.
type document struct {
	Title    string
	State    verdict.State
	Summary  string
	Facts    []fact
	Sections []section
}

type fact struct{ Name, Value string }

type section struct {
	Title string
	// Note stands before the items.
	Note  string
	Items []item
}

// item is a line with what belongs to it.
type item struct {
	Text string
	// Details are further lines; Raw are lines of telemetry and queries, kept as
	// they are.
	Details []string
	Raw     []string
}

func newDocument(v *verdict.Verdict) document {
	d := document{
		Title:   "Inquest: " + string(v.State),
		State:   v.State,
		Summary: v.Summary,
		Facts:   facts(v),
	}
	add := func(s section) {
		if len(s.Items) > 0 || s.Note != "" {
			d.Sections = append(d.Sections, s)
		}
	}
	for _, q := range record.Quadrants {
		add(evidence(v, q))
	}
	add(chain(v))
	add(counter(v))
	add(further(v))
	add(alternatives(v))
	add(rest(v))
	add(sources(v))
	add(clocks(v))
	add(checks(v))
	return d
}

const timeFormat = "2006-01-02 15:04:05 MST"

func facts(v *verdict.Verdict) []fact {
	var out []fact
	add := func(name, value string) {
		if value != "" {
			out = append(out, fact{name, value})
		}
	}
	if c := v.Cause; c != nil {
		add("Cause", c.Title+" at "+entity(c.Entity))
		for _, e := range c.Instances {
			add("Instance", entity(e))
		}
		add("Operation", c.Operation)
		add("Metric", c.Metric)
		if c.Code != nil {
			add("Code", codeRegion(c.Code))
		}
		add("Mechanism", c.Mechanism)
		add("Remedy", c.Remedy)
		add("Check", c.Check)
	}
	if o := v.Onset; o != nil {
		text := o.Time.UTC().Format(timeFormat)
		if o.ErrorSeconds > 0 {
			text += fmt.Sprintf(" ± %.0f s", o.ErrorSeconds)
		}
		if o.Given {
			text += " (given)"
		}
		add("Onset", text)
	}
	add("Confidence", fmt.Sprintf("%.0f %%", 100*v.Confidence))
	add("Quadrants", quadrants(v.Quadrants))
	if v.State != verdict.StateConfirmed {
		add("Missing", lacking(v))
	}
	add("Examined window", span(v.Window))
	for _, b := range v.Baseline {
		add("Baseline", span(b))
	}
	return out
}

// lacking says what a verdict would need to be confirmed.
func lacking(v *verdict.Verdict) string {
	switch {
	case v.Cause == nil:
		return "no hypothesis stands out from the baseline"
	case len(v.Quadrants) < 2:
		return "strong evidence from a second quadrant; an incident is not closed on fewer than two"
	default:
		return "a margin over the next hypothesis"
	}
}

// evidence are the findings of a quadrant on which the cause stands; without a
// cause there are none, and all findings are in rest.
func evidence(v *verdict.Verdict, q record.Quadrant) section {
	s := section{Title: "Evidence: " + string(q)}
	for _, f := range v.Findings {
		if f.Quadrant == q && forCause(v, f) {
			s.Items = append(s.Items, finding(f))
		}
	}
	return s
}

// rest are the findings that speak of effects, of other hypotheses, or of nothing
// that was understood.
func rest(v *verdict.Verdict) section {
	s := section{Title: "Also seen"}
	for _, q := range record.Quadrants {
		for _, f := range v.Findings {
			if f.Quadrant == q && !forCause(v, f) {
				it := finding(f)
				it.Text = fmt.Sprintf("[%s] %s: %s", f.ID, f.Quadrant, f.Text)
				s.Items = append(s.Items, it)
			}
		}
	}
	return s
}

func forCause(v *verdict.Verdict, f record.Finding) bool {
	return v.Cause != nil && slices.Contains(v.Cause.Findings, f.ID)
}

func finding(f record.Finding) item {
	it := item{Text: fmt.Sprintf("[%s] %s", f.ID, f.Text)}
	it.Details = append(it.Details, fmt.Sprintf("%s: %s instead of %s, %.1f deviations from the baseline, which shows as much with p = %.2g",
		f.Kind, quantity(f.Observed, f.Unit), quantity(f.Expected, f.Unit), f.Effect, f.Strength))
	if f.Onset != nil {
		text := "changed at " + f.Onset.UTC().Format(timeFormat)
		if f.OnsetErrorSeconds > 0 {
			text += fmt.Sprintf(" ± %.0f s", f.OnsetErrorSeconds)
		}
		it.Details = append(it.Details, text)
	}
	for _, ref := range f.Evidence {
		if ref.Query != "" {
			it.Raw = append(it.Raw, fmt.Sprintf("%s %s  (%s)", ref.Language, ref.Query, span(verdict.Range{From: ref.From, To: ref.To})))
		}
		for _, raw := range ref.Items {
			it.Raw = append(it.Raw, rawItem(raw))
		}
	}
	return it
}

func rawItem(raw record.Item) string {
	parts := []string{raw.Time.UTC().Format("15:04:05.000")}
	if raw.Value != nil {
		parts = append(parts, fmt.Sprintf("%.6g", *raw.Value))
	}
	if raw.Text != "" {
		parts = append(parts, raw.Text)
	}
	if raw.TraceID != "" {
		parts = append(parts, "trace="+raw.TraceID)
	}
	if raw.SpanID != "" {
		parts = append(parts, "span="+raw.SpanID)
	}
	return strings.Join(parts, "  ")
}

func chain(v *verdict.Verdict) section {
	s := section{Title: "How it spread"}
	for i, e := range v.Chain {
		text := fmt.Sprintf("%d. %s: %s", i+1, entity(e.Entity), e.Text)
		if e.Via != nil {
			text += fmt.Sprintf(" (%s %s %s)", entity(e.Via.From), strings.ReplaceAll(string(e.Via.Kind), "_", " "), entity(e.Via.To))
		}
		s.Items = append(s.Items, item{Text: text + see(e.Findings)})
	}
	return s
}

func counter(v *verdict.Verdict) section {
	s := section{Title: "Evidence against"}
	for _, c := range v.Counter {
		s.Items = append(s.Items, item{Text: c.Kind + ": " + c.Text + see(c.Findings)})
	}
	if v.Cause != nil && len(s.Items) == 0 {
		s.Note = "None was found in the sources that were examined."
	}
	return s
}

// further are the causes that broke besides the first.
func further(v *verdict.Verdict) section {
	s := section{Title: "Broke at the same time"}
	for i := range v.Also {
		a := &v.Also[i]
		it := item{Text: fmt.Sprintf("%s: %s at %s, %s%s", a.State, a.Title, entity(a.Entity), quadrants(a.Quadrants), see(a.Findings))}
		for _, line := range []fact{{"Operation", a.Operation}, {"Metric", a.Metric}, {"Mechanism", a.Mechanism}, {"Remedy", a.Remedy}, {"Check", a.Check}} {
			if line.Value != "" {
				it.Details = append(it.Details, line.Name+": "+line.Value)
			}
		}
		s.Items = append(s.Items, it)
	}
	return s
}

func alternatives(v *verdict.Verdict) section {
	s := section{Title: "Alternatives"}
	for _, h := range v.Alternatives {
		it := item{Text: fmt.Sprintf("%.1f %%  %s at %s%s", 100*h.Probability, h.Title, entity(h.Entity), see(h.Findings))}
		if h.Against != "" {
			it.Details = append(it.Details, h.Against)
		}
		s.Items = append(s.Items, it)
	}
	return s
}

func sources(v *verdict.Verdict) section {
	s := section{Title: "Sources"}
	for _, m := range v.NotExamined {
		s.Items = append(s.Items, item{Text: fmt.Sprintf("NOT examined: %s of %s: %s%s", m.Quadrant, m.Source, m.Reason, spans(m.Ranges))})
	}
	for _, e := range v.Examined {
		s.Items = append(s.Items, item{Text: fmt.Sprintf("examined: %s of %s, %d items", e.Quadrant, e.Source, e.Items)})
	}
	return s
}

// clocks says by how much times were corrected.
func clocks(v *verdict.Verdict) section {
	s := section{Title: "Clocks"}
	for _, c := range v.Clocks {
		text := entity(c.Entity)
		if c.ErrorMs > 0 {
			text += fmt.Sprintf(": %+.5g ms ± %.3g ms, taken off its spans and log records", c.OffsetMs, c.ErrorMs)
		}
		if c.Note != "" {
			text += ": " + c.Note
		}
		s.Items = append(s.Items, item{Text: text})
	}
	return s
}

func checks(v *verdict.Verdict) section {
	s := section{Title: "Next checks"}
	for _, c := range v.NextChecks {
		s.Items = append(s.Items, item{Text: c})
	}
	return s
}

func entity(e record.Entity) string {
	name := e.Name
	if e.Of != "" {
		name = e.Of + "/" + e.Name
	}
	return strings.ReplaceAll(string(e.Kind), "_", " ") + " " + name
}

func codeRegion(c *verdict.CodeRegion) string {
	var parts []string
	if c.After != "" {
		parts = append(parts, "after "+c.After)
	}
	if c.Before != "" {
		parts = append(parts, "before "+c.Before)
	}
	return strings.Join(parts, ", ")
}

func quadrants(qs []record.Quadrant) string {
	names := make([]string, len(qs))
	for i, q := range qs {
		names[i] = string(q)
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

func see(ids []string) string {
	if len(ids) == 0 {
		return ""
	}
	return " [" + strings.Join(ids, ", ") + "]"
}

func span(r verdict.Range) string {
	from, to := r.From.UTC(), r.To.UTC()
	if from.IsZero() && to.IsZero() {
		return ""
	}
	if from.Format(time.DateOnly) == to.Format(time.DateOnly) {
		return from.Format("2006-01-02 15:04:05") + " to " + to.Format("15:04:05 MST")
	}
	return from.Format(timeFormat) + " to " + to.Format(timeFormat)
}

func spans(rs []verdict.Range) string {
	texts := make([]string, len(rs))
	for i, r := range rs {
		texts[i] = span(r)
	}
	if len(texts) == 0 {
		return ""
	}
	return " (" + strings.Join(texts, "; ") + ")"
}

// quantity writes a number with its unit in a size that people read.
func quantity(v float64, unit string) string {
	switch unit {
	case "ns":
		return time.Duration(v).Round(10 * time.Microsecond).String()
	case "s":
		return fmt.Sprintf("%.4g s", v)
	case "ms":
		return fmt.Sprintf("%.4g ms", v)
	case "By":
		for _, u := range []string{"B", "KiB", "MiB", "GiB"} {
			if v < 1024 && v > -1024 {
				return fmt.Sprintf("%.4g %s", v, u)
			}
			v /= 1024
		}
		return fmt.Sprintf("%.4g TiB", v)
	case "", "1":
		return fmt.Sprintf("%.4g", v)
	default:
		return fmt.Sprintf("%.4g %s", v, unit)
	}
}
