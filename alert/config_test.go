package alert

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestValidate(t *testing.T) {
	const u = "https://example.test/send?key=abcdef0123456789"
	f := func(h Hook, want string) {
		t.Helper()
		err := (&Config{Hooks: []Hook{h}}).Validate()
		switch {
		case want == "" && err != nil:
			t.Errorf("unexpected error: %v", err)
		case want != "" && err == nil:
			t.Errorf("no error, want %q", want)
		case want != "" && !strings.Contains(err.Error(), want):
			t.Errorf("error %q, want %q", err, want)
		case err != nil && strings.Contains(err.Error(), "abcdef0123456789"):
			t.Errorf("the error shows the secret: %v", err)
		}
	}
	f(Hook{Name: "a", Kind: KindGeneric, URL: u}, "")
	f(Hook{Name: "a", Kind: KindWeCom, URL: u}, "")
	f(Hook{Name: "a", Kind: KindPagerDuty, Secret: "k"}, "")
	f(Hook{Name: "a", Kind: KindGeneric, URL: "http://127.0.0.1:1/x"}, "")
	f(Hook{Name: "a", Kind: KindGeneric, URL: "http://example.test/abcdef0123456789"}, "plain_http: true")
	f(Hook{Name: "a", Kind: KindGeneric, URL: "http://example.test/x", PlainHTTP: true}, "")
	f(Hook{Kind: KindGeneric, URL: u}, "hook 1: it has no name")
	f(Hook{Name: "a\nb", Kind: KindGeneric, URL: u}, "not one line")
	f(Hook{Name: "a", Kind: "teams", URL: u}, `kind "teams" is unknown: use generic,`)
	f(Hook{Name: "a", Kind: KindGeneric}, "has no url")
	f(Hook{Name: "a", Kind: KindGeneric, URL: "https://[abcdef0123456789"}, "cannot be parsed")
	f(Hook{Name: "a", Kind: KindGeneric, URL: "abcdef0123456789"}, "https://host/path")
	f(Hook{Name: "a", Kind: KindGeneric, URL: u + "#x"}, "behind #")
	f(Hook{Name: "a", Kind: KindWeCom, URL: u, Secret: "s"}, "remove secret")
	f(Hook{Name: "a", Kind: KindSlack, URL: u, Secret: "s"}, "remove secret")
	f(Hook{Name: "a", Kind: KindPagerDuty}, "set secret")
	f(Hook{Name: "a", Kind: KindGeneric, URL: u, MinInterval: time.Millisecond}, "min_interval is 1ms: set it between")
	f(Hook{Name: "a", Kind: KindGeneric, URL: u, MinInterval: -time.Second}, "min_interval")
	f(Hook{Name: "a", Kind: KindGeneric, URL: u, Timeout: time.Hour}, "timeout is 1h0m0s")
	f(Hook{Name: "a", Kind: KindGeneric, URL: u, Attempts: -1}, "attempts is -1")
	f(Hook{Name: "a", Kind: KindGeneric, URL: u, MaxGroups: 1e6}, "max_groups is 1000000")
	f(Hook{Name: "a", Kind: KindGeneric, URL: u, Reasons: []string{"a*b"}}, "only at the end")
	f(Hook{Name: "a", Kind: KindGeneric, URL: u, Services: []string{""}}, "services has an empty pattern")

	h := Hook{Name: "a", Kind: KindGeneric, URL: u}
	if err := (&Config{Hooks: []Hook{h, h}}).Validate(); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("two hooks of one name: %v", err)
	}
}

func TestMatches(t *testing.T) {
	f := func(patterns []string, s string, want bool) {
		t.Helper()
		if got := matches(patterns, s); got != want {
			t.Errorf("matches(%q, %q) = %v", patterns, s, got)
		}
	}
	f(nil, "x", true)
	f([]string{"*"}, "", true)
	f([]string{"schema.*"}, "schema.type", true)
	f([]string{"schema.*"}, "schema", false)
	f([]string{"a", "b"}, "b", true)
	f([]string{"a", "b"}, "bc", false)
}

func TestSecretIsNeverShown(t *testing.T) {
	h := Hook{Name: "a", Kind: KindGeneric, URL: "https://h.test/top-secret", Secret: "top-secret"}
	j, _ := json.Marshal(h)
	var b strings.Builder
	slog.New(slog.NewTextHandler(&b, nil)).Info("x", "hook", h, "url", h.URL)
	slog.New(slog.NewJSONHandler(&b, nil)).Info("x", "hook", h, "url", h.URL)
	for _, s := range []string{string(j), b.String(), fmt.Sprint(h), fmt.Sprintf("%+v %#v %q", h, h, h.URL)} {
		if strings.Contains(s, "top-secret") {
			t.Errorf("shown: %s", s)
		}
	}
}
