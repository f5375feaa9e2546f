package recorder

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"

	"inquest/admit"
	"inquest/admit/event/eventtest"
	"inquest/record"
	"inquest/schema"
)

// brokenEvents are events without a trace id, of the users in turn, with inputs
// that can be found again.
func brokenEvents(t *testing.T, n int, users ...string) plog.Logs {
	t.Helper()
	ld := plog.NewLogs()
	lrs := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
	for i := range n {
		e := eventtest.Good(rand.New(rand.NewPCG(9, uint64(i))), i).Members
		e["timestamp"] = time.Now().UTC().Format(time.RFC3339Nano)
		delete(e, "trace_id")
		user := users[i%len(users)]
		business := e["business"].(map[string]any)
		business["user_id"], business["input"] = user, "secret-of-"+user
		if i/len(users) == 0 { // large ones are in parts, the user behind the first
			e["filler"] = strings.Repeat("é", maxText)
			business["input"] = strings.Repeat("x", maxText) + "secret-of-" + user
		}
		body, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		lrs.AppendEmpty().Body().SetStr(string(body))
	}
	return ld
}

// holds tells whether a file below dir holds the text, plain or compressed.
func holds(t *testing.T, dir, text string) bool {
	t.Helper()
	found := false
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		found = found || bytes.Contains(data, []byte(text))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// An erasure takes the user's dead letters, open or done, from the store and the
// journal, and no others. They do not come back.
func TestEraseUser(t *testing.T) {
	dir := t.TempDir()
	start := func() *Recorder {
		t.Helper()
		parts := openParts(t, dir)
		parts.Policy = validator(t, schema.AIEvent())
		r, err := New(parts)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := start()
	if err := r.Logs(t.Context(), brokenEvents(t, 12, "ann", "bob", "eve")); err != nil {
		t.Fatal(err)
	}
	if err := r.Logs(t.Context(), inputEvents(t, "one")); err != nil {
		t.Fatal(err)
	}
	caughtUp(t, r)
	if n := countRows(t, r, `{record.type="deadletter"} "deadletter.id":*`); n != 12 {
		t.Fatalf("%d letters, want 12", n)
	}
	if n := countRows(t, r, `{record.type="deadletter_part"}`); n == 0 {
		t.Fatal("no letter has parts")
	}
	// A letter that is done is erased too.
	if n, err := r.Discard(t.Context(), admit.LetterFilter{IDs: []string{"1-3"}}, "a test"); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	began := time.Now()
	out, err := r.EraseUser(t.Context(), "ann")
	if err != nil || out.Letters != 4 {
		t.Fatalf("got %+v, %v", out, err)
	}
	if len(out.Remains) != 0 {
		t.Errorf("there remains %+v", out.Remains)
	}
	t.Logf("erased in %s", time.Since(began))
	check := func() {
		t.Helper()
		for _, q := range []string{`{record.type="deadletter"}`, `{record.type="deadletter_part"}`} {
			if n := countRows(t, r, q+` "deadletter.payload":*ann*`); n != 0 {
				t.Errorf("%d rows of ann are left", n)
			}
		}
		if n := countRows(t, r, `{record.type="deadletter"} "deadletter.id":*`); n != 8 {
			t.Errorf("%d letters of others, want 8", n)
		}
		for id, l := range letters(t, r) {
			if id == "" { // what the store leaves of a row that was the first of its block
				if l[record.FieldLetterPayload] != "" {
					t.Errorf("left of a letter: %v", l)
				}
				continue
			}
			whole, err := r.wholeLetter(t.Context(), id, 9)
			if err != nil || !admit.NewUserFilter("bob").Match(whole) && !admit.NewUserFilter("eve").Match(whole) {
				t.Errorf("letter %s is nobody's: %v", id, err)
			}
		}
		if n := countRows(t, r, `{record.type="log"}`); n != 1 {
			t.Errorf("%d events, want 1", n)
		}
		open := 0
		if err := r.eachLetter(t.Context(), admit.LetterFilter{}, func(storedLetter) error { open++; return nil }); err != nil || open != 8 {
			t.Errorf("%d open letters, %v; want 8", open, err)
		}
	}
	check()
	if n := entriesWith(t, r, "secret-of-ann"); n != 0 {
		t.Errorf("%d journal entries hold ann's input", n)
	}
	if out, err := r.EraseUser(t.Context(), "ann"); err != nil || out.Letters != 0 {
		t.Errorf("again: %+v, %v", out, err)
	}
	closeRecorder(t, r)
	if holds(t, filepath.Join(dir, "journal"), "secret-of-ann") {
		t.Error("a file of the journal holds ann's input")
	}
	r = start()
	defer closeRecorder(t, r)
	check()
}

// entriesWith counts the journal's entries that hold a text.
func entriesWith(t *testing.T, r *Recorder, text string) int {
	t.Helper()
	last := r.opts.Journal.Stats().Last
	rd, err := r.opts.Journal.Read(1)
	if err != nil {
		t.Fatal(err)
	}
	defer rd.Close()
	n := 0
	for r.opts.Journal.Stats().First <= last {
		e, err := rd.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(e.Payload, []byte(text)) {
			n++
		}
		if e.Seq >= last {
			break
		}
	}
	return n
}

// What remains is told, and a user whom nobody knows is no error.
func TestEraseUserRemains(t *testing.T) {
	dir := t.TempDir()
	parts := openParts(t, dir)
	parts.Policy = validator(t, schema.AIEvent())
	r, err := New(parts)
	if err != nil {
		t.Fatal(err)
	}
	defer closeRecorder(t, r)
	if _, err := r.EraseUser(t.Context(), ""); err == nil {
		t.Error("erased nobody")
	}
	if out, err := r.EraseUser(t.Context(), "nobody"); err != nil || out.Letters != 0 || len(out.Remains) != 0 {
		t.Errorf("got %+v, %v", out, err)
	}
	ld := inputEvents(t, "one")
	lr := ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0)
	var e map[string]any
	if err := json.Unmarshal([]byte(lr.Body().Str()), &e); err != nil {
		t.Fatal(err)
	}
	user := fmt.Sprint(e["business"].(map[string]any)["user_id"])
	if err := r.Logs(t.Context(), ld); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, setAsidePrefix+"7-kind-1.pb"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := r.EraseUser(t.Context(), user)
	if err != nil || len(out.Remains) != 2 || out.Remains[0].What != "records" || out.Remains[0].Count != 1 || out.Remains[1].What != "set_aside" || out.Remains[1].Count != 1 {
		t.Fatalf("got %+v, %v", out, err)
	}
	if until := time.Until(out.Remains[0].Until); until < 29*24*time.Hour || until > 31*24*time.Hour {
		t.Errorf("records remain until %s", out.Remains[0].Until)
	}
	if countRows(t, r, `{record.type="log"} "ai.business.input":*`) != 0 {
		t.Error("a record holds its input")
	}
}

// A crash at any time after the letters were erased does not bring them back.
func TestEraseSurvivesCrash(t *testing.T) {
	dir := t.TempDir()
	parts := openParts(t, dir)
	parts.Policy = validator(t, schema.AIEvent())
	r, err := New(parts)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Logs(t.Context(), brokenEvents(t, 4, "ann", "bob")); err != nil {
		t.Fatal(err)
	}
	if _, err := r.EraseUser(t.Context(), "ann"); err != nil {
		t.Fatal(err)
	}
	if err := r.Logs(t.Context(), brokenEvents(t, 2, "bob")); err != nil {
		t.Fatal(err)
	}
	// What a crash leaves: a copy of the folder as it is now.
	crashed := t.TempDir()
	if err := os.CopyFS(crashed, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	closeRecorder(t, r)
	r = open(t, crashed)
	defer closeRecorder(t, r)
	if n := countRows(t, r, `{record.type="deadletter"} "deadletter.id":*`); n != 4 {
		t.Errorf("%d letters, want bob's 4", n)
	}
	if ids, err := r.lettersOfUser(t.Context(), "ann"); err != nil || len(ids) != 0 {
		t.Errorf("ann has letters %v, %v", ids, err)
	}
}
