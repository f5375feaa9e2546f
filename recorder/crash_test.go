package recorder

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"inquest/journal/segment"
	"inquest/journal/vfs"
	"inquest/record"
	"inquest/store"
	"inquest/store/local"
	"inquest/store/storetest"
)

// crashDirEnv makes the test binary a recorder under load instead of a test.
const crashDirEnv = "INQUEST_TEST_CRASH_DIR"

// killsEnv sets the number of kills; the default keeps the test short.
const killsEnv = "INQUEST_TEST_KILLS"

const crashBatch = 20

// crashChild records from several senders at once until it is killed, and says
// on stdout what was acknowledged.
func crashChild(dir string) {
	fail := func(err error) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	first, err := strconv.Atoi(os.Getenv(crashDirEnv + "_FIRST"))
	if err != nil {
		fail(err)
	}
	cfg := testConfig(dir)
	cfg.SyncInterval = 200 * time.Millisecond // checkpoints are part of what is killed
	r, err := Open(cfg)
	if err != nil {
		fail(err)
	}
	base := crashBase()
	var mu sync.Mutex
	next := first
	ctx := context.Background()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				mu.Lock()
				n := next
				next += crashBatch
				mu.Unlock()
				for signal, err := range map[string]error{
					"l": r.Logs(ctx, logBatch(base, n, crashBatch)),
					"s": r.Traces(ctx, spanBatch(base, n, crashBatch)),
					"p": r.Metrics(ctx, pointBatch(base, n, crashBatch)),
				} {
					if err != nil {
						fail(err)
					}
					fmt.Printf("%s %d\n", signal, n)
				}
			}
		})
	}
	wg.Wait()
}

// crashBase is the time of record 0, the same in parent and children.
func crashBase() time.Time {
	ns, _ := strconv.ParseInt(os.Getenv(crashDirEnv+"_BASE"), 10, 64)
	return time.Unix(0, ns)
}

// TestKill kills a recorder at random moments under load: no acknowledged record
// is lost, none is stored twice.
func TestKill(t *testing.T) {
	kills := 6
	if s := os.Getenv(killsEnv); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatalf("%s is %q: set a number", killsEnv, s)
		}
		kills = n
	} else if testing.Short() {
		kills = 2
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d, %d kills", seed, kills)
	rng := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	base := time.Now().Add(-10 * time.Minute)
	acked := map[string]map[int]bool{"l": {}, "s": {}, "p": {}}
	first := 0
	for range kills {
		wait := time.Duration(100+rng.IntN(900)) * time.Millisecond
		first = runAndKill(t, dir, base, first, wait, acked)
	}
	r := open(t, dir)
	defer closeRecorder(t, r)
	caughtUp(t, r)
	checkExact(t, "logs", acked["l"], stored(t, r, record.TypeLog))
	checkExact(t, "spans", acked["s"], stored(t, r, record.TypeSpan))
	checkExact(t, "points", acked["p"], storedPoints(t, r))
	checkExact(t, "exemplars", acked["p"], stored(t, r, record.TypeExemplar))
	t.Logf("%d logs, %d spans, %d points acknowledged", len(acked["l"]), len(acked["s"]), len(acked["p"]))
	if len(acked["l"]) == 0 || len(acked["p"]) == 0 {
		t.Error("nothing was acknowledged: the test shows nothing")
	}
}

// runAndKill starts a recorder and kills it wait after its first answer. It
// returns a number above all that were sent.
func runAndKill(t *testing.T, dir string, base time.Time, first int, wait time.Duration, acked map[string]map[int]bool) int {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), crashDirEnv+"="+dir,
		crashDirEnv+"_FIRST="+strconv.Itoa(first), crashDirEnv+"_BASE="+strconv.FormatInt(base.UnixNano(), 10))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	top := first
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		signal, number, ok := strings.Cut(lines.Text(), " ")
		n, err := strconv.Atoi(number)
		if !ok || err != nil {
			continue // the last line may be cut
		}
		if top == first && wait > 0 {
			time.AfterFunc(wait, func() { _ = cmd.Process.Signal(syscall.SIGKILL) })
			wait = 0
		}
		for i := n; i < n+crashBatch; i++ {
			acked[signal][i] = true
		}
		top = max(top, n)
	}
	err = cmd.Wait()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Fatalf("the recorder ended by itself: %v\n%s", err, stderr.String())
	}
	return top + 100*crashBatch
}

