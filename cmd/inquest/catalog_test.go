package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"inquest/catalog"
)

const testFault = `id: own-fault
title: Own fault
mechanism: m
at: [service]
refines: [queue-buildup]
expect:
  - {quadrant: metrics, kinds: [preemption], where: self, direction: up, seen: 0.9, essential: true, text: "it preempts"}
  - {quadrant: traces, kinds: [self_time], where: self, direction: up, seen: 0.6, text: "it is slow"}
remedy: r
check: c
`

func ownFolder(t *testing.T, text string) (folder, file string) {
	t.Helper()
	folder = t.TempDir()
	file = filepath.Join(folder, "own-fault.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return folder, file
}

func runCatalog(args ...string) (string, error) {
	var out bytes.Buffer
	root := newRootCommand()
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(&out)
	err := root.Execute()
	return out.String(), err
}

func TestCatalogCommands(t *testing.T) {
	folder, file := ownFolder(t, testFault)
	f := func(want string, args ...string) string {
		t.Helper()
		out, err := runCatalog(append([]string{"catalog"}, args...)...)
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("catalog %q: error %v, output lacks %q:\n%s", args, err, want, out)
		}
		return out
	}
	f("the built-in faults: 0 problems, 0 notes", "lint")
	f("1 files and the built-in faults: 0 problems, 0 notes", "lint", folder)
	f("1 files and the built-in faults: 0 problems, 0 notes", "lint", file)
	f("queue-buildup", "list")
	f("own-fault", "list", "--catalog", folder)
	f("id: own-fault\n", "show", "own-fault", "--catalog", folder)
	f("Own fault ("+file+")", "show", "own-fault", "--catalog", folder, "-o", "text")
	f("metrics: preemption rises or appears", "explain", "own-fault", "--catalog", folder)
	f(`"essential": [`, "explain", "own-fault", "--catalog", folder, "-o", "json")
	f("self_time", "kinds")
	f("https://inquest.dev/schema/fault/1.0", "schema")
	var fault catalog.Fault
	if err := json.Unmarshal([]byte(f("", "show", "queue-buildup", "-o", "json")), &fault); err != nil || fault.ID != "queue-buildup" || len(fault.Expect) == 0 {
		t.Errorf("%+v: %v", fault, err)
	}
	if out, err := runCatalog("catalog", "show", "queue-buildup", "-o", "xml"); err == nil {
		t.Error(out)
	}
	if out, err := runCatalog("catalog", "explain", "queue-buildupp"); err == nil || !strings.Contains(err.Error(), "did you mean queue-buildup?") {
		t.Error(out, err)
	}
}

func TestCatalogLintFails(t *testing.T) {
	folder, file := ownFolder(t, strings.Replace(strings.Replace(testFault, "self_time", "self_tme", 1), "seen: 0.9", "seen: 9", 1))
	out, err := runCatalog("catalog", "lint", folder)
	var exit *exitError
	if !errors.As(err, &exit) || exit.code != 1 {
		t.Errorf("error %v", err)
	}
	for _, want := range []string{
		file + ":7: expect 1: seen 9 is not between 0 and 1", file + ":8: expect 2: no sensor makes findings of kind \"self_tme\": did you mean self_time?",
		"2 problems",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q lacks %q", out, want)
		}
	}
	for _, args := range [][]string{{"bench", "lab", "--case", "none", "--catalog", folder}, {"bench", "nezha", folder, "--catalog", folder}} {
		if _, err := runCatalog(args...); err == nil || !strings.Contains(err.Error(), file+":7:") {
			t.Errorf("%q: %v", args, err)
		}
	}
}

// TestServeReadsFaults: a sound folder is taken, one with a faulty file stops the start.
func TestServeReadsFaults(t *testing.T) {
	folder, _ := ownFolder(t, testFault)
	startServer(t, t.TempDir(), "extensions::inquest::catalog=["+folder+"]").stop()
	startServer(t, t.TempDir(), "extensions::inquest::catalog="+folder).stop()

	folder, file := ownFolder(t, strings.Replace(testFault, "remedy: r\n", "", 1))
	col, err := newCollector(serveOptions{data: t.TempDir(), sets: []string{"extensions::inquest::catalog=[" + folder + "]"}})
	if err != nil {
		t.Fatal(err)
	}
	err = col.Run(context.Background())
	for _, want := range []string{file + ":1: remedy is empty", "inquest catalog lint " + folder} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v lacks %q", err, want)
		}
	}
}
