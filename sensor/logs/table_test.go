package logs

import (
	"slices"
	"testing"
)

// TestTopics reads lines as their programs write them.
func TestTopics(t *testing.T) {
	table := Default()
	for _, c := range []struct{ line, topic string }{
		{"This model's maximum context length is 8192 tokens. However, you requested 9000 tokens.", "context_overflow"},
		{"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 400 MiB.", "gpu_oom"},
		{"Memory cgroup out of memory: Killed process 812 (python) total-vm:4194304kB", "oom_kill"},
		{"NVRM: Xid (PCI:0000:17:00): 79, pid=4242, name=python, GPU has fallen off the bus.", "gpu_error"},
		{"redis.exceptions.ConnectionError: ERR max number of clients reached", "pool_exhausted"},
		{"Queue is full, likely spans will be dropped.", "telemetry_dropped"},
		{"Enforce eager mode: CUDA graph is disabled (enforce_eager=True)", "no_graph"},
		{"connect to 10.0.0.7:6379: connection refused", "connect_failed"},
	} {
		r := newReader(table)
		r.begin()
		r.read(c.line)
		var got []string
		for _, i := range r.topics {
			got = append(got, table.names[i])
		}
		if !slices.Contains(got, c.topic) {
			t.Errorf("%q speaks of %v, want %s among them", c.line, got, c.topic)
		}
	}
	r := newReader(table)
	r.begin()
	if r.read("chat done: 312 prompt tokens, 80 completion tokens"); len(r.topics) != 0 {
		t.Errorf("an ordinary line speaks of %v", r.topics)
	}
}
