package truth

import (
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestDigestByHand makes the hash of a folder as docs/truth-check.md says.
func TestDigestByHand(t *testing.T) {
	if _, err := exec.LookPath("sha256sum"); err != nil {
		t.Skip("sha256sum is not installed")
	}
	dir := tempDir(t)
	for _, n := range []string{"b/w.bin", "b.bin", "B.bin", "a b.bin", "模型.bin"} {
		write(t, dir+"/"+n, n, time.Hour)
	}
	cmd := exec.Command("sh", "-c", `find -L . -type f -printf '%P\0' | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum`)
	cmd.Dir = dir
	out, err := cmd.Output()
	must(t, err)
	byHand, _, _ := strings.Cut(string(out), " ")
	k := begin(t, Settings{}, Service{Name: "s", Path: dir, SHA256: byHand})
	is(t, refresh(t, k, "s"), "true")
}
