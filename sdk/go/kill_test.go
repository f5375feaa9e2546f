package inquest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"inquest.dev/sdk/go/spool"
)

// logForever is the application that is killed: it says a request's id on its
// standard output when the logger has returned.
func logForever(dir string) {
	die := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	w, err := spool.Open(dir, spool.Options{})
	die(err)
	l, err := NewLogger(Config{Service: "victim", Spool: w, Tracer: sdktrace.NewTracerProvider()})
	die(err)
	for i := 0; ; i++ {
		ctx := WithRequest(context.Background(), Request{ID: fmt.Sprintf("%d-%d", os.Getpid(), i)})
		die(l.Ingress(ctx, Ingress{Raw: "hello"}))
		os.Stdout.WriteString(RequestID(ctx) + "\n")
	}
}

// TestKill kills a process that logs, 20 times, or 200 with INQUEST_LONG: no event
// is lost that the logger had returned from, and each is valid.
func TestKill(t *testing.T) {
	kills := 20
	if os.Getenv("INQUEST_LONG") != "" {
		kills = 200
	}
	dir := t.TempDir()
	said := map[string]bool{}
	for range kills {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "INQUEST_TEST_CHILD="+dir)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		lines, kill := bufio.NewScanner(out), (*time.Timer)(nil)
		for lines.Scan() {
			said[lines.Text()] = true
			if kill == nil {
				kill = time.AfterFunc(rand.N(20*time.Millisecond), func() { cmd.Process.Kill() })
			}
		}
		cmd.Wait()
		if stderr.Len() > 0 {
			t.Fatal(stderr.String())
		}
	}
	w, err := spool.Open(dir, spool.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	there := map[string]int{}
	for i, e := range spooled(t, dir) {
		var head struct {
			ID string `json:"req_id"`
		}
		if err := json.Unmarshal([]byte(e), &head); err != nil {
			t.Fatal(err)
		}
		there[head.ID]++
		if i%50 == 0 {
			if err := validate(t, e); err != nil {
				t.Error(err)
			}
		}
	}
	lost := 0
	for id := range said {
		if there[id] != 1 {
			lost++
		}
	}
	if lost > 0 || len(said) == 0 {
		t.Errorf("%d of %d events lost or twice", lost, len(said))
	}
	t.Logf("%d kills, %d events returned, %d stored", kills, len(said), len(there))
}
