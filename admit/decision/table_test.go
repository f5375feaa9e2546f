package decision

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParseTable(t *testing.T) {
	f := func(text, wantErr string) {
		t.Helper()
		_, err := ParseTable([]byte(text))
		if wantErr == "" && err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if wantErr != "" && (err == nil || !strings.Contains(err.Error(), wantErr)) {
			t.Errorf("%q: error %v, want one with %q", text, err, wantErr)
		}
	}
	f("version: 1", "")
	f("", "version")
	f("version: 2", "version")
	f("version: 1\nother: 1", "other")
	f("version: 1\npatterns: [{id: a, type: retry, words: [[x]], match: x}]", "")
	f("version: 1\npatterns: [{id: a, type: retry, words: [[x]], match: x}, {id: a, type: retry, words: [[x]], match: x}]", "twice")
	f("version: 1\npatterns: [{type: retry, words: [[x]], match: x}]", "id")
	f("version: 1\npatterns: [{id: a, type: guess, words: [[x]], match: x}]", "guess")
	f("version: 1\npatterns: [{id: a, type: retry, match: x}]", "words")
	f("version: 1\npatterns: [{id: a, type: retry, words: [['']], match: x}]", "words")
	f("version: 1\npatterns: [{id: a, type: retry, words: [[x]], match: '('}]", "missing closing")
	f("version: 1\npatterns: [{id: a, type: retry, words: [[x]], match: 'x*'}]", "anything")
	f("version: 1\npatterns: [{id: a, type: retry, words: [[x]], match: x, unless: '['}]", "missing closing")
	f("version: 1\npatterns: [{id: a, type: retry, words: [[x]], match: '"+strings.Repeat("x", 5000)+"'}]", "bytes")
	f("version: 1\nattributes: [{id: a, type: retry, names: [x], above: 0}]", "")
	f("version: 1\nattributes: [{id: a, type: retry, names: [x]}]", "values or above")
	f("version: 1\nattributes: [{id: a, type: retry, above: 0}]", "names")
	f("version: 1\nattributes: [{id: a, is: colour, names: [x]}]", "colour")
	f("version: 1\nattributes: [{id: a, type: cache, names: [x], values: {HIT: hit}}]", "lower case")
	f("version: 1\nspans: [{id: a, type: cache}]", "all")
	f(strings.Repeat("#", 1<<20+1), "at most")
}

func TestLoadTable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "own.yaml")
	own := `version: 1
disable: [cache-hit, a-cache, s-cache]
patterns:
  - id: own-queue
    type: switch
    words: [[überlauf, overflow]]
    match: '(?i)overflow to (?P<to>\S+)|Überlauf nach (?P<to>\S+)'
  - {id: cache-miss, type: cache, words: [["no luck"]], match: 'no luck', reason: miss}
spans:
  - {id: own-span, type: degrade, all: [lite]}
`
	if err := os.WriteFile(file, []byte(own), 0o600); err != nil {
		t.Fatal(err)
	}
	table, err := LoadTable(file)
	if err != nil {
		t.Fatal(err)
	}
	r, err := New(table)
	if err != nil {
		t.Fatal(err)
	}
	if ids := r.PatternIDs(); ids[0] != "own-queue" {
		t.Errorf("patterns in the order %v", ids)
	}
	f := func(body string, want Type) {
		t.Helper()
		if d, _ := r.Body(body); d.Type != want {
			t.Errorf("%q: got %q, want %q", body, d.Type, want)
		}
	}
	f("overflow to spare", Switch)
	f("no luck", Cache)
	f("cache miss", "")
	f("cache hit", "")
	f("falling back to CPU", Fallback)
	if k, _ := r.Span("answer.lite"); k != Degrade {
		t.Errorf("span: %q", k)
	}
	if _, ok := r.Span("cache.get"); ok {
		t.Error("a disabled span rule counts")
	}
	if _, err := LoadTable(filepath.Join(t.TempDir(), "none.yaml")); err == nil {
		t.Error("a missing file is no error")
	}
}

func TestWordLimit(t *testing.T) {
	var words []string
	for i := range maxWords + 1 {
		words = append(words, strings.Repeat("a", i+1))
	}
	table := &Table{Version: 1, Patterns: []Pattern{{ID: "a", Type: Retry, Words: [][]string{words}, Match: "x"}}}
	if _, err := New(table); err == nil || !strings.Contains(err.Error(), "words") {
		t.Errorf("error %v", err)
	}
}
