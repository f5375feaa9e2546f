package truth

import "testing"

func TestSameVersion(t *testing.T) {
	f := func(a, b string, want bool) {
		t.Helper()
		if got := sameVersion(a, b); got != want {
			t.Errorf("sameVersion(%q, %q) = %v", a, b, got)
		}
		if got := sameVersion(b, a); got != want {
			t.Errorf("sameVersion(%q, %q) = %v", b, a, got)
		}
	}
	f("v3", "v3", true)
	f("v3", "V3 ", true)
	f("v3", "3", true)
	f("version-3", "v3", true)
	f("v3", "v2", false)
	f("v3", "v3.0", false)
	f("3", "13", false)
	f("", "", false)
	f("risk:v3", "v3", true)
	f("risk@3", "v3", true)
	f("models:/risk/3", "v3", true)
	f("risk:v3", "fraud:v3", false)
	f("2026-11-30T10:00:00Z", "2026-11-30T11:00:00Z", false)
	f("0123456789abcdef", "0123456", false) // no letter: a number
	f("abc123456789", "abc1234", true)
	f("abc1234", "abc1235", false)
	f("canary", "canary", true)
	f("canary", "stable", false)
}

func TestVersionInPath(t *testing.T) {
	f := func(path, expected string, folder bool, want string) {
		t.Helper()
		if got := versionInPath(path, expected, folder); got != want {
			t.Errorf("versionInPath(%q, %q) = %q, want %q", path, expected, got, want)
		}
	}
	const rev = "0123456789abcdef0123456789abcdef01234567"
	f("/models/risk/v3", "", true, "v3")
	f("/models/risk/v3/model.onnx", "", false, "v3")
	f("/models/risk/3/model.plan", "", false, "3")
	f("/models/risk-v3", "", true, "v3")
	f("/models/risk-v3.onnx", "", false, "v3")
	f("/models/risk@3", "", true, "3")
	f("/models/2026-11-30", "", true, "2026-11-30")
	f("/models/3.1-rc2", "", true, "3.1-rc2")
	f("/models/v3/gpu", "", true, "v3")
	f("/data/2024/risk", "", true, "")
	f("/data/2024/risk/model.bin", "", false, "")
	f("/models/llama-7b", "", true, "")
	f("/models/llama/7b/weights.bin", "", false, "")
	f("/v1/models/team/risk", "", true, "")
	f("/models/canary", "canary", true, "canary")
	f("/models/canary.onnx", "canary", false, "canary")
	f("/models/3", "v3", true, "v3")
	f("/models/risk/v2", "v3", true, "v2")
	f("/hub/models--o--n/snapshots/"+rev, "", true, rev)
	f("/hub/models--o--n/snapshots/"+rev+"/sub/model.bin", "v3", false, rev)
	f("/hub/models--o--n/blobs/"+rev, "v3", false, "")
	f("/", "", true, "")
}

func TestVersionConfigured(t *testing.T) {
	f := func(path, want string) {
		t.Helper()
		if got := versionConfigured(path); got != want {
			t.Errorf("versionConfigured(%q) = %q, want %q", path, got, want)
		}
	}
	f("/models/risk/v3", "v3")
	f("/models/risk/v1.2", "v1.2")
	f("/models/risk/v3/model.onnx", "v3")
	f("/models/risk-v3.onnx", "v3")
	f("/models/001/current", "")
	f("/models/latest/model.onnx", "")
	f("/data/2024/risk", "")
	f("/models/risk", "")
	f("/hub/snapshots/0123456789abcdef0123456789abcdef01234567", "0123456789abcdef0123456789abcdef01234567")
}

func FuzzVersions(f *testing.F) {
	f.Add("/models/risk/v3", "v3", true)
	f.Add("/a/snapshots/abcdef0", "", false)
	f.Fuzz(func(t *testing.T, path, v string, folder bool) {
		versionConfigured(path)
		versionInPath(path, v, folder)
		if sameVersion(path, v) != sameVersion(v, path) {
			t.Errorf("sameVersion(%q, %q) is not symmetric", path, v)
		}
	})
}
