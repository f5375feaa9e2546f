package resources

import (
	"context"
	"testing"

	"inquest/record"
	"inquest/sensor"
	"inquest/sensor/metrics"
)

func window(t *testing.T, series ...sensor.Series) *sensor.Window {
	t.Helper()
	w, err := sensor.Gather(context.Background(), &sensor.Memory{AllSeries: series}, sensor.Range{From: 0, To: 1e12}, sensor.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func gauge(name, unit string, labels map[string]string, values ...float64) sensor.Series {
	s := sensor.Series{Name: name, Unit: unit, Labels: labels}
	for i, v := range values {
		s.Points = append(s.Points, sensor.Point{Time: int64(i+1) * 1e9, Value: v})
	}
	return s
}

func TestUsageAndSeriesShareTheWork(t *testing.T) {
	w := window(t,
		gauge("k8s.pod.cpu.usage", "{cpu}", map[string]string{"k8s.pod.name": "p", "service.name": "s", "k8s.node.name": "n"}, 1),
		gauge("node_memory_used", "By", map[string]string{"node": "n", "pod": "exporter"}, 2),
		gauge("vllm:num_requests_waiting", "", map[string]string{"service": "s", "model_name": "m"}, 3),
		gauge("DCGM_FI_DEV_GPU_UTIL", "", map[string]string{"UUID": "GPU-1", "Hostname": "n", "pod": "p"}, 4),
		gauge("lonely", "", nil, 5),
	)
	p := sensor.NewProfile(w.Range)
	Usage{}.Measure(w, p)
	metrics.Series{}.Measure(w, p)
	got := map[string]record.Entity{}
	for k := range p.Values {
		got[string(k.Quadrant)+" "+k.Kind] = k.Entity
	}
	for k, want := range map[string]record.Entity{
		"resources cpu": sensor.Pod("p"), "resources memory": sensor.NodeEntity("n"),
		"metrics queue": sensor.Service("s"), "resources gpu": {Kind: record.EntityGPU, Name: "GPU-1", Of: "n"},
	} {
		if got[k] != want {
			t.Errorf("%s is of %v, want %v", k, got[k], want)
		}
	}
	if len(got) != 4 {
		t.Errorf("measured %v", got)
	}
	for _, e := range []record.Edge{
		{Kind: record.EdgeServes, From: sensor.Pod("p"), To: sensor.Service("s")},
		{Kind: record.EdgeRunsOn, From: sensor.Pod("p"), To: sensor.NodeEntity("n")},
		{Kind: record.EdgeServes, From: sensor.Service("s"), To: record.Entity{Kind: record.EntityModel, Name: "m"}},
	} {
		if p.Edges[e] == 0 {
			t.Errorf("edge %v is not seen", e)
		}
	}
}

func TestLimit(t *testing.T) {
	f := func(name, unit string, want float64, values ...float64) {
		t.Helper()
		w := window(t, gauge(name, unit, map[string]string{"pod": "p"}, values...))
		p := sensor.NewProfile(w.Range)
		Limit{}.Measure(w, p)
		got := -1.0
		for _, h := range p.Shares {
			got = h.K
		}
		if got != want {
			t.Errorf("%s: %v at the limit, want %v", name, got, want)
		}
	}
	f("k8s.pod.cpu_limit_utilization", "1", 2, 0.5, 0.95, 1)
	f("gpu_utilization", "%", 1, 50, 99)
	f("vllm:kv_cache_usage_perc", "", 1, 0.2, 0.97)
	f("k8s.pod.cpu.usage", "{cpu}", -1, 0.99) // no share of a limit
	f("cache_hit_ratio", "", -1, 0.99)        // not a resource
}
