package truth

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"inquest/record"
)

func TestVersionTold(t *testing.T) {
	h := newHealth(t, "")
	k := begin(t, Settings{}, Service{Name: "s", Healthz: []string{h.URL + "/healthz"}, Version: "v3"})
	f := func(body, want string, details ...string) {
		t.Helper()
		h.tells("%s", body)
		is(t, refresh(t, k, "s"), want, details...)
	}
	f(`{"version":"v3"}`, "true")
	f(`{"version":"3"}`, "true")
	f(`{"model_version":"v3"}`, "true")
	f(`{"modelVersion":"v3"}`, "true")
	f(`{"model":{"version":3}}`, "true")
	f(`{"model.version":"v3"}`, "true")
	f(`{"version":"risk:v3"}`, "true")
	f(`{"version":"v2"}`, "false version.mismatch", "s tells version v2 at "+h.URL, "configured is version v3")
	f(`{"version":"latest"}`, "unknown version.latest", `version "latest"`)
	f(`{"version":""}`, "unknown version.latest", "tells no version", "version_paths")
	f(`{"status":"ok"}`, "unknown version.latest")
	f(`ok`, "unknown version.latest")
	f(`[1,2`, "unknown version.latest")
	f(`{"version":{"a":1}}`, "unknown version.latest")
	f(`{"pad":"`+strings.Repeat("x", mostAnswer)+`"}`, "unknown healthz.unreachable", "above the limit of 65536 bytes")
	h.mu.Lock()
	h.status = 503
	h.mu.Unlock()
	f(`{"version":"v3"}`, "unknown healthz.unreachable", "HTTP status 503")
	h.mu.Lock()
	h.status = 302
	h.mu.Unlock()
	f(``, "unknown healthz.unreachable", "302")
	h.Close()
	f(``, "unknown healthz.unreachable", "refused")
}

func TestSlowHealthz(t *testing.T) {
	h := newHealth(t, `{"version":"v3"}`)
	h.slow = time.Minute
	c := Config{Interval: time.Hour, Timeout: 50 * time.Millisecond, Services: []Service{{Name: "s", Healthz: []string{h.URL + "/?token=secret"}, Version: "v3"}}}
	k, err := New(c, Settings{})
	must(t, err)
	defer k.Close(context.Background())
	st := refresh(t, k, "s")
	is(t, st, "unknown healthz.unreachable", "does not answer within 50ms")
	if strings.Contains(fmt.Sprintf("%+v", *st), "secret") {
		t.Errorf("a secret is shown: %+v", *st)
	}
}

func TestReplicas(t *testing.T) {
	a, b := newHealth(t, `{"version":"v3"}`), newHealth(t, `{"version":"v3"}`)
	k := begin(t, Settings{}, Service{Name: "s", Healthz: []string{a.URL, b.URL}, Version: "v3"})
	is(t, refresh(t, k, "s"), "true")
	b.tells(`{"version":"v2"}`)
	is(t, refresh(t, k, "s"), "false version.mismatch", b.URL)
	b.Close()
	is(t, refresh(t, k, "s"), "unknown healthz.unreachable")
	a.tells(`{"version":"v1"}`)
	is(t, refresh(t, k, "s"), "false version.mismatch", a.URL) // what contradicts counts more
}

