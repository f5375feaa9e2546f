package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"inquest/admit/event/eventtest"
)

// eventLine is the i-th good event, changed by edit, as a line of JSON.
func eventLine(t *testing.T, i int, edit func(map[string]any)) string {
	t.Helper()
	e := eventtest.Good(rand.New(rand.NewPCG(1, uint64(i))), i).Members
	e["timestamp"] = time.Now().UTC().Format(time.RFC3339Nano)
	edit(e)
	line, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return string(line) + "\n"
}

func (s *testServer) events(t *testing.T, lines ...string) {
	t.Helper()
	if status, answer := s.post(t, "/v1/events", "application/x-ndjson", "", []byte(strings.Join(lines, ""))); status != http.StatusOK {
		t.Errorf("answered %d %s", status, answer)
	}
}

// Events go in as lines, what is wrong becomes a dead letter that is told to a
// webhook, and is stored once the schema is mended.
func TestEventsAndDeadLetters(t *testing.T) {
	var mu sync.Mutex
	var told []string
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		told = append(told, string(body))
	}))
	defer hook.Close()
	dir := t.TempDir()
	capture := `extensions::inquest::payloads={policies: [{services: ["chat-*"]}]}`
	s := startServer(t, dir, capture, `extensions::inquest::alerts={hooks: [{name: test, kind: generic, url: "`+hook.URL+`"}]}`)
	keep := func(map[string]any) {}
	input := func(text, hash string) func(map[string]any) {
		return func(e map[string]any) {
			e["service"] = "chat-api"
			e["business"].(map[string]any)["input"] = text
			e["business"].(map[string]any)["input_hash"] = hash
		}
	}
	s.events(
		t, eventLine(t, 1, keep),
		eventLine(t, 2, func(e map[string]any) { delete(e, "trace_id") }),
		"{\"cut\":\n",
		"{\"foo\": 1}\n",
		eventLine(t, 3, input("mail me at ann@example.org", "c08d0f4a7b8b1c1b1a2ed4a5e3b5c5f3f4d0a7a3c6bb1b2f1b5a6c7d8e9f0a1b")),
		eventLine(t, 4, input("hello", "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824")),
	)
	f := func(filter string, want int) {
		t.Helper()
		if got := s.count(t, filter); got != want {
			t.Errorf("%s: %d, want %d", filter, got, want)
		}
	}
	f(`{record.type="log"}`, 2)
	f(`{record.type="log"} "request.id":="r-00000001" "ai.system.device":="cuda:0"`, 1)
	f(`{record.type="log"} "payload.sha256":="2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824" "input.size":=5 "ai.business.input":""`, 1)
	ask := func(args ...string) string {
		t.Helper()
		var out bytes.Buffer
		root := newRootCommand()
		root.SetArgs(append(args, "--server", s.api))
		root.SetOut(&out)
		if err := root.Execute(); err != nil {
			t.Errorf("%v: %v", args, err)
		}
		return out.String()
	}
	const hello = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
	if got := ask("payloads", "get", hello); got != "hello" {
		t.Errorf("payload is %q", got)
	}
	user := eventtest.Good(rand.New(rand.NewPCG(1, 4)), 4).Members["business"].(map[string]any)["user_id"].(string)
	if got := ask("payloads", "erase", "--user", user); !strings.HasPrefix(got, "1 references removed, 1 payloads of 5 bytes erased") {
		t.Errorf("erase: %s", got)
	}
	f(`{record.type="deadletter"} "deadletter.source":=jsonl`, 4)
	f(`{record.type="deadletter"} "deadletter.reason":="schema.json"`, 1)
	f(`{record.type="deadletter"} "deadletter.reason":="hash.mismatch"`, 1)
	f(`{record.type="deadletter"} "deadletter.reason":="schema.required"`, 2)
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		mu.Lock()
		n, all := len(told), strings.Join(told, "\n")
		mu.Unlock()
		if n >= 3 && strings.Contains(all, "hash.mismatch") {
			break
		}
		if time.Now().After(deadline) {
			t.Errorf("the webhook was told %d times: %s", n, all)
			break
		}
	}
	s.stop()

	schemaFile := filepath.Join(t.TempDir(), "schema.json")
	if err := os.WriteFile(schemaFile, []byte(`{"type": "object"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	s = startServer(t, dir, capture, "extensions::inquest::events::schema="+schemaFile)
	defer s.stop()
	defer http.DefaultClient.CloseIdleConnections()
	run := func(args ...string) string {
		t.Helper()
		var out bytes.Buffer
		root := newRootCommand()
		root.SetArgs(append(append([]string{"deadletters"}, args...), "--server", s.api))
		root.SetOut(&out)
		if err := root.Execute(); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	if got := run("redrive", "--all"); !strings.HasPrefix(got, "4 letters tried, 2 done, 2 records stored.") {
		t.Errorf("redrive: %s", got)
	}
	f(`{record.type="log"}`, 4)
	if got := run("discard", "--all", "--why", "they cannot be mended"); got != "2 letters discarded.\n" {
		t.Errorf("discard: %s", got)
	}
	if got := run("count"); got != "There are no open dead letters.\n" {
		t.Errorf("count: %s", got)
	}
	f(`{record.type="log"}`, 4)
}

// A model behind a link that points elsewhere, and a file that changed after the
// load, are told on the records and as findings.
func TestTruthCheck(t *testing.T) {
	models := t.TempDir()
	for _, v := range []string{"v1", "v2"} {
		if err := os.MkdirAll(filepath.Join(models, v), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(models, v, "model.bin"), []byte("weights of "+v), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"linked": "v2", "changed": "v1"} {
		if err := os.Symlink(to, filepath.Join(models, name)); err != nil {
			t.Fatal(err)
		}
	}
	s := startServer(t, t.TempDir(), fmt.Sprintf(
		`extensions::inquest::truth_check={interval: 1s, services: [{name: ranker, version: v1, path: %q}, {name: embedder, version: v1, path: %q}]}`,
		filepath.Join(models, "linked"), filepath.Join(models, "changed")))
	defer s.stop()
	defer http.DefaultClient.CloseIdleConnections()
	n := 0
	event := func(service, kind string) string {
		n++
		return eventLine(t, n, func(e map[string]any) {
			e["service"], e["event"] = service, kind
			e["system"].(map[string]any)["model_version"] = "v1"
			delete(e, "model_load")
		})
	}
	until := func(filter string, again func()) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); s.count(t, filter) == 0; time.Sleep(200 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("nothing is stored for %s; there is %s", filter, s.some(t))
			}
			if again != nil {
				again()
			}
		}
	}
	until(`{record.type="log"} "service.name":=ranker validated:=false "validated.reason":="path.symlink"`, func() { s.events(t, event("ranker", "inference")) })
	until(`{record.type="finding"} "finding.kind":="path_symlink"`, nil)

	until(`{record.type="log"} "service.name":=embedder validated:=true`, func() { s.events(t, event("embedder", "model_load")) })
	if err := os.WriteFile(filepath.Join(models, "v1", "model.bin"), []byte("other weights"), 0o600); err != nil {
		t.Fatal(err)
	}
	until(`{record.type="finding"} "finding.kind":="file_changed"`, nil)
	until(`{record.type="log"} "service.name":=embedder validated:=false "validated.reason":="file.changed"`, func() { s.events(t, event("embedder", "inference")) })

	// An inquest takes it as evidence.
	var out bytes.Buffer
	root := newRootCommand()
	root.SetArgs([]string{"investigate", "--from", "2m", "--output", "json", "--server", s.api})
	root.SetOut(&out)
	root.SetErr(io.Discard)
	_ = root.Execute() // its status tells what was found
	for _, want := range []string{`"wrong-model-version"`, `"path_symlink"`, `"file_changed"`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s is not in the verdict:\n%s", want, out.String())
		}
	}
}

// some returns a few of the records that are stored, for a failure's message.
func (s *testServer) some(t *testing.T) string {
	t.Helper()
	var out bytes.Buffer
	root := newRootCommand()
	root.SetArgs([]string{"logs", "* | fields record.type, service.name, validated, validated.reason, validated.detail, finding.kind, _msg", "--limit", "5", "--server", s.api, "--from", "", "--output", "json"})
	root.SetOut(&out)
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
