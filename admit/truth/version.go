package truth

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// isLatest tells versions that name no version.
func isLatest(v string) bool {
	switch strings.ToLower(strings.TrimSpace(v)) {
	case "", "latest", "current", "unknown", "none", "null":
		return true
	}
	return false
}

// sameVersion tells whether two names mean one version: "v3" and "3", a revision
// and its beginning, "risk:v3" and "v3".
func sameVersion(a, b string) bool {
	if a == b {
		return a != "" // most are written alike, and this is asked for each record
	}
	if a, b = bare(a), bare(b); a == b {
		return a != ""
	}
	if isRevision(a) && isRevision(b) {
		return strings.HasPrefix(a, b) || strings.HasPrefix(b, a)
	}
	// One may carry the model's name. Where both have a separator they are names
	// of another kind, such as times.
	sa, sb := strings.LastIndexAny(a, ":@/"), strings.LastIndexAny(b, ":@/")
	switch {
	case sa >= 0 && sb < 0:
		return bare(a[sa+1:]) == b && b != ""
	case sb >= 0 && sa < 0:
		return bare(b[sb+1:]) == a && a != ""
	}
	return false
}

var versionPrefix = regexp.MustCompile(`^(?:version|ver|v)[-_. ]?(\d)`)

func bare(v string) string {
	return versionPrefix.ReplaceAllString(strings.ToLower(strings.TrimSpace(v)), "$1")
}

// isRevision tells revisions of Git and of the Hugging Face hub, whole or
// shortened, from numbers.
func isRevision(v string) bool {
	if len(v) < 7 || len(v) > 64 || !strings.ContainsAny(v, "abcdef") {
		return false
	}
	return strings.Trim(v, "0123456789abcdef") == ""
}

var (
	// versionName is a folder's or file's whole name: v3, 3, 1.2.3, 2026-11-30, 3-rc1.
	versionName = regexp.MustCompile(`(?i)^(?:v(?:er|ersion)?[-_.]?\d[\w.+-]*|\d+(?:[._-]\d+)*(?:[-_.+]?(?:rc|alpha|beta|dev|post)[\w.]*)?)$`)
	// versionSuffix is a version behind a model's name: risk-v3, risk@3.
	versionSuffix = regexp.MustCompile(`(?i)(?:[-_.]|^)(v\d+(?:[._]\d+)*)$|@(v?\d[\w.+-]*)$`)
)

// nearNames is how many of a path's last names may tell the version; those above
// are of whoever laid out the disk.
const nearNames = 3

// versionInPath returns the version that a real path's names tell, or "".
// expected is recognised in any form. A bare number counts only as the name of
// the model's folder: further up it may be a year.
func versionInPath(p, expected string, folder bool) string {
	if rev := versionInSnapshot(p); rev != "" {
		return rev
	}
	names := strings.Split(filepath.ToSlash(p), "/")
	near := names[max(0, len(names)-nearNames):]
	own := len(near) - 1 // of the model's folder
	if !folder {
		own--
	}
	for i := len(near) - 1; i >= 0 && expected != ""; i-- {
		if sameVersion(near[i], expected) || i == len(near)-1 && sameVersion(stem(near[i]), expected) {
			return expected
		}
	}
	for i := len(near) - 1; i >= 0; i-- {
		name := near[i]
		if i > own { // the file's own name
			name = stem(name)
		}
		if v := versionOf(name); v != "" && (i == own || strings.ContainsAny(v[:1], "vV")) {
			return v
		}
	}
	return ""
}

// versionConfigured returns the version that a configured path names, or "". It
// is what is meant, so it is read from the last name only, and from the folder of
// a file.
func versionConfigured(p string) string {
	last := filepath.Base(p)
	if isLatest(last) {
		return ""
	}
	if v := versionOf(last); v != "" {
		return v
	}
	if rev := versionInSnapshot(p); rev != "" {
		return rev
	}
	if filepath.Ext(last) == "" {
		return ""
	}
	if v := versionOf(stem(last)); v != "" && strings.ContainsAny(v[:1], "vV") {
		return v
	}
	if folder := filepath.Base(filepath.Dir(p)); !isLatest(folder) {
		return versionOf(folder)
	}
	return ""
}

// versionInSnapshot returns the revision of a path in a Hugging Face cache.
func versionInSnapshot(p string) string {
	names := strings.Split(filepath.ToSlash(p), "/")
	for i := len(names) - 1; i > 0; i-- {
		if names[i-1] == "snapshots" && isRevision(names[i]) {
			return names[i]
		}
	}
	return ""
}

// versionOf returns the version that one name tells.
func versionOf(name string) string {
	if versionName.MatchString(name) {
		return name
	}
	if m := versionSuffix.FindStringSubmatch(name); m != nil {
		return m[1] + m[2]
	}
	return ""
}

func stem(name string) string { return strings.TrimSuffix(name, filepath.Ext(name)) }

// hubRevision returns the revision that a branch or tag of a Hugging Face cache
// stands for, "" where the path is of none.
func hubRevision(snapshot, ref string) string {
	dir := filepath.ToSlash(snapshot)
	i := strings.LastIndex(dir, "/snapshots/")
	if i < 0 || !filepath.IsLocal(ref) {
		return ""
	}
	f, err := os.Open(filepath.Join(dir[:i], "refs", ref))
	if err != nil {
		return ""
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 100))
	if rev := strings.TrimSpace(string(b)); err == nil && isRevision(rev) {
		return rev
	}
	return ""
}