// TestSymlink has the field's case: the configured folder is a link to another
// version, and the service tells the version that it was configured with.
func TestSymlink(t *testing.T) {
	dir := tempDir(t)
	write(t, dir+"/models/risk/v2/model.onnx", "two", time.Hour)
	write(t, dir+"/models/risk/v4/model.onnx", "four", time.Hour)
	must(t, os.Symlink("v2", dir+"/models/risk/v3"))
	h := newHealth(t, `{"version":"v3"}`)
	var got heard
	k := begin(t, got.settings(), Service{Name: "risk-api", Model: "risk", Healthz: []string{h.URL}, Path: dir + "/models/risk/v3"})
	st := refresh(t, k, "risk-api")
	is(t, st, "false path.symlink", "leads through a symbolic link to "+dir+"/models/risk/v2", "version v2 of risk", "configured is version v3")
	if f := st.Facts; f.RealPath != dir+"/models/risk/v2" || f.PathVersion != "v2" || f.ConfiguredVersion != "v3" || f.Files != 1 {
		t.Errorf("facts %+v", f)
	}
	// The right version is put there.
	write(t, dir+"/models/risk/v3.new/model.onnx", "three", time.Hour)
	must(t, os.Remove(dir+"/models/risk/v3"))
	must(t, os.Rename(dir+"/models/risk/v3.new", dir+"/models/risk/v3"))
	st = refresh(t, k, "risk-api")
	is(t, st, "false file.changed", "model.onnx had sha256 "+sum("two")[:12]) // nobody told of a restart
	k.Loaded("risk-api", Load{At: time.Now(), SHA256: sum("three")})
	is(t, refresh(t, k, "risk-api"), "true")

	want := "path_symlink appeared resources model_version:risk/v2, file_changed appeared resources model_version:risk/v3"
	if s := strings.Join(got.kinds(), ", "); !strings.HasPrefix(s, "path_symlink appeared resources model_version:risk/v2, ") ||
		!strings.Contains(s, "path_symlink vanished") || !strings.Contains(s, "file_changed appeared") || !strings.HasSuffix(s, "file_changed vanished resources model_version:risk/v3") {
		t.Errorf("findings %s, want as %s", s, want)
	}
	got.mu.Lock()
	defer got.mu.Unlock()
	if len(got.alerts) != 2 || got.alerts[0].Reason != "path.symlink" || got.alerts[0].Service != "risk-api" || got.alerts[0].Severity != "error" {
		t.Errorf("alerts %+v", got.alerts)
	}
	f := got.findings[0]
	if f.Onset == nil || f.OnsetErrorSeconds != 0 || f.From.After(*f.Onset) || f.Sensor != Sensor || f.Strength <= 0 || f.Strength > 0.01 {
		t.Errorf("finding %+v", f)
	}
}

// TestLinkTurned has a service that loaded through a link which was turned to a
// newer version afterwards.
func TestLinkTurned(t *testing.T) {
	dir := tempDir(t)
	write(t, dir+"/v2/m.bin", "two", time.Hour)
	write(t, dir+"/v3/m.bin", "three", time.Hour)
	must(t, os.Symlink("v2", dir+"/current"))
	h := newHealth(t, `{"version":"v2"}`)
	k := begin(t, Settings{}, Service{Name: "s", Healthz: []string{h.URL}, Path: dir + "/current"})
	is(t, refresh(t, k, "s"), "true")
	must(t, os.Remove(dir+"/current"))
	must(t, os.Symlink("v3", dir+"/current"))
	is(t, refresh(t, k, "s"), "false version.mismatch", "tells version v2", "its real path tells version v3")
}

func TestHubCache(t *testing.T) {
	const rev, other = "0123456789abcdef0123456789abcdef01234567", "fedcba9876543210fedcba9876543210fedcba98"
	repo := tempDir(t) + "/models--org--name"
	blob := repo + "/blobs/" + sum("weights")
	write(t, blob, "weights", time.Hour)
	write(t, repo+"/refs/main", rev, time.Hour)
	must(t, os.MkdirAll(repo+"/snapshots/"+rev, 0o755))
	must(t, os.Symlink("../../blobs/"+sum("weights"), repo+"/snapshots/"+rev+"/model.safetensors"))
	folder := repo + "/snapshots/" + rev
	k := begin(t, Settings{},
		Service{Name: "rev", Path: folder, Version: rev[:12]},
		Service{Name: "file", Path: folder + "/model.safetensors", Version: rev},
		Service{Name: "branch", Path: folder, Version: "main"},
		Service{Name: "other", Path: folder, Version: other})
	st := refresh(t, k, "rev")
	is(t, st, "true")
	if !st.Facts.hashes[sum("weights")] {
		t.Error("a linked file was not hashed")
	}
	is(t, refresh(t, k, "file"), "true")
	is(t, refresh(t, k, "branch"), "true")
	if ok, r, d := k.Judge("branch", Claim{ModelVersion: rev}); ok == nil || !*ok {
		t.Errorf("a revision of the branch: %s %s", r, d)
	}
	is(t, refresh(t, k, "other"), "false version.mismatch", rev)
	write(t, repo+"/refs/main", other, time.Hour)
	is(t, refresh(t, k, "branch"), "false version.mismatch", rev, "configured is version main")
}

