package sensor

import (
	"math"
	"strings"
	"testing"
)

// every returns a series with a point every 10 s.
func every(name string, labels map[string]string, values ...float64) Series {
	s := Series{Name: name, Labels: labels}
	for i, v := range values {
		s.Points = append(s.Points, Point{int64(i) * 10e9, v})
	}
	return s
}

func derived(t *testing.T, name string, in ...Series) Series {
	t.Helper()
	var found []Series
	for _, s := range Derive(in) {
		if s.Name == name {
			found = append(found, s)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d series %s of %d", len(found), name, len(in))
	}
	return found[0]
}

func wantValues(t *testing.T, s Series, want ...float64) {
	t.Helper()
	if len(s.Points) != len(want) {
		t.Fatalf("%s has %v, want %v", s.Name, s.Points, want)
	}
	for i, w := range want {
		if math.Abs(s.Points[i].Value-w) > 1e-9 {
			t.Errorf("%s point %d is %v, want %v", s.Name, i, s.Points[i].Value, w)
		}
	}
}

func TestUtilisationOfTwoSeries(t *testing.T) {
	f := func(name string, class Class, want float64, in ...Series) {
		t.Helper()
		s := derived(t, name, in...)
		wantValues(t, s, want)
		if a := s.About(); a.Class != class || a.Limit != 1 || a.Selector != s.Query || !strings.Contains(s.Query, in[0].Name) {
			t.Errorf("%s: %+v, query %q", name, a, s.Query)
		}
	}
	p, other := map[string]string{"k8s.pod.name": "p"}, map[string]string{"k8s.pod.name": "q"}
	f("k8s.pod.memory.usage_utilization", ClassMemory, 0.75,
		every("k8s.pod.memory.usage", p, 300),
		every("k8s.container.memory_limit", map[string]string{"k8s.pod.name": "p", "k8s.container.name": "a"}, 100),
		every("k8s.container.memory_limit", map[string]string{"k8s.pod.name": "p", "k8s.container.name": "b"}, 300),
		every("k8s.container.memory_limit", other, 7))
	f("container_memory_working_set_bytes_utilization", ClassMemory, 0.5,
		every("container_memory_working_set_bytes", map[string]string{"pod": "p", "container": "a", "job": "cadvisor"}, 200),
		every("kube_pod_container_resource_limits", map[string]string{"pod": "p", "container": "a", "resource": "memory", "job": "ksm"}, 400),
		every("kube_pod_container_resource_limits", map[string]string{"pod": "p", "container": "a", "resource": "cpu", "job": "ksm"}, 2),
		every("kube_pod_container_resource_limits", map[string]string{"pod": "p", "container": "b", "resource": "memory", "job": "ksm"}, 1))
	pool := func(state string) map[string]string {
		return map[string]string{"service.name": "api", "db.client.connection.pool.name": "main", "db.client.connection.state": state}
	}
	f("db.client.connection.count_utilization", ClassPool, 0.9,
		every("db.client.connection.count", pool("used"), 9), every("db.client.connection.count", pool("idle"), 1),
		every("db.client.connection.max", map[string]string{"service.name": "api", "db.client.connection.pool.name": "main"}, 10),
		every("db.client.connection.max", map[string]string{"service.name": "api", "db.client.connection.pool.name": "side"}, 3))
	f("redis_connected_clients_utilization", ClassConnections, 0.1,
		every("redis_connected_clients", map[string]string{"service": "redis"}, 10),
		every("redis_config_maxclients", map[string]string{"service": "redis"}, 100))
	g := map[string]string{"UUID": "GPU-1", "Hostname": "n"}
	f("DCGM_FI_DEV_FB_USED_utilization", ClassGPUMemory, 0.25,
		every("DCGM_FI_DEV_FB_USED", g, 20), every("DCGM_FI_DEV_FB_FREE", g, 60),
		every("DCGM_FI_DEV_FB_FREE", map[string]string{"UUID": "GPU-2", "Hostname": "n"}, 1))
	n := map[string]string{"instance": "n:9100", "job": "node"}
	f("node_memory_MemAvailable_bytes_utilization", ClassMemory, 0.9,
		every("node_memory_MemAvailable_bytes", n, 10), every("node_memory_MemTotal_bytes", n, 100))

	for _, s := range Derive([]Series{
		every("redis_memory_used_bytes", map[string]string{"service": "redis"}, 10),
		every("redis_memory_max_bytes", map[string]string{"service": "redis"}, 0), // none
		every("k8s.pod.memory.usage", p, 300), every("k8s.container.memory_limit", other, 100),
	}) {
		if strings.HasSuffix(s.Name, "_utilization") {
			t.Errorf("a utilisation without a limit: %+v", s)
		}
	}
}

func TestShareOfHits(t *testing.T) {
	l := map[string]string{"model_name": "m"}
	s := derived(t, "vllm:prefix_cache_hit_ratio",
		every("vllm:prefix_cache_hits_total", l, 0, 30, 30, 40), every("vllm:prefix_cache_queries_total", l, 0, 40, 40, 140))
	wantValues(t, s, 0.75, 0.1) // nothing was asked for in between
	if s.Class != ClassCacheHit {
		t.Errorf("class %s", s.Class)
	}
	wantValues(t, derived(t, "redis_keyspace_hit_ratio",
		every("redis_keyspace_hits_total", l, 0, 90), every("redis_keyspace_misses_total", l, 0, 10)), 0.9)
	out := Derive([]Series{
		every("vllm:prompt_tokens_cached_total", l, 0, 25), every("vllm:prompt_tokens_total", l, 0, 100),
		every("redis_keyspace_hits_total", l, 0, 90), every("redis_keyspace_misses_total", l, 0, 10),
	})
	names := map[string]Class{}
	for i := range out {
		names[out[i].Name] = out[i].About().Class
	}
	if names["vllm:prompt_tokens_cached_ratio"] != ClassCached || names["vllm:prompt_tokens_total"] != ClassTokens {
		t.Errorf("got %v", names)
	}
	if _, ok := names["redis_keyspace_misses_total"]; ok {
		t.Error("a count of misses stands beside the share of hits")
	}
}

func TestTail(t *testing.T) {
	le := func(v string) map[string]string { return map[string]string{"service": "s", "le": v} }
	s := derived(t, "ttft_seconds_p99",
		every("ttft_seconds_bucket", le("1"), 0, 98, 0, 2), every("ttft_seconds_bucket", le("2"), 0, 100, 0, 2),
		every("ttft_seconds_bucket", le("+Inf"), 0, 100, 1, 3))
	// 98 of 100 up to 1 s and 2 more up to 2 s; then one above all bounds, after a
	// restart; then two up to 1 s.
	wantValues(t, s, 1.5, 2, 0.99)
	if s.Class != ClassTail || s.Labels["le"] != "" || !strings.HasPrefix(s.Query, "histogram_quantile(0.99") {
		t.Errorf("got %+v", s)
	}
	s = derived(t, "vllm:request_prompt_tokens_p99",
		every("vllm:request_prompt_tokens_bucket", le("100"), 0, 0), every("vllm:request_prompt_tokens_bucket", le("200"), 0, 10),
		every("vllm:request_prompt_tokens_bucket", le("+Inf"), 0, 10))
	wantValues(t, s, 199)
	if s.Class != ClassInput {
		t.Errorf("class %s", s.Class)
	}
	for _, s := range Derive([]Series{every("lmcache:size_bucket", le("1"), 0, 1), every("lmcache:size_bucket", le("+Inf"), 0, 1)}) {
		t.Errorf("buckets of a size are read: %+v", s)
	}
}

func TestTypesLie(t *testing.T) {
	gauge := every("requests_total", nil, 5, 3, 6, 2, 7, 1)
	wantValues(t, derived(t, "requests_total", gauge), 5, 3, 6, 2, 7, 1)
	declared := every("things_total", nil, 5, 6)
	declared.Gauge = true
	wantValues(t, derived(t, "things_total", declared), 5, 6)
	wantValues(t, derived(t, "ray_node_mem_total", every("ray_node_mem_total", nil, 64, 64)), 64, 64)
	// A histogram in spite of its end, and the number of its requests.
	in := []Series{every("vllm:iteration_tokens_total_sum", nil, 0, 300), every("vllm:iteration_tokens_total_count", nil, 0, 10)}
	wantValues(t, derived(t, "vllm:iteration_tokens_total", in...), 30)
	count := derived(t, "http_request_duration_seconds_count",
		every("http_request_duration_seconds_count", nil, 0, 10), every("http_request_duration_seconds_sum", nil, 0, 1))
	if c := count.About().Class; c != ClassThroughput {
		t.Errorf("the number of requests is %s", c)
	}
	// The last XID stays for good; only a new one is an error.
	wantValues(t, derived(t, "DCGM_FI_DEV_XID_ERRORS", every("DCGM_FI_DEV_XID_ERRORS", nil, 45, 45, 79, 79)), 0, 0, 79, 79)
	if s := derived(t, "DCGM_FI_DEV_FB_USED", every("DCGM_FI_DEV_FB_USED", nil, 9223372036854775794, 7)); s.Unit != "MiBy" || len(s.Points) != 1 {
		t.Errorf("got %+v", s)
	}
	for name, want := range map[string]string{
		"milvus_proxy_req_latency_sum": "ms", "tgi_request_duration": "s", "nv_inference_queue_duration_us": "us",
		"process_cpu_seconds_total": "s", "up": "", "DCGM_FI_DEV_GPU_UTIL": "%",
	} {
		if got := UnitOf(name); got != want {
			t.Errorf("the unit of %s is %q, want %q", name, got, want)
		}
	}
}

func TestFragmentation(t *testing.T) {
	l := map[string]string{"service": "llm"}
	s := derived(t, "torch_cuda_memory_fragmentation_bytes",
		every("torch_cuda_memory_reserved_bytes", l, 80), every("torch_cuda_memory_allocated_bytes", l, 60))
	wantValues(t, s, 0.25)
	if s.Class != ClassFragments || s.Unit != "1" {
		t.Errorf("got %+v", s)
	}
}
