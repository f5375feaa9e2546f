package incident

import (
	"math/rand/v2"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
)

// gpuMemory is what the model server takes of its GPU at start, in MiB.
const gpuMemory = 20_936

// measureResources writes the metrics of engines, containers, pods, nodes and
// GPUs, each moment from what was done since the moment before.
func (s *simulation) measureResources() {
	for _, e := range s.engines {
		s.measureEngine(e)
	}
	nodes := map[string]*nodeUse{}
	var names []string
	for i, p := range s.sys.all() {
		n := nodes[p.Node]
		if n == nil {
			n = &nodeUse{}
			nodes[p.Node] = n
			names = append(names, p.Node)
		}
		s.measurePod(p, s.rng(streamResources, uint64(i)), n)
	}
	for i, name := range names {
		s.measureNode(name, nodes[name], s.rng(streamResources, uint64(100+i)))
	}
	s.measureVector()
}

// nodeUse is what the pods of a node use at each moment.
type nodeUse struct{ cpu, memory []float64 }

func (n *nodeUse) add(i int, cpu, memory float64) {
	for len(n.cpu) <= i {
		n.cpu, n.memory = append(n.cpu, 0), append(n.memory, 0)
	}
	n.cpu[i] += cpu
	n.memory[i] += memory
}

// moments calls fn for each scrape; i counts them.
func (s *simulation) moments(fn func(i int, t float64)) {
	every := ScrapeInterval.Seconds()
	for i := 0; float64(i+1)*every <= s.end; i++ {
		fn(i, float64(i+1)*every)
	}
}

// measureEngine writes what a model server says about itself, and its GPU.
func (s *simulation) measureEngine(e *engine) {
	v, t := s.metrics, s.metrics.scraped(e.pod)
	r := s.rng(streamResources, uint64(200+len(e.pod.Name)+int(e.pod.Name[len(e.pod.Name)-1])))
	gpu := s.metrics.target("dcgm/"+e.pod.Node, nil, "prometheusreceiver", func() *resource.Resource {
		return resource.NewSchemaless(attribute.String("service.name", "dcgm-exporter"),
			attribute.String("service.instance.id", e.pod.Node+":9400"), attribute.String("k8s.node.name", e.pod.Node))
	})
	labels := []attribute.KeyValue{
		attribute.String("gpu", "0"), attribute.String("UUID", e.pod.GPU), attribute.String("device", "nvidia0"),
		attribute.String("modelName", "NVIDIA L4"), attribute.String("Hostname", e.pod.Node),
		attribute.String("pod", e.pod.Name), attribute.String("namespace", "chat"), attribute.String("container", e.pod.Container),
	}
	s.moments(func(_ int, at float64) {
		now, before := e.at(at), e.at(at-ScrapeInterval.Seconds())
		v.series(t, gauge, "vllm:num_requests_running", "", nil, engineLabels()...).observe(at, float64(now.running))
		v.series(t, gauge, "vllm:num_requests_waiting", "", nil, engineLabels()...).observe(at, float64(now.waiting))
		v.series(t, gauge, "vllm:kv_cache_usage_perc", "", nil, engineLabels()...).observe(at, now.cache)
		v.series(t, counter, "vllm:num_preemptions_total", "", nil, engineLabels()...).observe(at, float64(now.preempted-before.preempted))
		v.series(t, counter, "vllm:prompt_tokens_total", "", nil, engineLabels()...).observe(at, float64(now.prompt-before.prompt))
		v.series(t, counter, "vllm:generation_tokens_total", "", nil, engineLabels()...).observe(at, float64(now.generated-before.generated))
		busy := (now.gpu - before.gpu) / ScrapeInterval.Seconds()
		v.series(gpu, gauge, "DCGM_FI_DEV_GPU_UTIL", "", nil, labels...).observe(at, min(100, float64(int(100*busy*around(r, 1, 0.02)))))
		v.series(gpu, gauge, "DCGM_FI_DEV_FB_USED", "", nil, labels...).observe(at, gpuMemory+float64(r.IntN(3)*2))
		v.series(gpu, gauge, "DCGM_FI_DEV_POWER_USAGE", "", nil, labels...).observe(at, 17+52*min(1, busy)*around(r, 1, 0.03))
	})
}

// at returns the snapshot of a moment.
func (e *engine) at(t float64) snapshot {
	return e.snapshots[min(max(0, int(t/snapshotEvery)), len(e.snapshots)-1)]
}

func (p *Pod) kubernetes(container string) *resource.Resource {
	attrs := []attribute.KeyValue{
		attribute.String("k8s.cluster.name", "prod-1"), attribute.String("k8s.namespace.name", "chat"),
		attribute.String("k8s.pod.name", p.Name), attribute.String("k8s.pod.uid", p.UID()), attribute.String("k8s.node.name", p.Node),
	}
	if container != "" {
		attrs = append(attrs, attribute.String("k8s.container.name", container))
	}
	return resource.NewSchemaless(attrs...)
}

// sidecar ships the logs of the model server.
const sidecar = "log-shipper"

