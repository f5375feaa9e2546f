package truth

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"inquest/record"
)

// mostManifest bounds the bytes of a manifest.
const mostManifest = 16 << 20

// readManifest returns the hash that each file is meant to have.
func readManifest(name string) (map[string]string, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, mostManifest+1))
	if err != nil {
		return nil, err
	}
	if len(b) > mostManifest {
		return nil, fmt.Errorf("it is above the limit of %d bytes", mostManifest)
	}
	return parseManifest(b)
}

// parseManifest reads lines as sha256sum writes them, or a JSON object from name
// to hash, which may be the member "files" of another.
func parseManifest(b []byte) (map[string]string, error) {
	out := map[string]string{}
	add := func(name, sum string) error {
		sum = strings.ToLower(sum)
		if d, err := hex.DecodeString(sum); err != nil || len(d) != 32 {
			return fmt.Errorf("%q has no sha256 of 64 hexadecimal digits", name)
		}
		name = path.Clean(name)
		if had, ok := out[name]; ok && had != sum {
			return fmt.Errorf("%q is there twice with different hashes", name)
		}
		out[name] = sum
		return nil
	}
	var err error
	if b = bytes.TrimSpace(b); len(b) > 0 && b[0] == '{' {
		err = manifestJSON(b, add)
	} else {
		err = manifestLines(b, add)
	}
	if err == nil && len(out) == 0 {
		err = errors.New("it names no file")
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

func manifestJSON(b []byte, add func(name, sum string) error) error {
	var doc struct {
		Files map[string]string `json:"files"`
	}
	files := map[string]string{}
	if json.Unmarshal(b, &doc) == nil && len(doc.Files) > 0 {
		files = doc.Files
	} else if err := json.Unmarshal(b, &files); err != nil {
		return fmt.Errorf("it is no JSON object from name to hash: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := add(name, strings.TrimPrefix(files[name], "sha256:")); err != nil {
			return err
		}
	}
	return nil
}

func manifestLines(b []byte, add func(name, sum string) error) error {
	for i, line := range strings.Split(string(b), "\n") {
		line = strings.TrimRight(line, "\r")
		if strings.TrimSpace(line) == "" || line[0] == '#' {
			continue
		}
		sum, name, ok := strings.Cut(line, " ")
		// A second blank for text, a star for binary files.
		if name = strings.TrimPrefix(strings.TrimPrefix(name, " "), "*"); !ok || name == "" {
			return fmt.Errorf("line %d is not of the form that sha256sum writes", i+1)
		}
		if err := add(name, sum); err != nil {
			return fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	return nil
}

// manifestProblem compares the files with what they are meant to be.
func manifestProblem(s *Service, t *tree, sums map[string]string) *Problem {
	mismatch := func(subject, format string, args ...any) *Problem {
		return &Problem{Reason: ReasonFileMismatch, Detail: fmt.Sprintf(format, args...), Quadrant: record.QuadrantResources, Subject: subject}
	}
	if got := t.digest(sums); s.SHA256 != "" && got != s.SHA256 {
		return mismatch(t.real, "%s has sha256 %s, configured is %s", t.real, short(got), short(s.SHA256))
	}
	if s.Manifest == "" {
		return nil
	}
	want, err := readManifest(s.Manifest)
	if err != nil {
		return &Problem{
			Reason: ReasonManifestUnreadable, Quadrant: record.QuadrantResources, Subject: s.Manifest,
			Detail: fmt.Sprintf("the manifest %s cannot be read: %s", s.Manifest, bareError(err)),
		}
	}
	var wrong []string
	for _, name := range slices.Sorted(maps.Keys(want)) {
		switch got, ok := sums[name]; {
		case !ok:
			wrong = append(wrong, name+" is missing")
		case got != want[name]:
			wrong = append(wrong, fmt.Sprintf("%s has sha256 %s instead of %s", name, short(got), short(want[name])))
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return mismatch(t.real, "%s does not hold what the manifest says: %s", t.real, some(wrong))
}

// short shows the beginning of a hash.
func short(sum string) string {
	if len(sum) > 12 {
		return sum[:12] + "…"
	}
	return sum
}

// some joins the first of a list and says how many there are more.
func some(all []string) string {
	const shown = 3
	if len(all) <= shown {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:shown], ", "), len(all)-shown)
}

func bareError(err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