func TestFileChangedAfterLoad(t *testing.T) {
	dir := tempDir(t)
	model := dir + "/v3/model.onnx"
	write(t, model, "good", time.Hour)
	h := newHealth(t, "")
	h.tells(`{"version":"v3","loaded_at":%q}`, time.Now().Add(-time.Minute).Format(time.RFC3339))
	must(t, os.Chtimes(model, time.Now().Add(-time.Hour), time.Now().Add(-time.Hour)))
	var got heard
	k := begin(t, got.settings(), Service{Name: "s", Healthz: []string{h.URL}, Path: model, SHA256: sum("good")})
	st := refresh(t, k, "s")
	is(t, st, "true")
	if st.Facts.SHA256 != sum("good") || st.Facts.LoadedBy != loadedByHealthz {
		t.Errorf("facts %+v", st.Facts)
	}
	write(t, model, "evil", 0)
	is(t, refresh(t, k, "s"), "false file.mismatch", "configured is "+sum("good")[:12])
	if st := k.State("s"); len(st.Problems) != 2 || st.Problems[1].Reason != ReasonFileChanged {
		t.Errorf("problems %+v", st.Problems)
	}
	// The same size and times do not hide it.
	write(t, model, "good", time.Hour)
	is(t, refresh(t, k, "s"), "true")
	write(t, model, "evil", time.Hour)
	is(t, refresh(t, k, "s"), "false file.mismatch")
	if s := strings.Join(got.kinds(), ", "); !strings.Contains(s, "file_changed appeared resources model_version:s/v3") {
		t.Errorf("findings %s", s)
	}
}

// TestChangedBeforeFirstLook tells by the times what inquest has not seen.
func TestChangedBeforeFirstLook(t *testing.T) {
	f := func(body string, age time.Duration, l Load, want string, details ...string) {
		t.Helper()
		dir := tempDir(t)
		write(t, dir+"/v3/model.bin", "x", age)
		write(t, dir+"/v3/old.bin", "y", 100*time.Hour)
		h := newHealth(t, body)
		k := begin(t, Settings{}, Service{Name: "s", Healthz: []string{h.URL}, Path: dir + "/v3"})
		k.Loaded("s", l)
		is(t, refresh(t, k, "s"), want, details...)
	}
	ago := func(d time.Duration) string { return time.Now().Add(-d).UTC().Format(time.RFC3339) }
	day := 24 * time.Hour
	f(`{"version":"v3"}`, time.Hour, Load{}, "true") // nobody tells a load
	f(fmt.Sprintf(`{"version":"v3","loaded_at":%q}`, ago(2*time.Hour)), time.Hour, Load{}, "false file.changed", "model.bin was written at", "hash at load is not known")
	f(fmt.Sprintf(`{"version":"v3","loaded_at":%d}`, time.Now().Add(-2*time.Hour).Unix()), time.Hour, Load{}, "false file.changed")
	f(fmt.Sprintf(`{"version":"v3","uptime_seconds":%d}`, 7200), time.Hour, Load{}, "false file.changed", "process start")
	f(fmt.Sprintf(`{"version":"v3","uptime_seconds":%d}`, 60), time.Hour, Load{}, "true")
	// The file's own time of change is now, after the load: its hash decides.
	f(fmt.Sprintf(`{"version":"v3","started_at":%q}`, ago(day)), 2*day, Load{}, "unknown file.touched", "metadata changed after")
	f(`{"version":"v3"}`, 2*day, Load{At: time.Now().Add(-day)}, "unknown file.touched", "model_load event")
	f(`{"version":"v3"}`, 2*day, Load{At: time.Now().Add(-day), SHA256: strings.ToUpper(sum("x"))}, "true")
	f(`{"version":"v3"}`, 2*day, Load{At: time.Now().Add(-day), SHA256: sum("z")}, "false file.changed", "that the service told when it loaded it")
	f(`{"version":"v3"}`, time.Hour, Load{At: time.Now().Add(-day)}, "false file.changed")
}