// measurePod writes what the kubelet says about a pod and its containers.
func (s *simulation) measurePod(p *Pod, r *rand.Rand, node *nodeUse) {
	v := s.metrics
	whole := v.target("kubelet/"+p.Name, p, "kubeletstatsreceiver", func() *resource.Resource { return p.kubernetes("") })
	mainC := v.target("kubelet/"+p.Name+"/"+p.Container, p, "kubeletstatsreceiver", func() *resource.Resource { return p.kubernetes(p.Container) })
	var side *target
	if p.GPU != "" {
		side = v.target("kubelet/"+p.Name+"/"+sidecar, p, "kubeletstatsreceiver", func() *resource.Resource { return p.kubernetes(sidecar) })
	}
	cadvisor := v.target("cadvisor/"+p.Node, nil, "prometheusreceiver", func() *resource.Resource {
		return resource.NewSchemaless(attribute.String("service.name", "cadvisor"),
			attribute.String("service.instance.id", p.Node+":10250"), attribute.String("k8s.node.name", p.Node))
	})
	throttled := v.series(cadvisor, counter, "container_cpu_cfs_throttled_seconds_total", "", nil,
		attribute.String("namespace", "chat"), attribute.String("pod", p.Name), attribute.String("container", p.Container))
	every := ScrapeInterval.Seconds()
	memory := p.memBase
	s.moments(func(i int, at float64) {
		if at < p.from || at >= p.to {
			return
		}
		use := (p.cpuBase + s.work(p, at-every, at)/every) * around(r, 1, 0.04)
		shipping := 0.0
		refused := max(0, r.NormFloat64()*0.02)
		if side != nil {
			shipping = around(r, 0.06, 0.1)
			if s.broken(at-every/2) && p == s.starved() {
				// The sidecar wants all; the scheduler leaves the model server its share.
				use = min(use, p.cpuLimit*0.3) * around(r, 1, 0.02)
				shipping = p.cpuLimit*around(r, 0.995, 0.003) - use
				refused = every * around(r, 0.7, 0.05)
			}
			v.series(side, gauge, "container.cpu.usage", "{cpu}", nil).observe(at, shipping)
			v.series(side, gauge, "container.memory.working_set", "By", nil).observe(at, 90e6*around(r, 1, 0.02))
		}
		use = min(use, p.cpuLimit)
		memory += (p.memBase - memory) * 0.1
		memory *= around(r, 1, 0.006)
		throttled.observe(at, refused)
		v.series(mainC, gauge, "container.cpu.usage", "{cpu}", nil).observe(at, use)
		v.series(mainC, gauge, "container.memory.working_set", "By", nil).observe(at, memory*0.98)
		total := use + shipping
		v.series(whole, gauge, "k8s.pod.cpu.usage", "{cpu}", nil).observe(at, total)
		v.series(whole, gauge, "k8s.pod.cpu_limit_utilization", "1", nil).observe(at, total/p.cpuLimit)
		v.series(whole, gauge, "k8s.pod.memory.working_set", "By", nil).observe(at, memory)
		v.series(whole, gauge, "k8s.pod.memory_limit_utilization", "1", nil).observe(at, memory/p.memLimit)
		node.add(i, total, memory)
	})
}

// work is the processor time that a pod spent between two moments.
func (s *simulation) work(p *Pod, from, to float64) float64 {
	sum := 0.0
	for _, e := range s.busy[p] {
		if e.time >= from && e.time < to {
			sum += e.value
		}
	}
	for _, e := range s.engines {
		if e.pod == p {
			// The engine's own thread is busy while it schedules and waits for the GPU.
			sum += e.at(to).gpu - e.at(from).gpu
		}
	}
	return sum
}

func (s *simulation) measureNode(name string, use *nodeUse, r *rand.Rand) {
	v := s.metrics
	t := v.target("node/"+name, nil, "kubeletstatsreceiver", func() *resource.Resource {
		return resource.NewSchemaless(attribute.String("k8s.cluster.name", "prod-1"), attribute.String("k8s.node.name", name))
	})
	s.moments(func(i int, at float64) {
		if i >= len(use.cpu) {
			return
		}
		v.series(t, gauge, "k8s.node.cpu.usage", "{cpu}", nil).observe(at, use.cpu[i]+around(r, 0.5, 0.1))
		v.series(t, gauge, "k8s.node.memory.working_set", "By", nil).observe(at, use.memory[i]+around(r, 3.1, 0.01)*gib)
	})
}

// measureVector writes what the vector database says about itself.
func (s *simulation) measureVector() {
	v, p := s.metrics, s.sys.vector
	t := v.scraped(p)
	r := s.rng(streamResources, 300)
	cadvisor := v.byKey["cadvisor/"+p.Node]
	reads := v.series(cadvisor, counter, "container_fs_reads_bytes_total", "", nil,
		attribute.String("namespace", "chat"), attribute.String("pod", p.Name), attribute.String("container", p.Container))
	s.moments(func(_ int, at float64) {
		optimising, read := 0.0, around(r, 2e6, 0.4)
		if s.opt.Fault == FaultVectorDB && s.broken(at) {
			optimising, read = 2, around(r, 1.9e9, 0.1)
		}
		v.series(t, gauge, "collection_running_optimizations", "", nil, attribute.String("id", "documents")).observe(at, optimising)
		v.series(t, gauge, "collections_total", "", nil).observe(at, 3)
		v.series(t, gauge, "memory_resident_bytes", "", nil).observe(at, 6.2*gib*around(r, 1, 0.004))
		reads.observe(at, read)
	})
}
