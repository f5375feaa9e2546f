package incident

import (
	"encoding/hex"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
)

// Pod is one running copy of a service.
type Pod struct {
	Service, Version, Name, Node, Language string
	// Container is the name of the main container.
	Container string
	GPU       string
	// cpuLimit is in cores, memLimit in bytes; cpuBase and memBase are what it
	// uses when idle.
	cpuLimit, cpuBase float64
	memLimit, memBase float64
	// from and to are when it runs, in seconds since the start.
	from, to float64
}

// UID identifies the pod within the cluster.
func (p *Pod) UID() string {
	h := fnv.New128a()
	h.Write([]byte(p.Name))
	x := hex.EncodeToString(h.Sum(nil))
	return x[:8] + "-" + x[8:12] + "-4" + x[13:16] + "-a" + x[17:20] + "-" + x[20:32]
}

// Resource is what the pod's own SDK says about it.
func (p *Pod) Resource() *resource.Resource {
	return resource.NewSchemaless(
		attribute.String("service.name", p.Service),
		attribute.String("service.namespace", "chat"),
		attribute.String("service.version", p.Version),
		attribute.String("service.instance.id", p.UID()),
		attribute.String("k8s.cluster.name", "prod-1"),
		attribute.String("k8s.namespace.name", "chat"),
		attribute.String("k8s.pod.name", p.Name),
		attribute.String("k8s.pod.uid", p.UID()),
		attribute.String("k8s.node.name", p.Node),
		attribute.String("k8s.container.name", p.Container),
		attribute.String("telemetry.sdk.name", "opentelemetry"),
		attribute.String("telemetry.sdk.language", p.Language),
	)
}

// Names of services and of the model.
const (
	svcGateway      = "gateway"
	svcOrchestrator = "rag-orchestrator"
	svcEmbedder     = "embedder"
	svcModel        = "vllm"
	svcVector       = "qdrant"
	svcBilling      = "billing-exporter"
	svcCron         = "doc-sync"
	modelName       = "llama-3.1-8b-instruct"
	embedModel      = "bge-large-en-v1.5"
)

const gib = 1 << 30

func pod(service, version, name, node, lang string, cpuLimit, cpuBase, memLimit, memBase float64) *Pod {
	return &Pod{
		Service: service, Version: version, Name: name, Node: node, Language: lang, Container: service,
		cpuLimit: cpuLimit, cpuBase: cpuBase, memLimit: memLimit * gib, memBase: memBase * gib, to: math.Inf(1),
	}
}

// system is the pods of the cluster.
type system struct {
	gateways, orchestrators, orchestratorsNext, embedders, models []*Pod
	vector, billing, cron                                         *Pod
}

func newSystem() *system {
	s := &system{
		gateways: []*Pod{
			pod(svcGateway, "3.9.2", "gateway-6c7d9f5b8-4xk2p", "worker-1", "go", 2, 0.05, 1, 0.18),
			pod(svcGateway, "3.9.2", "gateway-6c7d9f5b8-hq7wz", "worker-2", "go", 2, 0.05, 1, 0.17),
		},
		orchestrators: []*Pod{
			pod(svcOrchestrator, "2.4.1", "rag-orchestrator-79b4d8c6f-2m8rt", "worker-2", "python", 2, 0.08, 2, 0.61),
			pod(svcOrchestrator, "2.4.1", "rag-orchestrator-79b4d8c6f-wz5lc", "worker-3", "python", 2, 0.08, 2, 0.59),
		},
		orchestratorsNext: []*Pod{
			pod(svcOrchestrator, "2.5.0", "rag-orchestrator-5f8c6b7d4-c9x4j", "worker-2", "python", 2, 0.08, 2, 0.60),
			pod(svcOrchestrator, "2.5.0", "rag-orchestrator-5f8c6b7d4-t6vqn", "worker-3", "python", 2, 0.08, 2, 0.60),
		},
		embedders: []*Pod{
			pod(svcEmbedder, "1.12.0", "embedder-58d7f9c4b6-8jv9s", "worker-1", "python", 4, 0.15, 4, 1.9),
			pod(svcEmbedder, "1.12.0", "embedder-58d7f9c4b6-p2k6d", "worker-3", "python", 4, 0.15, 4, 1.9),
		},
		vector:  pod(svcVector, "1.15.1", "qdrant-0", "worker-4", "rust", 4, 0.2, 16, 6.4),
		billing: pod(svcBilling, "0.8.3", "billing-exporter-66f5c7d9b-xn4tw", "worker-4", "java", 1, 0.06, 1, 0.44),
		cron:    pod(svcCron, "1.3.0", "doc-sync-7d8b5c6f9-k4r2h", "worker-1", "python", 2, 0.03, 2, 0.35),
	}
	for i, name := range []string{"vllm-0", "vllm-1", "vllm-2"} {
		p := pod(svcModel, "0.11.2", name, "gpu-"+string(rune('1'+i)), "python", 6, 0.9, 48, 14.5)
		p.GPU = "GPU-" + p.UID()
		s.models = append(s.models, p)
	}
	return s
}

func (s *system) all() []*Pod {
	var out []*Pod
	for _, l := range [][]*Pod{s.gateways, s.orchestrators, s.orchestratorsNext, s.embedders, s.models, {s.vector, s.billing, s.cron}} {
		out = append(out, l...)
	}
	return out
}

// simulation is one run. Times are seconds since the start.
type simulation struct {
	opt        Options
	start      time.Time
	onset, end float64
	sys        *system
	requests   []*request
	engines    []*engine
	metrics    *registry
	busy       map[*Pod][]event // processor time spent, at its time
	spans      []Span
	logs       []Log
}

func newSimulation(o Options) *simulation {
	s := &simulation{
		opt: o, onset: Healthy.Seconds(), end: (Healthy + Broken).Seconds(),
		sys: newSystem(), busy: map[*Pod][]event{},
	}
	s.start = o.End.UTC().Add(-Healthy - Broken)
	s.metrics = newRegistry()
	s.rollOut()
	return s
}

func (s *simulation) at(t float64) time.Time {
	return s.start.Add(time.Duration(math.Round(t*1e6)) * time.Microsecond)
}

// rng gives the randomness of one thing, which does not depend on that of others:
// the same question is asked whatever breaks.
func (s *simulation) rng(stream, index uint64) *rand.Rand {
	return rand.New(rand.NewPCG(s.opt.Seed^stream<<48, index*0x9e3779b97f4a7c15+stream))
}

// Streams of randomness.
const (
	streamArrivals = iota + 1
	streamRequest
	streamIDs
	streamNoise
	streamResources
)

// around draws a duration that scatters about its median.
func around(r *rand.Rand, median, sigma float64) float64 {
	return median * math.Exp(sigma*r.NormFloat64())
}
