package replay

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"inquest/bench/nezha"
	"inquest/recorder"
	"inquest/sensor/stored"
	"inquest/verdict"
)

// dataDir is where public recordings lie, when they are there.
func dataDir(t *testing.T) string {
	t.Helper()
	root := os.Getenv("INQUEST_DATA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared", "data")
	}
	dir := filepath.Join(root, "nezha-trainticket")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no recording at %s: set INQUEST_DATA to the folder that holds nezha-trainticket", dir)
	}
	return dir
}

// TestStoredVerdict holds inquests on a recording twice: as it is read from its
// files, and after it went through the recorder. Both must name the same cause.
// How sure they are may differ at the margin: Prometheus' data model does not
// keep units in braces, by which some metrics are understood.
func TestStoredVerdict(t *testing.T) {
	dir := dataDir(t)
	if testing.Short() {
		t.Skip("records two days")
	}
	ctx := t.Context()
	sources, err := nezha.Sources(ctx, dir, nezha.Change{})
	if err != nil {
		t.Fatal(err)
	}
	const date = "2023-01-30"
	src := sources[date]
	cfg := recorder.DefaultConfig()
	cfg.Dir, cfg.Retention, cfg.MinFreeBytes = t.TempDir(), 100_000*time.Hour, 64<<20
	rec, err := recorder.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := rec.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	from, to := src.Bounds()
	if err := nezha.Requests(ctx, dir, func(ctx context.Context, r nezha.Request) error {
		switch {
		case r.Traces != nil:
			return rec.Traces(ctx, *r.Traces)
		case r.Logs != nil:
			return rec.Logs(ctx, *r.Logs)
		default:
			return rec.Metrics(ctx, *r.Metrics)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if err := rec.CatchUp(ctx); err != nil {
		t.Fatal(err)
	}
	cases, err := nezha.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	for _, c := range cases {
		if c.Date != date || asked == 6 {
			continue
		}
		asked++
		q := verdict.Question{
			From: c.Minute().Add(-90 * time.Second), To: c.Minute().Add(3 * time.Minute),
			Baseline: []verdict.Range{{From: from, To: to}},
		}
		want, err := verdict.Investigate(ctx, src, q)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		got, err := verdict.Investigate(ctx, stored.New(rec.Records(), rec.Samples()), q)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %s (from files: %s), %.2f s", c.ID(), got.Summary, want.Summary, time.Since(start).Seconds())
		if (got.Cause == nil) != (want.Cause == nil) {
			t.Errorf("%s: %s from the stores, %s from the files", c.ID(), got.State, want.State)
			continue
		}
		if got.Cause != nil && (got.Cause.Entity != want.Cause.Entity || got.Cause.Fault != want.Cause.Fault) {
			t.Errorf("%s: %s at %s from the stores, %s at %s from the files", c.ID(), got.Cause.Fault, got.Cause.Entity, want.Cause.Fault, want.Cause.Entity)
		}
	}
	if asked == 0 {
		t.Error("no case was judged")
	}
}
