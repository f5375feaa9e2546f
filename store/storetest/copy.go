package storetest

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// CopyDir copies the folder of a running store, as a crash would leave it. Files
// that come and go while it copies, since the store merges in the background,
// make it start again until it saw one state.
func CopyDir(t testing.TB, src string) string {
	t.Helper()
	for try := range 100 {
		dst := filepath.Join(t.TempDir(), fmt.Sprint(try))
		before, err := list(src)
		if err == nil {
			err = copyTree(src, dst)
		}
		if err == nil {
			var after string
			if after, err = list(src); err == nil && before == after {
				return dst
			}
		}
		if err != nil && !os.IsNotExist(err) {
			t.Fatalf("cannot copy the store's folder: %v", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("the store's folder does not come to rest")
	return ""
}

// list describes all files below dir.
func list(dir string) (string, error) {
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintln(&b, path, info.Mode(), info.ModTime().UnixNano())
		if !d.IsDir() {
			fmt.Fprintln(&b, info.Size())
		}
		return nil
	})
	return b.String(), err
}

// copyTree copies folders and plain files.
func copyTree(src, dst string) error {
	return filepath.WalkDir(src, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(src, path)
		if err != nil {
			return err
		}
		to := filepath.Join(dst, rel)
		if d.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(to, data, 0o644)
	})
}
