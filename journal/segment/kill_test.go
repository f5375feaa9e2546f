package segment

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"inquest/journal"
)

// killDir is set in the process that TestKill kills.
const killDir = "INQUEST_TEST_JOURNAL_DIR"

func killOptions(dir string) Options {
	return Options{Dir: dir, SegmentBytes: 64 << 10, MinFreeBytes: -1}
}

// A process that is killed at any moment loses nothing that it acknowledged.
func TestKill(t *testing.T) {
	if dir := os.Getenv(killDir); dir != "" {
		appendUntilKilled(t, dir)
		return
	}
	rounds := 12
	if testing.Short() {
		rounds = 3
	}
	dir := filepath.Join(t.TempDir(), "journal")
	acked := map[uint64]uint64{} // payload number → sequence number
	for round := range rounds {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKill$")
		cmd.Env = append(os.Environ(), killDir+"="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(time.Duration(20+rand.IntN(150))*time.Millisecond, func() { cmd.Process.Kill() })
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			var n, seq uint64
			// The last line may be cut.
			if c, err := fmt.Sscanf(lines.Text(), "acked %d %d end", &n, &seq); err == nil && c == 2 {
				acked[n] = seq
			}
		}
		cmd.Wait()
		timer.Stop()
		l := mustOpen(t, killOptions(dir))
		got, skipped := readAll(t, l, 1)
		st := l.Stats()
		mustClose(t, l)
		if skipped != 0 || st.SetAside != 0 || uint64(len(got)) != st.Last {
			t.Fatalf("round %d: read %d of %d entries, skipped %d, set aside %d", round, len(got), st.Last, skipped, st.SetAside)
		}
		found := map[uint64]uint64{}
		for _, e := range got {
			n := binary.LittleEndian.Uint64(e.Payload)
			if !bytes.Equal(e.Payload, payloadOf(n)) || found[n] != 0 {
				t.Fatalf("round %d: entry %d is damaged or there twice", round, e.Seq)
			}
			found[n] = e.Seq
		}
		for n, seq := range acked {
			if found[n] != seq {
				t.Fatalf("round %d: payload %d was acknowledged as entry %d and is entry %d", round, n, seq, found[n])
			}
		}
	}
	if len(acked) == 0 {
		t.Fatal("nothing was acknowledged")
	}
	t.Logf("%d kills, %d entries acknowledged", rounds, len(acked))
}

// appendUntilKilled prints what is acknowledged.
func appendUntilKilled(t *testing.T, dir string) {
	l := mustOpen(t, killOptions(dir))
	var wg sync.WaitGroup
	for i := range uint64(4) {
		wg.Go(func() {
			for n := (uint64(os.Getpid())<<3 | i) << 24; ; n++ {
				seq, err := l.Append(context.Background(), journal.KindLogs, int64(n), payloadOf(n))
				if err != nil {
					return
				}
				fmt.Printf("acked %d %d end\n", n, seq)
			}
		})
	}
	wg.Wait()
}
