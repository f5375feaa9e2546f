package truth

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestJudge(t *testing.T) {
	dir := tempDir(t)
	write(t, dir+"/v3/model.bin", "x", time.Hour)
	h := newHealth(t, `{"version":"v3"}`)
	k := begin(t, Settings{}, Service{Name: "s", Healthz: []string{h.URL}, Path: dir + "/v3", Device: "cuda"})
	f := func(service string, c Claim, want string, details ...string) {
		t.Helper()
		ok, r, d := k.Judge(service, c)
		st := &State{Service: service, Validated: ok, Reason: r, Detail: d}
		is(t, st, want, details...)
	}
	is(t, refresh(t, k, "s"), "true")
	f("s", Claim{ModelVersion: "v3"}, "true")
	f("s", Claim{ModelVersion: "3", ConfiguredVersion: "v3", RealPath: dir + "/v3/", FileSHA256: strings.ToUpper(sum("x")), Device: "cuda:1"}, "true")
	f("s", Claim{ModelVersion: "v3", RealPath: dir + "/v3/model.bin"}, "true")
	f("s", Claim{ModelVersion: "v2"}, "false version.mismatch", "model version v2, configured is version v3")
	f("s", Claim{ModelVersion: "v3", ConfiguredVersion: "v2"}, "false version.mismatch", "v2 was configured")
	f("s", Claim{ConfiguredVersion: "v2"}, "false version.mismatch", "inquest knows version v3")
	f("s", Claim{ModelVersion: "v3", RealPath: dir + "/v2"}, "false path.mismatch", dir+"/v2")
	f("s", Claim{ModelVersion: "v3", RealPath: "/"}, "false path.mismatch")
	f("s", Claim{ModelVersion: "v3", FileSHA256: sum("y")}, "false file.changed", sum("y")[:12])
	f("s", Claim{ModelVersion: "v3", Device: "cpu"}, "false device.mismatch", "device cpu, configured is cuda")
	f("s", Claim{ModelVersion: "v3", Device: "cudax"}, "false device.mismatch")
	f("s", Claim{ModelVersion: "v3", Device: "cpu", Fallback: true}, "false device.fallback", "fell back to device cpu")
	f("s", Claim{ModelVersion: "latest"}, "unknown version.latest")
	f("s", Claim{}, "unknown version.latest")
	f("other", Claim{ModelVersion: "v3"}, "unknown service.unknown")
	f("other", Claim{ModelVersion: "v3", ConfiguredVersion: "v2"}, "false version.mismatch", "the record tells model version v3, and that version v2")

	// The state counts for every record.
	h.tells(`{"version":"v2"}`)
	refresh(t, k, "s")
	f("s", Claim{ModelVersion: "v3"}, "false version.mismatch", "the service tells version v2")
	f("s", Claim{ModelVersion: "latest"}, "false version.mismatch", "tells version v2 at")
	h.Close()
	refresh(t, k, "s")
	f("s", Claim{ModelVersion: "v3"}, "unknown healthz.unreachable")
	f("s", Claim{ModelVersion: "v2"}, "false version.mismatch")

	old := *k.State("s")
	old.Checked = time.Now().Add(-4 * time.Hour)
	k.watches["s"].state.Store(&old)
	f("s", Claim{ModelVersion: "v3", FileSHA256: sum("y")}, "unknown state.stale", "was looked at last at")
}

func TestJudgeBeforeTheFirstLook(t *testing.T) {
	k := &Checker{conf: Config{Interval: time.Second}, watches: map[string]*watch{}}
	k.watches["s"] = newWatch(k, Service{Name: "s", Version: "v3"})
	if ok, r, _ := k.Judge("s", Claim{ModelVersion: "v3"}); ok != nil || r != ReasonPending {
		t.Errorf("%v %s", ok, r)
	}
	if ok, r, _ := k.Judge("s", Claim{ModelVersion: "v2"}); ok == nil || *ok || r != ReasonVersionMismatch {
		t.Errorf("%v %s", ok, r)
	}
}

// TestJudgeWhileLooking reads states while looks go on; the race detector watches.
func TestJudgeWhileLooking(t *testing.T) {
	dir := tempDir(t)
	h := newHealth(t, `{"version":"v3"}`)
	k := begin(t, Settings{}, Service{Name: "s", Healthz: []string{h.URL}, Path: dir + "/v3"})
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					k.Judge("s", Claim{ModelVersion: "v3", FileSHA256: sum("0")})
					k.States()
				}
			}
		})
	}
	for i := range 20 {
		write(t, dir+"/v3/m", fmt.Sprint(i), 0)
		k.Loaded("s", Load{At: time.Now()})
		refresh(t, k, "s")
	}
	close(stop)
	wg.Wait()
}

func BenchmarkJudge(b *testing.B) {
	k := &Checker{conf: Config{Interval: time.Hour}, watches: map[string]*watch{}}
	w := newWatch(k, Service{Name: "s", Version: "v3"})
	w.state.Store(&State{
		Service: "s", Validated: yes(), Checked: time.Now(),
		Facts: Facts{ConfiguredVersion: "v3", Told: []Told{{URL: "http://s", Version: "v3"}}},
	})
	k.watches["s"] = w
	b.ReportAllocs()
	for b.Loop() {
		k.Judge("s", Claim{ModelVersion: "v3"})
	}
}
