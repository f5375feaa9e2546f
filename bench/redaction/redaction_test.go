// Package redaction_test holds redaction against real logs: what it takes out of
// them should be personal data or secrets, and nothing else.
package redaction_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"

	"inquest/admit/redact"
	"inquest/bench/nezha"
)

// mark is what a redaction puts into a text.
var mark = regexp.MustCompile(`\[redacted:([a-z_]+)\]`)

// around is how much of a text is shown before and after what is taken out.
const around = 40

// tally counts what is taken out, by rule, with some samples.
type tally struct {
	texts, bytes int
	counts       map[string]int
	samples      map[string]map[string]int
}

func (c *tally) add(r *redact.Redactor, text string) {
	c.texts++
	c.bytes += len(text)
	out, redacted := r.Redact([]byte(text))
	if !redacted {
		return
	}
	at := 0 // in text
	marks := mark.FindAllSubmatchIndex(out, -1)
	for i, m := range marks {
		before := string(out[:m[0]])
		if i > 0 {
			before = before[marks[i-1][1]:]
		}
		after := string(out[m[1]:min(len(out), m[1]+around)])
		if i+1 < len(marks) && m[1]+around > marks[i+1][0] {
			after = string(out[m[1]:marks[i+1][0]])
		}
		at += len(before)
		end := len(text)
		if k := strings.Index(text[min(at+1, len(text)):], after); k >= 0 && after != "" {
			end = at + 1 + k
		}
		c.note(string(out[m[2]:m[3]]), before[max(0, len(before)-around):]+"⟦"+text[min(at, end):end]+"⟧"+after)
		at = end
	}
}

func (c *tally) note(rule, sample string) {
	c.counts[rule]++
	if s := c.samples[rule]; s == nil {
		c.samples[rule] = map[string]int{sample: 1}
	} else if len(s) < 2000 {
		s[sample]++
	}
}

func (c *tally) report(t *testing.T, what string, took time.Duration) {
	t.Helper()
	t.Logf("%s: %d texts, %.1f MB in %s: %v", what, c.texts, float64(c.bytes)/1e6, took.Round(time.Millisecond), c.counts)
	for _, rule := range slices.Sorted(maps.Keys(c.samples)) {
		shown := slices.Sorted(maps.Keys(c.samples[rule]))
		for i := 0; i < len(shown); i += len(shown)/shownSamples + 1 {
			t.Logf("  %s: %q", rule, shown[i])
		}
	}
}

// shownSamples is how many of the samples of a rule are shown.
const shownSamples = 20

func newTally() *tally { return &tally{counts: map[string]int{}, samples: map[string]map[string]int{}} }

func TestRealLogs(t *testing.T) {
	if testing.Short() {
		t.Skip("reads real data")
	}
	data := os.Getenv("INQUEST_DATA")
	if data == "" {
		data = filepath.Join("..", "..", "..", "shared", "data")
	}
	dir := filepath.Join(data, "nezha-trainticket")
	if _, err := os.Stat(dir); err != nil {
		t.Skip("no data set: set INQUEST_DATA to the folder that holds nezha-trainticket")
	}
	r, err := redact.New(redact.Config{})
	if err != nil {
		t.Fatal(err)
	}
	c := newTally()
	var took time.Duration
	seen := map[string]bool{}
	err = nezha.Requests(t.Context(), dir, func(_ context.Context, q nezha.Request) error {
		if q.Logs == nil {
			return nil
		}
		begin := time.Now()
		eachText(*q.Logs, func(text string) {
			if !seen[text] {
				seen[text] = true
				c.add(r, text)
			}
		})
		took += time.Since(begin)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	c.report(t, "TrainTicket", took)
	// Their gateway logs the session tokens of its users; there is nothing else to
	// take out.
	if delete(c.counts, "token"); len(c.counts) > 0 {
		t.Errorf("taken out of ordinary logs: %v", c.counts)
	}
}

func eachText(ld plog.Logs, fn func(string)) {
	for _, rl := range ld.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, lr := range sl.LogRecords().All() {
				fn(lr.Body().AsString())
				for name, v := range lr.Attributes().All() {
					fn(fmt.Sprintf("%s=%s", name, v.AsString()))
				}
			}
		}
	}
}

// TestFiles shows what is taken out of the files that are listed, a path a line,
// in the file that INQUEST_TEXTS names.
func TestFiles(t *testing.T) {
	list, err := os.ReadFile(os.Getenv("INQUEST_TEXTS"))
	if err != nil {
		t.Skip("no texts: set INQUEST_TEXTS to a file with a path a line")
	}
	paths := strings.Split(strings.TrimSpace(string(list)), "\n")
	r, err := redact.New(redact.Config{})
	if err != nil {
		t.Fatal(err)
	}
	c := newTally()
	begin := time.Now()
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Log(err)
			continue
		}
		c.add(r, string(data))
	}
	c.report(t, "files", time.Since(begin))
}
