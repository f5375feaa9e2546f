package logs

import (
	"testing"
	"time"

	"inquest/record"
	"inquest/sensor"
)

// TestMessagesBesidesRequests: many topics told outside requests are each found;
// names of topics are no templates to be merged.
func TestMessagesBesidesRequests(t *testing.T) {
	lines := []string{
		"Loading weights took 57.14 seconds",
		"Memory cgroup out of memory: Killed process 812 (python) total-vm:4194304kB",
		"connection pool exhausted",
		"connect to 10.0.0.7:6379: connection refused",
		"Queue is full, likely spans will be dropped.",
		"torch.OutOfMemoryError: CUDA out of memory.",
		"NVRM: Xid (PCI:0000:17:00): 79, GPU has fallen off the bus.",
		"Capturing CUDA graphs",
	}
	const slice = int64(time.Minute)
	measure := func(n int64, loud bool) *sensor.Profile {
		w := &sensor.Window{Range: sensor.Range{From: n * slice, To: (n + 1) * slice}}
		add := func(at int64, body string) {
			w.Loose = append(w.Loose, sensor.Log{Time: at, Service: "llm", Body: body})
		}
		for i := range int64(30) {
			at := n*slice + i*int64(time.Second)
			add(at, "ready")
			if loud && i < int64(len(lines)) {
				add(at, lines[i])
			}
		}
		p := sensor.NewProfile(w.Range)
		p.Logs = len(w.Loose)
		Streams{Table: Default()}.Measure(w, p)
		return p
	}
	var base []*sensor.Profile
	for n := range int64(20) {
		base = append(base, measure(n, false))
	}
	appeared := map[string]float64{}
	for _, x := range messages(Default(), base, measure(20, true)) {
		if x.Finding.Direction == record.DirectionAppeared {
			appeared[x.Finding.Kind] = x.Finding.Strength
		}
	}
	for _, kind := range []string{"message_weights_loading", "message_oom_kill", "message_pool_exhausted", "message_connect_failed", "message_gpu_oom", "message_gpu_error", "message_graph_capture"} {
		if p, ok := appeared[kind]; !ok || p > 0.01 {
			t.Errorf("%s: p = %v, found %v; want p ≤ 0.01", kind, p, ok)
		}
	}
	for _, x := range messages(Default(), base, measure(20, false)) {
		if x.Finding.Strength < 0.05 {
			t.Errorf("quiet log: %s p = %v", x.Finding.Kind, x.Finding.Strength)
		}
	}
}
