package sensor

import (
	"os"
	"regexp"
	"slices"
	"testing"
)

// TestClasses reads the constants from the source, so that a new one is not left out.
func TestClasses(t *testing.T) {
	text, err := os.ReadFile("class.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, m := range regexp.MustCompile(`(?m)^\s+Class\w+\s+Class = "(\w+)"`).FindAllSubmatch(text, -1) {
		c := Class(m[1])
		if !c.Measured() {
			continue
		}
		found++
		if c.Text() == "" || !slices.Contains(Classes(), c) {
			t.Errorf("class %s is not in classTexts (classes.go): say there what it measures", c)
		}
	}
	if found != len(Classes()) || found < 40 {
		t.Errorf("%d classes in class.go, %d in classTexts", found, len(Classes()))
	}
	if w := ClassOOM.Words(); !slices.Equal(w, []string{"oom*", "ray memory eviction"}) {
		t.Errorf("words of %s: %q", ClassOOM, w)
	}
}
