package truth

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestPermission looks at files as a user who may not read them.
func TestPermission(t *testing.T) {
	dir := tempDir(t)
	write(t, dir+"/open/model.bin", "x", time.Hour)
	must(t, os.Chmod(dir+"/open/model.bin", 0))
	write(t, dir+"/shut/model.bin", "x", time.Hour)
	must(t, os.Chmod(dir+"/shut", 0))
	defer os.Chmod(dir+"/shut", 0o755)
	if os.Getuid() == 0 {
		for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
			must(t, os.Chmod(d, 0o755))
		}
		runtime.LockOSThread() // the user below is this thread's alone
		must(t, syscall.Setfsuid(65534))
		defer func() { _ = syscall.Setfsuid(0); runtime.UnlockOSThread() }()
	}
	_, p := readTree(dir+"/shut", 10, nil)
	if p == nil || p.Reason != ReasonPathUnreadable || !strings.Contains(p.Detail, "permission denied; give inquest the right") {
		t.Errorf("folder: %+v", p)
	}
	tr, p := readTree(dir+"/open", 10, nil)
	if p != nil {
		t.Fatalf("a folder that can be read: %+v", p)
	}
	got := newHasher(1e9, 1).all(context.Background(), tr.files)
	if _, _, p = tr.sums(got); p == nil || p.Reason != ReasonPathUnreadable || !strings.Contains(p.Detail, "permission denied") {
		t.Errorf("file: %+v", p)
	}
}
