package sensor

import (
	"testing"

	"inquest/record"
)

func TestOwnerIsWhatIsMeasured(t *testing.T) {
	f := func(name string, want record.Entity, labels map[string]string) {
		t.Helper()
		s := Series{Name: name, Labels: labels}
		if got := s.About().Owner; got != want {
			t.Errorf("%s %v is of %v, want %v", name, labels, got, want)
		}
	}
	f("container_memory_rss", Pod("llm-0"), map[string]string{"service.name": "cadvisor", "k8s.pod.name": "cadvisor-x", "pod": "llm-0"})
	f("kube_pod_status_phase", Pod("llm-0"), map[string]string{"job": "kube-state-metrics", "pod": "ksm-x", "exported_pod": "llm-0"})
	f("DCGM_FI_DEV_GPU_UTIL", record.Entity{Kind: record.EntityGPU, Name: "GPU-1", Of: "n"},
		map[string]string{"service.name": "dcgm-exporter", "UUID": "GPU-1", "Hostname": "n", "pod": "llm-0"})
	f("node_load1", NodeEntity("n:9100"), map[string]string{"job": "node", "instance": "n:9100"})
	f("node_load1", NodeEntity("n"), map[string]string{"job": "node", "instance": "n:9100", "pod": "node-exporter-x", "node": "n"})
	f("redis_connected_clients", Service("redis"), map[string]string{"service.name": "redis-exporter", "k8s.pod.name": "redis-exporter-x"})
	f("redis_connected_clients", Pod("redis-0"), map[string]string{"service.name": "redis", "k8s.pod.name": "redis-0"})
	f("go_goroutines", Pod("redis-exporter-x"), map[string]string{"service.name": "redis-exporter", "k8s.pod.name": "redis-exporter-x"})
	f("vllm:num_requests_running", Service("llm"), map[string]string{"job": "llm", "instance": "10.0.0.7:8000", "model_name": "m"})
	f("lonely", record.Entity{}, map[string]string{"instance": "x"})
}

func TestObservers(t *testing.T) {
	serves := func(pod, service string) record.Edge {
		return record.Edge{Kind: record.EdgeServes, From: Pod(pod), To: Service(service)}
	}
	f := func(want []string, edges ...record.Edge) {
		t.Helper()
		got := Observers(edges)
		if len(got) != len(want) {
			t.Errorf("observers %v, want %v", got, want)
		}
		for _, w := range want {
			if !got[Service(w)] {
				t.Errorf("%s is not seen to be an observer", w)
			}
		}
	}
	call := record.Edge{Kind: record.EdgeCalls, From: Service("api"), To: Service("llm")}
	f([]string{"cadvisor", "ksm"},
		serves("api-0", "api"), serves("llm-0", "llm"), serves("llm-1", "llm"),
		serves("api-0", "cadvisor"), serves("llm-0", "cadvisor"), serves("llm-1", "cadvisor"),
		serves("api-0", "ksm"), serves("llm-0", "ksm"), serves("llm-1", "ksm"), call)
	// Agents of one machine each.
	f([]string{"agent-1", "agent-2"}, serves("llm-0", "llm"), serves("llm-1", "llm"), serves("llm-0", "agent-1"), serves("llm-1", "agent-2"), call)
	// A service that has no metrics of its own is known by its calls.
	f([]string{"kubelet"}, serves("llm-0", "llm"), serves("llm-0", "kubelet"), call)
	// No claims on others.
	f(nil, serves("api-0", "api"), serves("llm-0", "llm"), serves("llm-1", "llm"), call)
	f(nil, serves("llm-0", "a"), serves("llm-0", "b"))
}
