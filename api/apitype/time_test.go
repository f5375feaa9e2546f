package apitype

import (
	"testing"
	"time"
)

var now = time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)

func TestParseTime(t *testing.T) {
	f := func(in string, want time.Time) {
		t.Helper()
		got, err := ParseTime(in, now)
		if err != nil || !got.Equal(want) {
			t.Errorf("%q: got %s, %v; want %s", in, got.Format(time.RFC3339Nano), err, want.Format(time.RFC3339Nano))
		}
	}
	f("now", now)
	f(" now ", now)
	f("15m", now.Add(-15*time.Minute))
	f("-15m", now.Add(-15*time.Minute))
	f("now-1h30m", now.Add(-90*time.Minute))
	f("now+1d", now.Add(24*time.Hour))
	f("2026-01-02T15:04:05Z", now)
	f("2026-01-02T16:04:05+01:00", now)
	f("2026-01-02T15:04:05.123456789Z", now.Add(123456789))
	f("1767366245", now)
	f("1767366245.123456789", now.Add(123456789))
	f("1767366245.5", now.Add(500*time.Millisecond))
	f("1767366245781", now.Add(781*time.Millisecond))
	f("1767366245781.5", now.Add(781500*time.Microsecond))
	f("1767366245781001", now.Add(781001*time.Microsecond))
	f("1767366245781001002", now.Add(781001002))
	f("1.767366245e9", now)
	f("0", time.Unix(0, 0))
	f("-1", time.Unix(-1, 0))
	f("-1.5", time.Unix(-2, 5e8))
	f("-0.5", time.Unix(-1, 5e8))
	f("0.0000000001", time.Unix(0, 0))
	f("1.", time.Unix(1, 0))
}

func TestParseTimeErrors(t *testing.T) {
	f := func(in string) {
		t.Helper()
		if got, err := ParseTime(in, now); err == nil {
			t.Errorf("%q is taken for %s", in, got)
		}
	}
	for _, in := range []string{
		"", "yesterday", "now15m", "now-", "now--1h", "+15m", "--15m", "NaN", "Inf", "1e300", "1.2.3", "1.x", "0x10x", "2026-01-02", "2026-01-02T15:04:05",
		"9999-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "9223372036854775808000", "99999999999999999999", "now-300y", "now+300y", "1\n2",
	} {
		f(in)
	}
}

func TestParseDuration(t *testing.T) {
	f := func(in string, want time.Duration, ok bool) {
		t.Helper()
		got, err := ParseDuration(in)
		if (err == nil) != ok || got != want {
			t.Errorf("%q: got %s, %v; want %s, %v", in, got, err, want, ok)
		}
	}
	f("15", 15*time.Second, true)
	f("0.5", 500*time.Millisecond, true)
	f("1h30m", 90*time.Minute, true)
	f("250ms", 250*time.Millisecond, true)
	f("0", 0, true)
	f("1e3", 1000*time.Second, true)
	f("-1", 0, false)
	f("-1m", 0, false)
	f("NaN", 0, false)
	f("1e300", 0, false)
	f("", 0, false)
	f("x", 0, false)
	f("1.5m", 0, false)
}

// A time that is read is one that nanoseconds can hold, and its RFC 3339 form
// is read as the same time.
func FuzzParseTime(f *testing.F) {
	for _, s := range []string{"now", "15m", "1767366245.5", "-1e9", "2026-01-02T15:04:05Z", "9223372036854775807", "-9223372036854775808", "-9223372036.9"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := ParseTime(s, now)
		if err != nil {
			return
		}
		if got.Before(MinTime) || got.After(MaxTime) {
			t.Fatalf("%q is read as %s", s, got)
		}
		again, err := ParseTime(got.Format(time.RFC3339Nano), now)
		if err != nil || !again.Equal(got) {
			t.Fatalf("%q is read as %s, and that as %s, %v", s, got, again, err)
		}
	})
}

func FuzzParseDuration(f *testing.F) {
	for _, s := range []string{"15", "1h30m", "-1", "9223372036.9", "292y"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if d, err := ParseDuration(s); err == nil && d < 0 {
			t.Fatalf("%q is read as %s", s, d)
		}
	})
}
