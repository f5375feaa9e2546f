package segment

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"go.uber.org/goleak"

	"inquest/journal"
	"inquest/journal/vfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testDir = "/data/journal"

// testOptions are small, so that tests meet every bound.
func testOptions(fsys vfs.FS) Options {
	return Options{Dir: testDir, FS: fsys, SegmentBytes: 4 << 10, MinFreeBytes: -1, RetryInterval: -1, readPause: time.Microsecond}
}

func mustOpen(t testing.TB, o Options) *Log {
	t.Helper()
	l, err := Open(o)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	return l
}

func mustClose(t testing.TB, c io.Closer) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
}

// payloadOf is different for each n, and says n.
func payloadOf(n uint64) []byte {
	rng := rand.New(rand.NewPCG(n, 7))
	p := binary.LittleEndian.AppendUint64(nil, n)
	for range rng.IntN(90) {
		p = binary.LittleEndian.AppendUint64(p, rng.Uint64())
	}
	return p[:len(p)-int(n%3)*min(1, len(p)-8)]
}

func mustAppend(t testing.TB, l *Log, n uint64) uint64 {
	t.Helper()
	seq, err := l.Append(context.Background(), journal.KindLogs, int64(n), payloadOf(n))
	if err != nil {
		t.Fatalf("Append %d: %v", n, err)
	}
	return seq
}

// readAll returns copies of all entries from seq on, and how many were skipped.
func readAll(t testing.TB, l *Log, from uint64) ([]journal.Entry, uint64) {
	t.Helper()
	r, err := l.Read(from)
	if err != nil {
		t.Fatalf("Read: %v", err)
	}
	defer r.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var got []journal.Entry
	last := l.Stats().Last
	for {
		// The reader waits at the end, also when the last entries are damaged.
		if r.(*reader).next > last {
			return got, r.Skipped()
		}
		if len(got) > 0 && got[len(got)-1].Seq >= last {
			return got, r.Skipped()
		}
		e, err := nextOrEnd(ctx, r, last)
		if errors.Is(err, errAtEnd) {
			return got, r.Skipped()
		}
		if err != nil {
			t.Fatalf("Next: %v", err)
		}
		e.Payload = bytes.Clone(e.Payload)
		got = append(got, e)
	}
}

var errAtEnd = errors.New("at the end")

// nextOrEnd is Next, but ends instead of waiting for what was not yet appended.
func nextOrEnd(ctx context.Context, r journal.Reader, last uint64) (journal.Entry, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	e, err := r.Next(endContext{ctx, func() bool { return r.(*reader).next > last }})
	if errors.Is(err, context.Canceled) {
		err = errAtEnd
	}
	return e, err
}

// endContext is over when over says so, which the reader asks before it waits.
type endContext struct {
	context.Context
	over func() bool
}

func (c endContext) Err() error {
	if c.over() {
		return context.Canceled
	}
	return c.Context.Err()
}

// checkEntries compares entries with the numbers n that payloadOf got.
func checkEntries(t testing.TB, got []journal.Entry, want ...uint64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %d entries, want %d: %s", len(got), len(want), seqs(got))
	}
	for i, e := range got {
		if e.Received != int64(want[i]) || !bytes.Equal(e.Payload, payloadOf(want[i])) || e.Kind != journal.KindLogs {
			t.Fatalf("entry %d (seq %d) is not what was appended as %d", i, e.Seq, want[i])
		}
	}
}

func seqs(es []journal.Entry) string {
	var b bytes.Buffer
	for _, e := range es {
		fmt.Fprintf(&b, "%d ", e.Seq)
	}
	return b.String()
}

func upTo(first, last uint64) []uint64 {
	var s []uint64
	for n := first; n <= last; n++ {
		s = append(s, n)
	}
	return s
}

// testLogger shows the journal's messages with -v.
func testLogger(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), nil))
}
