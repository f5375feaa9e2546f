package decision

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"inquest/record"
)

func FuzzBody(f *testing.F) {
	for _, s := range []string{
		"retrying in 3s (attempt 2/5) after timeout", "降级到规则模型，原因：超时", "cache miss", "falling back to CPU",
		"switching from model a to b", "未触发降级", "\xff cache \xffmiss", `{"cache_hit":false}`, "fallback: a -> b",
	} {
		f.Add(s, "cache.hit", "true")
	}
	r := builtinRecogniser(f)
	f.Fuzz(func(t *testing.T, body, name, value string) {
		d, ok := r.Recognise(body, []record.Field{{Name: name, Value: value}})
		if ok != (d.Type != "") || ok && !slices.Contains(Types, d.Type) {
			t.Errorf("%+v, %v", d, ok)
		}
		if len(d.Reason) > maxReason+16 || len(d.From) > maxObject || len(d.To) > maxObject {
			t.Errorf("too long: %+v", d)
		}
		if utf8.ValidString(body) && utf8.ValidString(value) && !utf8.ValidString(d.Reason+d.From+d.To) {
			t.Errorf("broken characters: %+v", d)
		}
		if again, _ := r.Recognise(body, []record.Field{{Name: name, Value: value}}); again != d {
			t.Errorf("first %+v, then %+v", d, again)
		}
		r.Span(body)
	})
}

// FuzzScanner holds the automaton against plain search.
func FuzzScanner(f *testing.F) {
	f.Add("ab,b,abc", "xABCx")
	f.Add("缓存,存", "缓存")
	f.Fuzz(func(t *testing.T, list, text string) {
		words := strings.Split(list, ",")
		if len(words) > maxWords || strings.Contains(","+list+",", ",,") {
			return
		}
		lower := func(s string) string {
			b := []byte(s)
			for i, c := range b {
				if 'A' <= c && c <= 'Z' {
					b[i] = c + 'a' - 'A'
				}
			}
			return string(b)
		}
		for i := range words {
			words[i] = lower(words[i])
		}
		s, err := newScanner(words)
		if err != nil {
			return
		}
		found, _ := s.scan(text)
		var want wordSet
		for i, w := range words {
			if strings.Contains(lower(text), w) {
				want.add(i)
			}
		}
		if found != want {
			t.Errorf("%q in %q: %v, want %v", words, text, found, want)
		}
	})
}

// A text that has all words of a pattern gets past the prefilter.
func FuzzPrefilter(f *testing.F) {
	r := builtinRecogniser(f)
	for i := range r.patterns {
		text := ""
		for _, group := range r.patterns[i].Words {
			text += " - " + strings.ToUpper(group[len(group)-1])
		}
		f.Add(text)
	}
	f.Add("retr")
	f.Fuzz(func(t *testing.T, text string) {
		found, _ := r.scanner.scan(text)
		for i := range r.patterns {
			if r.patterns[i].has(&found) && !r.quick.maybe(text) {
				t.Errorf("%q does not get to pattern %s", text, r.patterns[i].ID)
			}
		}
	})
}

const ordinary = `INFO 10-01 10:00:00 [async_llm.py:270] Added request chatcmpl-7f3a9c. prompt tokens 1532, max tokens 512, temperature 0.7, arrived 3 ms ago`

// raceDetector is set in builds with it.
var raceDetector bool

func TestNoAllocation(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	r := builtinRecogniser(t)
	attrs := []record.Field{{Name: "service.name", Value: "chat"}, {Name: "http.route", Value: "/v1/chat"}, {Name: "cache.size", Value: "17"}}
	for _, body := range []string{ordinary, "GPU KV cache usage: 4.2%, Prefix cache hit rate: 55.1%"} {
		if n := testing.AllocsPerRun(100, func() { r.Recognise(body, attrs) }); n != 0 {
			t.Errorf("%q costs %v allocations", body, n)
		}
	}
}

func BenchmarkBody(b *testing.B) {
	r := builtinRecogniser(b)
	for name, body := range map[string]string{
		"ordinary": ordinary,
		"nearby":   "INFO 10-01 10:00:00 [loggers.py:118] Engine 000: Running: 3 reqs, Waiting: 0 reqs, GPU KV cache usage: 4.2%, Prefix cache hit rate: 55.1%",
		"decision": "retrying in 3s (attempt 2/5) after timeout",
		"chinese":  "降级到规则模型，原因：超时",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				r.Body(body)
			}
		})
	}
}

// TestRealLogs reads the logs of a real system that takes no such decision.
func TestRealLogs(t *testing.T) {
	data := os.Getenv("INQUEST_DATA")
	if data == "" {
		data = filepath.Join("..", "..", "..", "shared", "data")
	}
	files, _ := filepath.Glob(filepath.Join(data, "nezha-trainticket", "rca_data", "*", "log", "*"))
	if len(files) == 0 {
		t.Skip("no data set: set INQUEST_DATA to the folder that holds nezha-trainticket")
	}
	r := builtinRecogniser(t)
	lines := 0
	for _, file := range files[:min(3, len(files))] {
		in, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		for s := bufio.NewScanner(in); s.Scan(); lines++ {
			if d, ok := r.Body(s.Text()); ok {
				t.Errorf("%s is taken for %+v", s.Text(), d)
			}
		}
		in.Close()
	}
	if lines == 0 {
		t.Error("no lines")
	}
	t.Logf("%d lines", lines)
}
