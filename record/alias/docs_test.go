package alias

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of docs/aliases.md anew")

const (
	docsFile  = "../../docs/aliases.md"
	docsBegin = "<!-- made of record/alias/aliases.yaml by go test ./record/alias -run TestDocs -update -->\n"
	docsEnd   = "<!-- end -->\n"
)

// The tables of docs/aliases.md are those of aliases.yaml.
func TestDocs(t *testing.T) {
	tab, err := Parse("", nil)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(docsFile)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(data), docsBegin)
	_, after, ok2 := strings.Cut(rest, docsEnd)
	if !ok || !ok2 {
		t.Fatalf("%s has no %q … %q", docsFile, docsBegin, docsEnd)
	}
	want := before + docsBegin + docsTables(tab) + docsEnd + after
	if want == string(data) {
		return
	}
	if !*update {
		t.Fatalf("%s is older than aliases.yaml: run go test ./record/alias -run TestDocs -update", docsFile)
	}
	if err := os.WriteFile(docsFile, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Each source of aliases.yaml is in the tables.
func TestDocsHaveAll(t *testing.T) {
	tab, err := Parse("", nil)
	if err != nil {
		t.Fatal(err)
	}
	text := docsTables(tab)
	for name := range tab.exact {
		if !strings.Contains(text, code(name)) {
			t.Errorf("attribute %s is missing", name)
		}
	}
	for _, sources := range tab.metrics {
		for _, s := range sources {
			if !strings.Contains(text, code(s.Name)) {
				t.Errorf("metric %s is missing", s.Name)
			}
		}
	}
}

// The table of a user's own that the documentation shows is a good one.
func TestDocsExample(t *testing.T) {
	data, err := os.ReadFile(docsFile)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), "```yaml\n")
	example, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("there is none")
	}
	tab, err := Parse("own.yaml", []byte(example))
	if err != nil {
		t.Fatal(err)
	}
	if got := tab.Attribute("acme.tokens_in"); len(got) != 1 || got[0].Name != "gen_ai.usage.input_tokens" {
		t.Errorf("acme.tokens_in leads to %v", got)
	}
	if got := tab.Attribute("correlation_id"); len(got) != 0 {
		t.Errorf("a source that was taken out leads to %v", got)
	}
	if got := tab.Metric("gw_queue_ms"); len(got) != 1 || got[0].Name != "acme.queue.wait" {
		t.Errorf("gw_queue_ms leads to %v", got)
	}
	if got := tab.Metric("sglang:cache_hit_rate"); len(got) != 0 {
		t.Errorf("a name that is off is led to by %v", got)
	}
}

// docsTables is what the documentation shows of a table.
func docsTables(t *Table) string {
	var b strings.Builder
	b.WriteString("\n### Dialects\n\n| dialect | what it is | labels of its metrics |\n|---|---|---|\n")
	for _, d := range t.dialects {
		var labels []string
		for _, from := range slices.Sorted(maps.Keys(d.Labels)) {
			labels = append(labels, code(from)+" → "+code(d.Labels[from]))
		}
		row(&b, d.Name, d.Description, strings.Join(labels, ", "))
	}
	fmt.Fprintf(&b, "\n### Attributes: %d canonical names\n\n| canonical name | type | meaning | sources, the first that fits counts |\n|---|---|---|---|\n", len(t.attributeList))
	for _, a := range t.attributeList {
		var from []string
		for _, s := range a.From {
			from = append(from, s.describe())
		}
		row(&b, code(a.Name), typeCell(a.Type, a.Unit), a.Description, strings.Join(from, "<br>"))
	}
	fmt.Fprintf(&b, "\n### Metrics: %d canonical names\n\n| canonical name | type | meaning | sources |\n|---|---|---|---|\n", len(t.metricList))
	for _, m := range t.metricList {
		var from []string
		for _, s := range m.From {
			from = append(from, s.describe())
		}
		row(&b, code(m.Name), typeCell(m.Type, m.Unit), m.Description, strings.Join(from, "<br>"))
	}
	b.WriteByte('\n')
	return b.String()
}

func row(b *strings.Builder, cells ...string) {
	b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

// code is text as code in a cell of a table.
func code(s string) string { return "`" + strings.ReplaceAll(s, "|", `\|`) + "`" }

func typeCell(t Type, unit string) string {
	if unit == "" {
		return string(t)
	}
	return string(t) + ", " + code(unit)
}

// describe says what a source is and what is done to its value.
func (s *source) describe() string {
	var more []string
	if s.Member != "" {
		more = append(more, "member "+code(s.Member))
	}
	if s.Set != "" {
		more = append(more, "as "+code(s.Set))
	}
	for _, name := range slices.Sorted(maps.Keys(s.When)) {
		if s.When[name] == "" {
			more = append(more, "with "+code(name))
		} else {
			more = append(more, "with "+code(name+"="+s.When[name]))
		}
	}
	if s.Extract != "" {
		more = append(more, "what "+code(s.Extract)+" finds")
	}
	if len(s.Values) > 0 {
		more = append(more, "values "+renamed(s.Values))
		if s.Others == "drop" {
			more = append(more, "no others")
		}
	}
	return code(s.Name) + " (" + strings.Join(append([]string{s.Dialect}, append(more, conversion(s.scale, s.Unit, s.canonical.Unit)...)...), "; ") + ")"
}

func (s *metricSource) describe() string {
	var more []string
	for _, label := range slices.Sorted(maps.Keys(s.Only)) {
		more = append(more, "only "+code(label+"="+strings.Join(s.Only[label], ",")))
	}
	for _, label := range slices.Sorted(maps.Keys(s.Set)) {
		more = append(more, "sets "+code(label+"="+s.Set[label]))
	}
	if len(s.Labels) > 0 {
		more = append(more, "labels "+renamed(s.Labels))
	}
	if s.Blank > 0 {
		more = append(more, "none from "+code(number64(s.Blank)))
	}
	return code(s.Name) + " (" + strings.Join(append([]string{s.Dialect}, append(more, conversion(s.scale, s.Unit, s.canonical.Unit)...)...), "; ") + ")"
}

func renamed(values map[string]string) string {
	var out []string
	for _, from := range slices.Sorted(maps.Keys(values)) {
		if values[from] != from {
			out = append(out, code(from)+" → "+code(values[from]))
		} else {
			out = append(out, code(from))
		}
	}
	return strings.Join(out, ", ")
}

func conversion(scale float64, from, to string) []string {
	switch {
	case scale == 1:
		return nil
	case from != "":
		return []string{fmt.Sprintf("%s → %s, × %s", code(from), code(to), number64(scale))}
	}
	return []string{"× " + number64(scale)}
}

func number64(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
