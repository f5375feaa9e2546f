package main

import (
	"bytes"
	"strings"
	"testing"

	"inquest/catalog"
	"inquest/lab/fault"
)

func TestLabList(t *testing.T) {
	known, err := catalog.Default()
	if err != nil {
		t.Fatal(err)
	}
	out := &bytes.Buffer{}
	cmd := newLabCommand()
	cmd.SetOut(out)
	cmd.SetArgs([]string{"list"})
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	for _, f := range fault.All() {
		if n := strings.Count(out.String(), f.ID+"/"); n < 3 {
			t.Errorf("%s has %d variants in the list, want three or more", f.ID, n)
		}
		if _, ok := known.Get(f.ID); !ok {
			t.Errorf("the laboratory makes %s, which the catalogue does not know", f.ID)
		}
	}
}

func TestLabRun(t *testing.T) {
	out := &bytes.Buffer{}
	cmd := newLabCommand()
	cmd.SetOut(out)
	cmd.SetArgs([]string{"run", "cpu-fallback/embedder", "--seed", "7"})
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"silent fall-back to CPU at service embedder", "True of cpu-fallback/embedder with seed 7"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
	cmd = newLabCommand()
	cmd.SetOut(out)
	cmd.SetErr(out)
	cmd.SetArgs([]string{"run", "cpu-falback"})
	if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), "inquest lab list") {
		t.Errorf("an unknown name gave %v", err)
	}
}
