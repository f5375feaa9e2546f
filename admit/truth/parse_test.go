package truth

import (
	"strings"
	"testing"
	"time"
)

func TestParseManifest(t *testing.T) {
	a, b := sum("a"), sum("b")
	f := func(text, want string) {
		t.Helper()
		m, err := parseManifest([]byte(text))
		if want == "" {
			if err != nil || m["a.bin"] != a || m["sub/b c.bin"] != b || len(m) != 2 {
				t.Errorf("%q: %v, %v", text, m, err)
			}
			return
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
	f(a+"  a.bin\n"+b+" *./sub/b c.bin\n", "")
	f("# made by hand\r\n"+strings.ToUpper(a)+"  a.bin\r\n\r\n"+b+"  sub/b c.bin", "")
	f(`{"a.bin":"`+a+`","sub/b c.bin":"sha256:`+b+`"}`, "")
	f(`{"files":{"a.bin":"`+a+`","sub/b c.bin":"`+b+`"},"made":"today"}`, "")
	f("", "names no file")
	f("{}", "names no file")
	f(a, "line 1 is not of the form")
	f(a+"  a.bin\nabc  b.bin", "line 2: \"b.bin\" has no sha256")
	f(a+"  a.bin\n"+b+"  a.bin", "twice")
	f(`{"a.bin":1}`, "no JSON object")
	f(`{"a.bin"`, "no JSON object")
}

func TestManifest(t *testing.T) {
	dir := tempDir(t)
	write(t, dir+"/v3/a.bin", "a", time.Hour)
	write(t, dir+"/v3/b.bin", "b", time.Hour)
	h := newHealth(t, `{"version":"v3","loaded_at":"`+time.Now().Add(-time.Minute).Format(time.RFC3339)+`"}`)
	k := begin(t, Settings{}, Service{Name: "s", Path: dir + "/v3", Manifest: dir + "/sums", Healthz: []string{h.URL}})
	f := func(manifest, want string, details ...string) {
		t.Helper()
		write(t, dir+"/sums", manifest, 0)
		is(t, refresh(t, k, "s"), want, details...)
	}
	f("", "unknown manifest.unreadable", "it names no file")
	// The manifest vouches for files that were put there after the load.
	f(sum("a")+"  a.bin\n", "true")
	f(sum("a")+"  a.bin\n"+sum("x")+"  b.bin\n"+sum("c")+"  c.bin\n", "false file.mismatch", "b.bin has sha256 "+sum("b")[:12], "instead of "+sum("x")[:12], "c.bin is missing")
}

func TestInstant(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	f := func(body, path string, want time.Time) {
		t.Helper()
		var h health
		h.read([]byte(body), &Service{LoadedPaths: []string{path}}, now)
		if !h.loaded.Equal(want) {
			t.Errorf("%s at %s: %s, want %s", body, path, h.loaded, want)
		}
	}
	hour := now.Add(-time.Hour)
	f(`{"t":"2026-11-30T11:00:00Z"}`, "t", hour)
	f(`{"t":"2026-11-30T19:00:00+08:00"}`, "t", hour)
	f(`{"t":1796036400}`, "t", hour)
	f(`{"t":1796036400000}`, "t", hour)
	f(`{"uptime_seconds":3600}`, "uptime_seconds", hour)
	f(`{"a":{"uptime":"3600"}}`, "a.uptime", hour)
	f(`{"a":[{"t":1796036400}]}`, "a.0.t", hour)
	f(`{"t":"NaN"}`, "t", time.Time{})
	f(`{"t":-5}`, "t", time.Time{})
	f(`{"t":1e300}`, "t", time.Time{})
	f(`{"t":7}`, "t", time.Time{})
	f(`{"t":true}`, "t", time.Time{})
	f(`{"uptime":1e12}`, "uptime", time.Time{})
}

func FuzzParsers(f *testing.F) {
	f.Add([]byte(`{"version":"v3","uptime":1}`), "model.version")
	f.Add([]byte(sum("x")+"  name\n"), "a.0.b")
	f.Fuzz(func(t *testing.T, body []byte, path string) {
		var h health
		h.read(body, &Service{VersionPaths: []string{path, "version"}, LoadedPaths: []string{path}, StartedPaths: []string{path, "uptime"}}, time.Now())
		if len(h.version) > mostVersion {
			t.Errorf("version of %d bytes", len(h.version))
		}
		if m, err := parseManifest(body); err == nil && len(m) == 0 {
			t.Error("an empty manifest without an error")
		}
	})
}
