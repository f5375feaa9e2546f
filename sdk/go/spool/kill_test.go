package spool

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// appendForever is the application that is killed: it says each number on its
// standard output when Append has returned.
func appendForever(dir, endpoint string) {
	if endpoint != "" {
		if _, err := StartWatchdog(dir, WatchdogOptions{Endpoint: endpoint, Linger: 20 * time.Second}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	w, err := Open(dir, Options{MaxFileBytes: 4000})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	pad := strings.Repeat("x", 100)
	for i := 0; ; i++ {
		id := fmt.Sprintf("%d-%d", os.Getpid(), i)
		if err := w.Append(fmt.Appendf(nil, `{"body":{"stringValue":%q},"pad":%q}`, id, pad)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Stdout.WriteString(id + "\n")
	}
}

// killOne starts a child, kills it after a while, and returns what it said.
func killOne(t *testing.T, dir, endpoint string, after time.Duration) []string {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "INQUEST_TEST_CHILD="+dir, "INQUEST_TEST_ENDPOINT="+endpoint)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	lines := bufio.NewScanner(out)
	var kill *time.Timer
	for lines.Scan() {
		if said = append(said, lines.Text()); kill == nil {
			kill = time.AfterFunc(after, func() { cmd.Process.Kill() })
		}
	}
	cmd.Wait()
	if stderr.Len() > 0 {
		t.Fatal(stderr.String())
	}
	return said
}

// TestKill kills an application between or within two calls: no record is lost
// that Append has returned from, and none is half there.
func TestKill(t *testing.T) {
	kills := 20
	if os.Getenv("INQUEST_LONG") != "" {
		kills = 200
	}
	dir := t.TempDir()
	var said []string
	for range kills {
		said = append(said, killOne(t, dir, "", rand.N(20*time.Millisecond))...)
	}
	w := open(t, dir, Options{})
	there := map[string]int{}
	for _, r := range stored(t, dir) {
		there[strings.Split(r, `"`)[5]]++
	}
	lost := 0
	for _, id := range said {
		if there[id] != 1 {
			lost++
		}
	}
	if lost > 0 || len(said) == 0 {
		t.Errorf("%d of %d records lost or twice", lost, len(said))
	}
	t.Logf("%d kills, %d records returned, %d stored, %d torn tails", kills, len(said), len(there), w.Stats().Torn)
}

// TestWatchdogAfterKill kills an application whose server is away, and brings the
// server up afterwards: the watchdog delivers all of it and ends.
func TestWatchdogAfterKill(t *testing.T) {
	dir := t.TempDir()
	srv := newServer(t)
	srv.set(503)
	said := killOne(t, dir, srv.URL, 100*time.Millisecond)
	srv.set(200)
	waitFor(t, "the watchdog to deliver", func() bool { return len(srv.bodies()) >= len(said) })
	got := map[string]bool{}
	for _, b := range srv.bodies() {
		got[b] = true
	}
	for _, id := range said {
		if !got[id] {
			t.Fatalf("%s was returned and never delivered", id)
		}
	}
	waitFor(t, "the watchdog to end", func() bool {
		f, err := os.OpenFile(dir+"/"+lockName, os.O_RDWR, 0)
		if err != nil {
			return false
		}
		defer f.Close()
		ok, _ := tryLock(f)
		return ok
	})
	t.Logf("%d records returned before the kill, %d delivered after it", len(said), len(srv.bodies()))
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited 30 s for %s", what)
		}
	}
}
