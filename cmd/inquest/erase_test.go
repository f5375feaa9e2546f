package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"inquest/api/apitype"
)

// Without any consent there are no payloads, but dead letters hold inputs: they
// are erased by user, and the answer tells what remains.
func TestEraseDeadLetters(t *testing.T) {
	dir := t.TempDir()
	s := startServer(t, dir)
	defer func() { s.stop() }()
	defer http.DefaultClient.CloseIdleConnections()
	of := func(user string, broken bool) func(map[string]any) {
		return func(e map[string]any) {
			e["business"].(map[string]any)["user_id"] = user
			if broken {
				delete(e, "trace_id")
			}
		}
	}
	s.events(t,
		eventLine(t, 1, of("ann", true)), eventLine(t, 2, of("bob", true)), eventLine(t, 3, of("ann", false)),
		`{"business":{"user_id":"ann","input":"cut off`+"\n")
	run := func(args ...string) string {
		t.Helper()
		var out bytes.Buffer
		root := newRootCommand()
		root.SetArgs(append(args, "--server", s.api))
		root.SetOut(&out)
		if err := root.Execute(); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	if got := run("deadletters", "redrive", "--all"); !strings.HasPrefix(got, "3 letters tried, 0 done") {
		t.Errorf("redrive: %s", got)
	}
	got := run("payloads", "erase", "--user", "ann")
	if !strings.HasPrefix(got, "0 references removed, 0 payloads of 0 bytes erased, 0 stay for others; 2 dead letters removed.\nRemains: records, 1, until ") || strings.Count(got, "Remains") != 1 {
		t.Errorf("erase: %s", got)
	}
	var out apitype.ErasedPayloads
	if err := json.Unmarshal([]byte(run("payloads", "erase", "--user", "ann", "--output", "json")), &out); err != nil || out.DeadLetters != 0 || len(out.Remains) != 1 || out.Removed == nil {
		t.Errorf("again: %+v, %v", out, err)
	}
	check := func() {
		t.Helper()
		if n := s.count(t, `"deadletter.payload":ann`); n != 0 {
			t.Errorf("%d rows of ann's letters are left", n)
		}
		if got := run("deadletters", "redrive", "--all"); !strings.HasPrefix(got, "1 letters tried, 0 done") {
			t.Errorf("redrive: %s", got)
		}
		if got := run("deadletters", "list", "--output", "json"); strings.Count(got, `"id"`) != 1 || !strings.Contains(got, "bob") {
			t.Errorf("list: %s", got)
		}
	}
	check()
	s.stop()
	s = startServer(t, dir)
	check()
}