// TestRestartIsANewLoad has files replaced on purpose, and then a restart.
func TestRestartIsANewLoad(t *testing.T) {
	dir := tempDir(t)
	write(t, dir+"/v3/a.bin", "one", 0)
	h := newHealth(t, "")
	started := func(at time.Time) { h.tells(`{"version":"v3","start_time":%d}`, at.UnixMilli()) }
	started(time.Now())
	k := begin(t, Settings{}, Service{Name: "s", Healthz: []string{h.URL}, Path: dir + "/v3"})
	is(t, refresh(t, k, "s"), "true")
	write(t, dir+"/v3/a.bin", "fetched", 0) // while it starts
	is(t, refresh(t, k, "s"), "true")
	if !k.watches["s"].base.settling {
		t.Error("the baseline is final within the grace time")
	}
	h.Close() // does not answer: no restart
	write(t, dir+"/v3/a.bin", "one", 0)
	is(t, refresh(t, k, "s"), "unknown healthz.unreachable")
	h2 := newHealth(t, fmt.Sprintf(`{"version":"v3","loaded_at":%d}`, time.Now().Unix()+1))
	k.watches["s"].s.Healthz[0] = h2.URL // no look runs now
	is(t, refresh(t, k, "s"), "true")
	write(t, dir+"/v3/a.bin", "two", 0)
	is(t, refresh(t, k, "s"), "false file.changed")
	h2.tells(`{"version":"v3","loaded_at":%d}`, time.Now().Unix()+60)
	is(t, refresh(t, k, "s"), "true")
}

func TestFolder(t *testing.T) {
	dir := tempDir(t) + "/v3"
	const n = 300
	for i := range n {
		write(t, fmt.Sprintf("%s/part%02d/w%03d.bin", dir, i%7, i), fmt.Sprint("weights ", i), time.Hour)
	}
	write(t, dir+"/.cache/lock", "x", 0)
	write(t, dir+"/run.log", "x", 0)
	must(t, os.Symlink("..", dir+"/part00/circle"))
	must(t, syscall.Mkfifo(dir+"/pipe", 0o644))
	k := begin(t, Settings{}, Service{Name: "s", Path: dir})
	st := refresh(t, k, "s")
	is(t, st, "true")
	if st.Facts.Files != n {
		t.Errorf("%d files, want %d", st.Facts.Files, n)
	}
	write(t, dir+"/run.log", "more", 0) // no part of the model
	is(t, refresh(t, k, "s"), "true")
	write(t, dir+"/part03/w003.bin", "changed", 0)
	write(t, dir+"/part00/new.bin", "new", 0)
	must(t, os.Remove(dir+"/part01/w001.bin"))
	is(t, refresh(t, k, "s"), "false file.changed", "part00/new.bin is new", "part03/w003.bin had sha256 ", "part01/w001.bin is gone")
	must(t, os.RemoveAll(dir))
	is(t, refresh(t, k, "s"), "unknown path.missing", "does not exist")
	must(t, os.MkdirAll(dir, 0o755))
	is(t, refresh(t, k, "s"), "unknown path.missing", "holds no file")
}

func TestFolderLimits(t *testing.T) {
	dir := tempDir(t)
	for i := range 20 {
		write(t, fmt.Sprintf("%s/%d", dir, i), "x", 0)
	}
	deep := tempDir(t)
	must(t, os.MkdirAll(deep+strings.Repeat("/d", maxDepth+2), 0o755))
	c := Config{Interval: time.Hour, MaxFiles: 19, Services: []Service{
		{Name: "many", Path: dir}, {Name: "deep", Path: deep}, {Name: "pipe", Path: deep + "/pipe"},
	}}
	must(t, syscall.Mkfifo(deep+"/pipe", 0o644))
	k, err := New(c, Settings{})
	must(t, err)
	defer k.Close(context.Background())
	is(t, refresh(t, k, "many"), "unknown path.unreadable", "more than 19 files", "max_files")
	is(t, refresh(t, k, "deep"), "unknown path.unreadable", "64 deep")
	is(t, refresh(t, k, "pipe"), "unknown path.unreadable", "neither a file nor a folder")
}

func TestPathErrors(t *testing.T) {
	dir := tempDir(t)
	must(t, os.Symlink("loop", dir+"/loop"))
	must(t, os.Symlink("nowhere", dir+"/v3"))
	write(t, dir+"/f/file", "x", 0)
	must(t, os.Symlink("nowhere", dir+"/f/gone"))
	k := begin(t, Settings{}, Service{Name: "loop", Path: dir + "/loop"}, Service{Name: "dangling", Path: dir + "/v3"}, Service{Name: "part", Path: dir + "/f"})
	is(t, refresh(t, k, "loop"), "unknown path.unreadable")
	is(t, refresh(t, k, "dangling"), "unknown path.missing")
	is(t, refresh(t, k, "part"), "unknown file.changing", "leads nowhere")
}

