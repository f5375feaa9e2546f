package redact

import (
	"strings"
	"testing"
)

func TestCapture(t *testing.T) {
	off := false
	c, err := NewCapture(CaptureConfig{
		Policies: []Policy{
			{Services: []string{"rag-*"}, MaxSize: 30},
			{Services: []string{"rag-eval", "a/*/z"}, Redact: &off},
			{Services: []string{"chat.api"}},
		},
		Redaction: Config{Rules: []Rule{{Name: "grows", Pattern: "!"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	f := func(c *Capture, service, raw, want string, wantRedacted, wantKeep bool) {
		t.Helper()
		got, redacted, keep := c.Apply(service, []byte(raw))
		if string(got) != want || redacted != wantRedacted || keep != wantKeep {
			t.Errorf("%s: got %q, %v, %v", service, got, redacted, keep)
		}
	}
	f(c, "chat.api", "to ann@example.com", "to [redacted:email]", true, true)
	f(c, "chat.api", "hello", "hello", false, true)
	f(c, "chat.api", "", "", false, true)
	f(c, "chatXapi", "hello", "", false, false)
	f(c, "other", "hello", "", false, false)
	f(c, "", "hello", "", false, false)
	f(c, "rag-search", "to ann@example.com", "to [redacted:email]", true, true)
	f(c, "rag-search", strings.Repeat("x", 30), strings.Repeat("x", 30), false, true)
	f(c, "rag-search", strings.Repeat("x", 31), "", false, false)
	f(c, "rag-search", "!!!", "", false, false) // too large after redaction
	f(c, "rag-eval", "ann@example.com", "ann@example.com", false, true)
	f(c, "a/b/c/z", "ann@example.com", "ann@example.com", false, true)
	f(c, "a/b/c/zz", "hello", "", false, false)
	f(c, "chat.api", strings.Repeat("x", DefaultMaxSize+1), "", false, false)
	f(nil, "chat.api", "hello", "", false, false)
	if !c.Captures("rag-x") || c.Captures("x-rag-") || (*Capture)(nil).Captures("x") {
		t.Error("Captures is wrong")
	}
	none, err := NewCapture(CaptureConfig{})
	if err != nil {
		t.Fatal(err)
	}
	f(none, "chat.api", "hello", "", false, false)

	bad := func(c CaptureConfig, want string) {
		t.Helper()
		if _, err := NewCapture(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	bad(CaptureConfig{Policies: []Policy{{}}}, "names no services")
	bad(CaptureConfig{Policies: []Policy{{Services: []string{""}}}}, "empty service")
	bad(CaptureConfig{Policies: []Policy{{Services: []string{"a"}, MaxSize: -1}}}, "below zero")
	bad(CaptureConfig{Redaction: Config{Off: []string{"x"}}}, "built-in")
}
