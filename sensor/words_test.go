package sensor

import (
	"strings"
	"testing"

	"inquest/record"
)

func TestTemplate(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if got := Template(text); got != want {
			t.Errorf("Template(%q) = %q, want %q", text, got, want)
		}
	}
	f("request 17 took 3.5 ms", "request <*> took <*> ms")
	f("user=anna status=200 done", "user=<*> status=<*> done")
	f("ids [1, 2, 3] found", "ids <*> found")
	f("ids [1, 2, 3, 4, 5] found", "ids <*> found")
	f("connect to 10.0.0.7:6379 failed", "connect to <*> failed")
	f("boom\n\tat x.y(Z.java:3)", "boom")
	f("", "")
}

func TestMergeTemplates(t *testing.T) {
	var in []string
	for _, city := range strings.Fields("rome oslo bonn bern lima cairo delhi quito paris tunis") {
		in = append(in, "weather in "+city+" read")
	}
	in = append(in, "weather service started")
	m := MergeTemplates(in)
	if m["weather in oslo read"] != "weather in <*> read" || m["weather service started"] != "weather service started" {
		t.Errorf("merged %v", m)
	}
	few := MergeTemplates([]string{"cache hit", "cache miss"})
	if few["cache hit"] != "cache hit" {
		t.Errorf("a choice of two is no value: %v", few)
	}
}

func TestOperationName(t *testing.T) {
	f := func(name, want string) {
		t.Helper()
		if got := OperationName(name); got != want {
			t.Errorf("OperationName(%q) = %q, want %q", name, got, want)
		}
	}
	f("GET /users/17/orders", "GET /users/*/orders")
	f("GET /v1/models", "GET /v1/models")
	f("/o/4d2a46c7-71cb-4cf1-b5bb-b68406d9da6f", "/o/*")
	f("SELECT ts.trip2", "SELECT ts.trip2")
}

func TestNamedService(t *testing.T) {
	names := map[string]bool{"order-service": true, "search": true, "cart-service": true}
	f := func(text, want string) {
		t.Helper()
		if got := NamedService(text, "front", names); got != want {
			t.Errorf("NamedService(%q) = %q, want %q", text, got, want)
		}
	}
	f("No instances available for order-service", "order-service")
	f("call http://order-service.prod:80/x failed", "order-service")
	f("the search failed", "") // an ordinary word
	f("POST http://search:8080/q: refused", "search")
	f("order-service and cart-service", "")
	f("", "")
}

func TestClassify(t *testing.T) {
	f := func(name, unit string, want Class) {
		t.Helper()
		if got := Classify(name, unit); got != want {
			t.Errorf("Classify(%q) = %q, want %q", name, got, want)
		}
	}
	f("k8s.pod.cpu.usage", "{cpu}", ClassCPU)
	f("container_cpu_usage_seconds_total", "", ClassCPU)
	f("container_cpu_cfs_throttled_seconds_total", "", ClassThrottle)
	f("container_memory_working_set_bytes", "", ClassMemory)
	f("DCGM_FI_DEV_XID_ERRORS", "", ClassGPUError)
	f("DCGM_FI_DEV_FB_USED", "", ClassGPUMemory)
	f("DCGM_FI_DEV_GPU_UTIL", "", ClassGPU)
	f("vllm:num_requests_waiting", "", ClassQueue)
	f("vllm:kv_cache_usage_perc", "", ClassCacheUse)
	f("vllm:num_preemptions_total", "", ClassPreemption)
	f("vllm:prefix_cache_hits_total", "", ClassCacheHit)
	f("vllm:time_to_first_token_seconds", "", ClassLatency)
	f("sglang:num_queue_reqs", "", ClassQueue)
	f("tgi_queue_size", "", ClassQueue)
	f("nv_inference_pending_request_count", "", ClassQueue)
	f("http.server.request.duration", "s", ClassLatency)
	f("http.client.request.duration", "s", ClassOutgoing)
	f("ray_node_gram_used", "", ClassGPUMemory)
	f("redis_connected_clients", "", ClassConnections)
	f("tcp_retransmits_total", "", ClassNetworkLoss)
	f("gen_ai.client.token.usage", "{token}", ClassTokens)
	f("sglang:token_usage", "", ClassCacheUse)
	f("kube_pod_container_status_restarts_total", "", ClassRestart)
	f("cpuUsageRate", "%", ClassCPU)
	f("queries", "ms", ClassLatency)
	f("flux", "", ClassOther)
}

func TestDerive(t *testing.T) {
	sec := func(s int64, v float64) Point { return Point{s * 1e9, v} }
	out := Derive([]Series{
		{Name: "requests_total", Points: []Point{sec(0, 10), sec(10, 30), sec(20, 5)}}, // restarts
		{Name: "wait_seconds_sum", Points: []Point{sec(0, 0), sec(10, 6)}},
		{Name: "wait_seconds_count", Points: []Point{sec(0, 0), sec(10, 3)}},
		{Name: "wait_seconds_bucket", Points: []Point{sec(0, 0), sec(10, 3)}},
		{Name: "temp", Points: []Point{sec(0, 9.3e18), sec(10, 40)}},
	})
	got := map[string][]Point{}
	for _, s := range out {
		got[s.Name] = s.Points
	}
	if p := got["requests_total"]; len(p) != 2 || p[0].Value != 2 || p[1].Value != 0.5 {
		t.Errorf("rate %v, want 2 and 0.5 a second", p)
	}
	if p := got["wait_seconds"]; len(p) != 1 || p[0].Value != 2 {
		t.Errorf("mean %v, want 2 s", p)
	}
	if p := got["temp"]; len(p) != 1 {
		t.Errorf("a blank value is kept: %v", p)
	}
	if _, ok := got["wait_seconds_bucket"]; ok {
		t.Error("buckets are kept")
	}
}

func TestSelector(t *testing.T) {
	f := func(s Series, want string) {
		t.Helper()
		if got := Selector(&s); got != want {
			t.Errorf("Selector = %s, want %s", got, want)
		}
	}
	f(Series{Name: "up", Labels: map[string]string{"job": "x", "a": `"`}}, `up{a="\"",job="x"}`)
	f(Series{Name: "k8s.pod.cpu", Labels: map[string]string{"k8s.pod.name": "p"}}, `{"k8s.pod.cpu","k8s.pod.name"="p"}`)
	f(Series{Name: "a.b"}, `{"a.b"}`)
}

func FuzzTemplate(f *testing.F) {
	f.Add("request 17 took 3.5 ms")
	f.Add("\xff\xfe[=:")
	f.Fuzz(func(t *testing.T, s string) {
		one := Template(s)
		if Template(s) != one {
			t.Error("a template is not a function of its text")
		}
		NamedService(s, "x", map[string]bool{"a-b": true})
		OperationName(s)
		Classify(s, s)
	})
}

func TestOwnersNameTheMostSpecial(t *testing.T) {
	o := Owners(map[string]string{"pod": "p", "service_name": "s", "Hostname": "n", "UUID": "GPU-1", "model_name": "m"})
	for kind, want := range map[record.EntityKind]string{
		record.EntityPod: "p", record.EntityService: "s", record.EntityNode: "n", record.EntityGPU: "GPU-1", record.EntityModel: "m",
	} {
		if o[kind] != want {
			t.Errorf("%s is %q, want %q", kind, o[kind], want)
		}
	}
}
