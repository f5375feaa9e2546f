package catalog

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"inquest/sensor/kinds"
)

var update = flag.Bool("update", false, "write the lists of kinds and faults in docs/ and schema/ anew")

const (
	docsBegin = "<!-- made by go test ./catalog -run 'TestDocs|TestSchemaKinds' -update -->\n"
	docsEnd   = "<!-- end -->\n"
)

// same compares a file with what it should be, or rewrites it.
func same(t *testing.T, name, have, want string) {
	t.Helper()
	if have == want {
		return
	}
	if !*update {
		t.Fatalf("%s is older than the sensors or the catalogue: run go test ./catalog -run 'TestDocs|TestSchemaKinds' -update", name)
	}
	if err := os.WriteFile(name, []byte(want), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestDocs keeps the tables of the documents as they should be.
func TestDocs(t *testing.T) {
	f := func(name, table string) {
		t.Helper()
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		before, rest, ok := strings.Cut(string(raw), docsBegin)
		_, after, ended := strings.Cut(rest, docsEnd)
		if !ok || !ended {
			t.Fatalf("%s lacks the lines %q and %q", name, docsBegin, docsEnd)
		}
		same(t, name, string(raw), before+docsBegin+table+docsEnd+after)
	}
	c, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	f("../docs/catalog.md", faultTable(c))
	f("../docs/findings.md", kindTable())
}

var cell = strings.NewReplacer("|", `\|`, "\n", " ")

func faultTable(c *Catalog) string {
	b := &strings.Builder{}
	b.WriteString("\n| fault | what it is | at | refines | essential evidence |\n|---|---|---|---|---|\n")
	for _, f := range c.Faults {
		var essential []string
		for i := range f.Expect {
			if e := &f.Expect[i]; e.Essential {
				essential = append(essential, fmt.Sprintf("%s: %s", e.Quadrant, e.Text))
			}
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s |\n", f.ID, cell.Replace(f.Title), strings.ReplaceAll(words(f.At), "_", " "),
			strings.Join(f.Refines, ", "), cell.Replace(strings.Join(essential, "; ")))
	}
	return b.String() + "\n"
}

func kindTable() string {
	b := &strings.Builder{}
	b.WriteString("\n| kind | quadrant | what is measured | what must be recorded |\n|---|---|---|---|\n")
	for _, k := range kinds.All() {
		ways := ""
		if k.Ways {
			ways = " Of each way from a caller to the entity."
		}
		fmt.Fprintf(b, "| `%s` | %s | %s%s | %s |\n", k.Name, k.Quadrant, cell.Replace(k.Text), ways, cell.Replace(k.Needs))
	}
	return b.String() + "\n"
}

// TestExample: the example of the document is sound.
func TestExample(t *testing.T) {
	raw, err := os.ReadFile("../docs/catalog.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(raw), "```yaml\nid: price-reload")
	text, _, _ := strings.Cut(rest, "```")
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/price-reload.yaml", []byte("id: price-reload"+text), 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := Check(dir); err != nil || r.Files != 1 || len(r.Problems)+len(r.Notes) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}
