package explain

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"inquest/catalog"
)

func TestEachFault(t *testing.T) {
	c, err := catalog.Default()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range c.Faults {
		x, err := Fault(c, f.ID)
		if err != nil {
			t.Fatal(err)
		}
		if len(x.Essential)+len(x.For)+len(x.Against) != len(f.Expect) || len(x.Needs) == 0 {
			t.Errorf("%s: %d + %d + %d pieces of %d, %d needs", f.ID, len(x.Essential), len(x.For), len(x.Against), len(f.Expect), len(x.Needs))
		}
		for _, e := range slices.Concat(x.Essential, x.For) {
			if e.Shown <= 1 || e.Strongly < e.Shown || e.Missing >= 1 {
				t.Errorf("%s: %s has the factors %g, %g, %g", f.ID, e.Text, e.Shown, e.Strongly, e.Missing)
			}
		}
		for _, e := range x.Against {
			if e.Shown >= 1 || e.Missing != 1 {
				t.Errorf("%s: %s must be absent and has the factors %g, %g", f.ID, e.Text, e.Shown, e.Missing)
			}
		}
		var out bytes.Buffer
		if err := x.WriteText(&out); err != nil {
			t.Fatal(err)
		}
		for _, e := range f.Expect {
			if !strings.Contains(strings.Join(strings.Fields(out.String()), " "), strings.Join(strings.Fields(e.Text), " ")) {
				t.Errorf("%s: the text lacks %q", f.ID, e.Text)
			}
		}
		for i, line := range strings.Split(out.String(), "\n") {
			if strings.Contains(line, "%!") || strings.TrimRight(line, " ") != line {
				t.Errorf("%s: line %d: %q", f.ID, i+1, line)
			}
		}
	}
}

func TestWords(t *testing.T) {
	c, err := catalog.Default()
	if err != nil {
		t.Fatal(err)
	}
	x, err := Fault(c, "kv-preemption-storm")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := x.WriteText(&out); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		"What must be there", "metrics: preemption rises or appears at the entity", "where it is missing, a factor of",
		"It is a kind of queue-buildup", "queue-buildup (Queue builds up), which it refines", "What proves the repair",
		"preemption (essential): Metric series whose names have `preempt*`",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q:\n%s", want, out.String())
		}
	}
	if x, err := Fault(c, "queue-buildup"); err != nil || !slices.Contains(x.RefinedBy, "kv-preemption-storm") {
		t.Errorf("%v %v", x.RefinedBy, err)
	}
	if _, err := Fault(c, "queue-buildups"); err == nil || !strings.Contains(err.Error(), "did you mean queue-buildup?") {
		t.Error(err)
	}
}

func TestFactor(t *testing.T) {
	f := func(v float64, want string) {
		t.Helper()
		if got := Factor(v); got != want {
			t.Errorf("%g: %q, want %q", v, got, want)
		}
	}
	f(47.6, "48 times")
	f(3.46, "3.5 times")
	f(1, "nothing")
	f(0.28, "a factor of 0.28")
	f(0.02, "a factor of 1/50")
}
