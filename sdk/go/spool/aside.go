package spool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// maxAside is how many bytes may lie in aside/. Beyond it shipping stops, rather
// than losing anything.
const maxAside = 256 << 20

// asideLine is one line of a file in aside/.
type asideLine struct {
	ID     string `json:"event.id"`
	Reason string `json:"reason"`
	Line   string `json:"line"` // as it was; bytes that are no UTF-8 as \xNN
}

// setAside keeps lines of the file at path that could not be shipped, durably,
// and returns where.
func setAside(path string, lines []line, reason string) (string, error) {
	dir := filepath.Join(filepath.Dir(path), asideFolder)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	files, err := list(dir)
	if err != nil {
		return "", err
	}
	var size int64
	for _, f := range files {
		size += f.size
	}
	if size > maxAside {
		return "", fmt.Errorf("%s is full: look at what was set aside and remove it", dir)
	}
	stem := strings.TrimSuffix(filepath.Base(path), spoolSuffix)
	name := filepath.Join(dir, stem+".jsonl")
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for _, l := range lines {
		if err := enc.Encode(asideLine{eventID(stem, l.offset), reason, printable(l.raw)}); err != nil {
			return "", err
		}
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if _, err := f.Write(b.Bytes()); err != nil {
		return "", err
	}
	if err := f.Sync(); err != nil {
		return "", err
	}
	return name, syncDir(dir)
}

// printable returns b as text.
func printable(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	var out strings.Builder
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			fmt.Fprintf(&out, `\x%02x`, b[0])
		} else {
			out.Write(b[:n])
		}
		b = b[n:]
	}
	return out.String()
}