// TestFileVanishesWhileHashed replaces and removes files between the listing and
// the hashing.
func TestFileVanishesWhileHashed(t *testing.T) {
	dir := tempDir(t)
	for _, n := range []string{"gone", "replaced", "stays"} {
		write(t, dir+"/"+n, n, time.Hour)
	}
	tr, p := readTree(dir, 10, nil)
	if p != nil {
		t.Fatal(p)
	}
	must(t, os.Remove(dir+"/gone"))
	write(t, dir+"/tmp", "other", time.Hour)
	must(t, os.Rename(dir+"/tmp", dir+"/replaced"))
	got := newHasher(1e9, 1).all(context.Background(), tr.files)
	sums, missing, p := tr.sums(got)
	if p == nil || p.Reason != ReasonFileChanging || missing != 0 || len(sums) != 1 || sums["stays"] != sum("stays") {
		t.Errorf("sums %v, %d missing, %+v", sums, missing, p)
	}
}

func TestHashRate(t *testing.T) {
	dir := tempDir(t)
	write(t, dir+"/m", strings.Repeat("x", 3<<20), time.Hour)
	tr, _ := readTree(dir, 10, nil)
	begin := time.Now()
	got := newHasher(10<<20, 1).all(context.Background(), tr.files)
	if d := time.Since(begin); d < 250*time.Millisecond || d > 5*time.Second {
		t.Errorf("3 MiB at 10 MiB/s took %s", d)
	}
	if len(got) != 1 {
		t.Errorf("%v", got)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if got := newHasher(1, 1).all(ctx, tr.files); len(got) != 0 {
		t.Error("hashed after the end")
	}
}

// TestPending shows the state while a large file is hashed, and that Close does
// not wait for it.
func TestPending(t *testing.T) {
	dir := tempDir(t)
	write(t, dir+"/v3/m", strings.Repeat("x", 8<<20), time.Hour)
	h := newHealth(t, `{"version":"v3"}`)
	c := Config{Interval: time.Hour, HashRate: 1_000_000, Services: []Service{{Name: "s", Path: dir + "/v3", Healthz: []string{h.URL}}}}
	k, err := New(c, Settings{})
	must(t, err)
	for end := time.Now().Add(5 * time.Second); k.State("s").Checked.IsZero() && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	is(t, k.State("s"), "unknown pending", "1 of 1 files")
	if ok, r, _ := k.Judge("s", Claim{ModelVersion: "v2"}); ok == nil || *ok || r != ReasonVersionMismatch {
		t.Error("a record that contradicts must be found while files are hashed")
	}
	begin := time.Now()
	must(t, k.Close(context.Background()))
	if d := time.Since(begin); d > 3*time.Second {
		t.Errorf("Close took %s", d)
	}
}

func TestPeriodicLooks(t *testing.T) {
	h := newHealth(t, `{"version":"v3"}`)
	var got heard
	c := Config{Interval: 20 * time.Millisecond, Services: []Service{{Name: "s", Healthz: []string{h.URL}, Version: "v3"}}}
	k := start(c.withDefaults(), got.settings())
	defer k.Close(context.Background())
	until := func(want string) {
		t.Helper()
		for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
			if s := got.kinds(); len(s) > 0 && s[len(s)-1] == want {
				return
			}
		}
		t.Fatalf("waited in vain for %q, heard %q", want, got.kinds())
	}
	h.tells(`{"version":"v2"}`)
	until("version_mismatch appeared logs model_version:s/v2")
	h.tells(`{"version":"v3"}`)
	until("version_mismatch vanished logs model_version:s/v2")
	h.Close()
	until("healthz_unreachable appeared metrics service:s")
	n := len(got.kinds())
	time.Sleep(200 * time.Millisecond)
	if len(got.kinds()) != n {
		t.Errorf("told again: %q", got.kinds()[n:])
	}
	got.mu.Lock()
	defer got.mu.Unlock()
	for _, f := range got.findings {
		if f.Text == "" || f.To.Before(f.From) || f.Onset == nil || f.Strength <= 0 || f.Strength > 1 || f.Direction == "" {
			t.Errorf("finding %+v", f)
		}
	}
	if f := got.findings[1]; f.Direction != record.DirectionVanished || !strings.Contains(f.Text, "fits its configuration again. Before: s tells version v2") {
		t.Errorf("text %q", f.Text)
	}
}