// openParts opens a journal and stores below dir for [New].
func openParts(t *testing.T, dir string) Options {
	t.Helper()
	j, err := segment.Open(segment.Options{Dir: filepath.Join(dir, "journal"), FS: vfs.OS{}})
	if err != nil {
		t.Fatal(err)
	}
	opts := openStores(t, dir)
	opts.Journal = j
	return opts
}

func openStores(t *testing.T, dir string) Options {
	t.Helper()
	records, err := local.OpenRecords(local.RecordsOptions{Dir: filepath.Join(dir, "records"), MinFreeBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	samples, err := local.OpenSamples(local.SamplesOptions{Dir: filepath.Join(dir, "samples"), MinFreeBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return Options{Records: records, Samples: samples, Dir: dir}
}

// barrierSamples copies the stores' folders after each Sync of the samples,
// which is the last one of a checkpoint: what a disk holds at least after loss
// of power.
type barrierSamples struct {
	store.Samples
	t   *testing.T
	dir string

	mu     sync.Mutex
	copied map[string]string // copies by the name of the store
}

func (b *barrierSamples) Sync(ctx context.Context) error {
	if err := b.Samples.Sync(ctx); err != nil {
		return err
	}
	copied := map[string]string{}
	for _, name := range storeDirs {
		copied[name] = storetest.CopyDir(b.t, filepath.Join(b.dir, name))
	}
	b.mu.Lock()
	b.copied = copied
	b.mu.Unlock()
	return nil
}

func (b *barrierSamples) last() map[string]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.copied
}

var storeDirs = []string{"records", "samples"}

// restore makes a folder of stores from copies.
func restore(t *testing.T, copied map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, from := range copied {
		if err := os.CopyFS(filepath.Join(dir, name), os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestPowerLoss drops what was not synced: the journal and the checkpoint on a
// file system that forgets, the stores back at their last barrier.
func TestPowerLoss(t *testing.T) {
	rounds := 4
	if testing.Short() {
		rounds = 2
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	disk := vfs.NewMem(seed)
	base := time.Now().Add(-10 * time.Minute)
	acked := numbers(0, 0)
	next := 0
	var copied map[string]string
	for range rounds {
		r, barrier := openOnMem(t, disk, restore(t, copied))
		barrierCheck(t, r, acked)
		until := time.Now().Add(time.Duration(50+rng.IntN(250)) * time.Millisecond)
		for time.Now().Before(until) {
			sendAll(t, r, base, next, crashBatch)
			for i := next; i < next+crashBatch; i++ {
				acked[i] = true
			}
			next += crashBatch
		}
		// The power goes. The stores may be at their last barrier while the
		// checkpoint, which is written after it, is older or as old.
		crashed := disk.CrashClone(rng)
		if last := barrier.last(); last != nil {
			copied = last
		}
		closeRecorder(t, r)
		disk = crashed
	}
	r, _ := openOnMem(t, disk, restore(t, copied))
	defer closeRecorder(t, r)
	barrierCheck(t, r, acked)
	t.Logf("%d of each acknowledged", len(acked))
}

func openOnMem(t *testing.T, disk *vfs.Mem, dir string) (*Recorder, *barrierSamples) {
	t.Helper()
	if err := disk.MkdirAll("/data"); err != nil {
		t.Fatal(err)
	}
	j, err := segment.Open(segment.Options{Dir: "/data/journal", FS: disk, SegmentBytes: 256 << 10})
	if err != nil {
		t.Fatal(err)
	}
	opts := openStores(t, dir)
	opts.Journal, opts.FS, opts.Dir = j, disk, "/data"
	barrier := &barrierSamples{Samples: opts.Samples, t: t, dir: dir}
	opts.Samples = barrier
	opts.SyncInterval = 100 * time.Millisecond
	r, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	return r, barrier
}

func sendAll(t *testing.T, r *Recorder, base time.Time, first, n int) {
	t.Helper()
	ctx := t.Context()
	for _, err := range []error{
		r.Logs(ctx, logBatch(base, first, n)), r.Traces(ctx, spanBatch(base, first, n)), r.Metrics(ctx, pointBatch(base, first, n)),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func barrierCheck(t *testing.T, r *Recorder, acked map[int]bool) {
	t.Helper()
	caughtUp(t, r)
	checkExact(t, "logs", acked, stored(t, r, record.TypeLog))
	checkExact(t, "spans", acked, stored(t, r, record.TypeSpan))
	checkExact(t, "points", acked, storedPoints(t, r))
	checkExact(t, "exemplars", acked, stored(t, r, record.TypeExemplar))
}
