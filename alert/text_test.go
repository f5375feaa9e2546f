package alert

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestClean(t *testing.T) {
	f := func(in string, limit int, want string) {
		t.Helper()
		if got := clean(in, limit); got != want {
			t.Errorf("clean(%q, %d) = %q, want %q", in, limit, got, want)
		}
	}
	f("", 10, "")
	f(" a\r\n\tb\x00c ", 20, "a b c")
	f("a\u202eb\u2066", 20, "ab")
	f("a\xffb", 20, "a\uFFFDb")
	f("0123456789", 10, "0123456789")
	f("01234567890123", 13, "0123"+cutMark)
	f("模型版本不一致模型版本", 20, "模型版"+cutMark)
	f(strings.Repeat("x", 1<<20), 12, "xxx"+cutMark)
	f("abcdefgh", 3, "")
}

func TestCutRunes(t *testing.T) {
	f := func(in string, limit int, want string) {
		t.Helper()
		if got := cutRunes(in, limit); got != want {
			t.Errorf("cutRunes(%q, %d) = %q, want %q", in, limit, got, want)
		}
	}
	f("模型版本", 4, "模型版本")
	f("模型版本不一致模型版本", 10, "模型版"+cutMark)
	f("abcdefgh", 3, "")
}

func FuzzClean(f *testing.F) {
	f.Add("模型\n\xff", 5)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		limit &= 0xfff
		got := clean(s, limit)
		if len(got) > limit || !utf8.ValidString(got) || strings.ContainsAny(got, "\n\r\x00") {
			t.Errorf("clean(%q, %d) = %q", s, limit, got)
		}
		if r := cutRunes(s, limit); utf8.ValidString(s) && (utf8.RuneCountInString(r) > limit || !utf8.ValidString(r)) {
			t.Errorf("cutRunes(%q, %d) = %q", s, limit, r)
		}
	})
}

func FuzzAnswers(f *testing.F) {
	f.Add(200, []byte(`{"errcode":0,"errmsg":"ok"}`), "120")
	f.Add(429, []byte(`{"code":"x"}`), "Mon, 30 Nov 2026 12:00:00 GMT")
	f.Add(200, []byte(`null`), "NaN")
	f.Fuzz(func(t *testing.T, status int, body []byte, after string) {
		for k, s := range services {
			a := s.read(status, body)
			if a.ok && (status < 200 || status > 299) {
				t.Errorf("%s takes status %d for success", k, status)
			}
			if !a.ok && a.text == "" {
				t.Errorf("%s gives no reason", k)
			}
		}
		if d := retryAfter(after, time.Now()); d < 0 || d > mostWait {
			t.Errorf("retryAfter(%q) = %s", after, d)
		}
	})
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	f := func(v string, want time.Duration) {
		t.Helper()
		if got := retryAfter(v, now); got != want {
			t.Errorf("retryAfter(%q) = %s, want %s", v, got, want)
		}
	}
	f("", 0)
	f("30", 30*time.Second)
	f("0.5", 500*time.Millisecond)
	f("-1", 0)
	f("NaN", 0)
	f("soon", 0)
	f("1e300", mostWait)
	f("Mon, 30 Nov 2026 12:01:00 GMT", time.Minute)
	f("Mon, 30 Nov 2026 11:00:00 GMT", 0)
	f("Tue, 30 Nov 2027 11:00:00 GMT", mostWait)
}
