package sensor

import (
	"strings"
	"unicode"

	"inquest/record"
)

// Class is what a metric measures, as its name and unit tell.
type Class string

// The classes. Those of resources come first.
const (
	ClassCPU         Class = "cpu"
	ClassThrottle    Class = "cpu_throttling"
	ClassMemory      Class = "memory"
	ClassOOM         Class = "oom_kill"
	ClassGPU         Class = "gpu"
	ClassGPUMemory   Class = "gpu_memory"
	ClassGPUError    Class = "gpu_error"
	ClassNetwork     Class = "network_io"
	ClassNetworkLoss Class = "network_loss"
	ClassDisk        Class = "disk_io"
	ClassRestart     Class = "restart"
	ClassConnections Class = "connections"

	ClassLatency Class = "latency"
	// ClassOutgoing is the latency of calls that the owner makes: its callees'.
	ClassOutgoing   Class = "outgoing_latency"
	ClassErrors     Class = "errors"
	ClassSuccess    Class = "success_rate"
	ClassQueue      Class = "queue"
	ClassPreemption Class = "preemption"
	ClassCacheUse   Class = "cache_usage"
	ClassCacheHit   Class = "cache_hits"
	ClassThroughput Class = "throughput"
	ClassTokens     Class = "tokens"
	ClassQuality    Class = "quality"
	ClassOther      Class = "metric"
)

// classRule gives a class to names that have all of its words. Words are parts
// of the name as convention splits it ("k8s.pod.cpu.usage", "cpuUsage"); a word
// ending in * matches by its beginning. The first rule that fits is taken, so
// the special stands before the general.
type classRule struct {
	class Class
	words []string
}

var classRules = []classRule{
	{ClassThrottle, []string{"throttl*"}},
	{ClassThrottle, []string{"cpu", "pressure"}},
	{ClassOOM, []string{"oom*"}},
	{ClassGPUError, []string{"xid"}},
	{ClassGPUError, []string{"ecc"}},
	{ClassGPUError, []string{"gpu", "error*"}},
	{ClassGPUMemory, []string{"gpu", "memory"}},
	{ClassGPUMemory, []string{"dcgm", "fb"}},
	{ClassGPUMemory, []string{"gram"}},
	{ClassPreemption, []string{"preempt*"}},
	{ClassPreemption, []string{"retract*"}},
	{ClassCacheHit, []string{"cache", "hit*"}},
	{ClassCacheHit, []string{"keyspace", "hit*"}},
	{ClassTokens, []string{"gen", "ai", "token*"}},
	{ClassCacheUse, []string{"cache", "usage"}},
	{ClassCacheUse, []string{"token", "usage"}},
	{ClassRestart, []string{"restart*"}},
	{ClassRestart, []string{"terminated"}},
	{ClassNetworkLoss, []string{"retrans*"}},
	{ClassNetworkLoss, []string{"network", "drop*"}},
	{ClassNetworkLoss, []string{"network", "error*"}},
	{ClassNetworkLoss, []string{"network", "loss"}},
	{ClassSuccess, []string{"success", "rate"}},
	{ClassSuccess, []string{"success", "ratio"}},
	{ClassSuccess, []string{"availability"}},
	{ClassQueue, []string{"queue", "size"}},
	{ClassQueue, []string{"queue", "length"}},
	{ClassQueue, []string{"queue", "depth"}},
	{ClassQueue, []string{"waiting"}},
	{ClassQueue, []string{"pending"}},
	{ClassQueue, []string{"queued"}},
	{ClassQueue, []string{"num", "queue"}},
	{ClassQueue, []string{"queue", "reqs"}},
	{ClassQueue, []string{"backlog"}},
	{ClassConnections, []string{"connection*"}},
	{ClassConnections, []string{"connected"}},
	{ClassConnections, []string{"pool"}},
	{ClassOutgoing, []string{"client", "latency"}},
	{ClassOutgoing, []string{"client", "duration"}},
	{ClassLatency, []string{"latency"}},
	{ClassLatency, []string{"duration"}},
	{ClassLatency, []string{"response", "time"}},
	{ClassLatency, []string{"queue", "time"}},
	{ClassLatency, []string{"time", "to", "first"}},
	{ClassLatency, []string{"time", "per"}},
	{ClassLatency, []string{"rtt"}},
	{ClassLatency, []string{"ttft"}},
	{ClassErrors, []string{"error*"}},
	{ClassErrors, []string{"failure*"}},
	{ClassErrors, []string{"failed"}},
	{ClassErrors, []string{"abort*"}},
	{ClassErrors, []string{"exception*"}},
	{ClassErrors, []string{"rejected"}},
	{ClassErrors, []string{"5xx"}},
	{ClassErrors, []string{"dropped"}},
	{ClassErrors, []string{"corrupted"}},
	{ClassGPU, []string{"gpu"}},
	{ClassGPU, []string{"gpus"}},
	{ClassGPU, []string{"dcgm"}},
	{ClassCPU, []string{"cpu"}},
	{ClassMemory, []string{"memory"}},
	{ClassMemory, []string{"mem"}},
	{ClassMemory, []string{"rss"}},
	{ClassMemory, []string{"heap"}},
	{ClassDisk, []string{"disk"}},
	{ClassDisk, []string{"filesystem"}},
	{ClassDisk, []string{"fs"}},
	{ClassDisk, []string{"syscall*"}},
	{ClassNetwork, []string{"network"}},
	{ClassNetwork, []string{"net"}},
	{ClassTokens, []string{"token*"}},
	{ClassQuality, []string{"confidence"}},
	{ClassQuality, []string{"drift"}},
	{ClassQuality, []string{"quality"}},
	{ClassQuality, []string{"score"}},
	{ClassThroughput, []string{"request*"}},
	{ClassThroughput, []string{"throughput"}},
	{ClassThroughput, []string{"qps"}},
	{ClassThroughput, []string{"ops"}},
	{ClassThroughput, []string{"workload"}},
}

// resourceClasses are the classes of the quadrant of resources.
var resourceClasses = map[Class]bool{
	ClassCPU: true, ClassThrottle: true, ClassMemory: true, ClassOOM: true, ClassGPU: true,
	ClassGPUMemory: true, ClassGPUError: true, ClassNetwork: true, ClassNetworkLoss: true,
	ClassDisk: true, ClassRestart: true, ClassConnections: true,
}

// Quadrant returns the quadrant to which a class belongs.
func (c Class) Quadrant() record.Quadrant {
	if resourceClasses[c] {
		return record.QuadrantResources
	}
	return record.QuadrantMetrics
}

// Classify tells what a metric measures.
func Classify(name, unit string) Class {
	words := nameWords(name)
	for _, r := range classRules {
		if hasWords(words, r.words) {
			return r.class
		}
	}
	switch unit {
	case "s", "ms", "us", "ns":
		return ClassLatency
	}
	return ClassOther
}

func hasWords(have map[string]bool, want []string) bool {
	for _, w := range want {
		if stem, ok := strings.CutSuffix(w, "*"); ok {
			found := false
			for h := range have {
				if strings.HasPrefix(h, stem) {
					found = true
					break
				}
			}
			if !found {
				return false
			}
		} else if !have[w] {
			return false
		}
	}
	return true
}

// nameWords splits a metric's name at everything that is not a letter or digit
// and where a small letter meets a capital.
func nameWords(name string) map[string]bool {
	words := map[string]bool{}
	start := 0
	runes := []rune(name)
	flush := func(end int) {
		if end > start {
			words[strings.ToLower(string(runes[start:end]))] = true
		}
		start = end
	}
	for i, r := range runes {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			flush(i)
			start = i + 1
		case i > 0 && unicode.IsUpper(r) && unicode.IsLower(runes[i-1]):
			flush(i)
		}
	}
	flush(len(runes))
	return words
}

// IsUtilisation reports whether a metric is a share of a limit, and the value
// that the limit has.
func IsUtilisation(name, unit string) (limit float64, ok bool) {
	words := nameWords(name)
	named := words["utilization"] || words["utilisation"] || words["util"] || words["perc"] || words["percent"] || words["ratio"]
	switch {
	case unit == "%" && named, words["percent"]:
		return 100, true
	case unit == "1" && named, words["ratio"], words["perc"]:
		return 1, true
	}
	return 0, false
}

// identity lists, for each kind of entity, the labels that name it: semantic
// conventions, their Prometheus form, and what well-known exporters write.
var identity = []struct {
	kind   record.EntityKind
	labels []string
}{
	{record.EntityGPU, []string{"UUID", "gpu_uuid", "hw.id", "hw_id", "gpu.uuid"}},
	{record.EntityPod, []string{"k8s.pod.name", "k8s_pod_name", "pod", "pod_name", "container.name", "container_name"}},
	{record.EntityService, []string{"service.name", "service_name", "service", "job", "app"}},
	{record.EntityNode, []string{"k8s.node.name", "k8s_node_name", "node", "host.name", "host_name", "hostname", "Hostname", "nodename", "instance"}},
	{record.EntityModel, []string{"gen_ai.request.model", "gen_ai_request_model", "model_name", "model", "ModelName"}},
}

// Owners returns the entities that a series' labels name, by kind.
func Owners(l map[string]string) map[record.EntityKind]string {
	out := map[record.EntityKind]string{}
	for _, id := range identity {
		for _, name := range id.labels {
			if v := l[name]; v != "" {
				out[id.kind] = v
				break
			}
		}
	}
	return out
}

// Subject names a series within its owner: the metric and the labels that are no
// part of the owner's identity or of the resource.
func Subject(s *Series) string {
	rest := map[string]string{}
	for n, v := range s.Labels {
		if !isIdentity(n) {
			rest[n] = v
		}
	}
	if len(rest) == 0 {
		return s.Name
	}
	return s.Name + "{" + LabelText(rest) + "}"
}

func isIdentity(label string) bool {
	for _, id := range identity {
		for _, n := range id.labels {
			if n == label {
				return true
			}
		}
	}
	for _, prefix := range []string{"k8s", "telemetry", "otel_scope", "service", "host", "container", "process"} {
		if strings.HasPrefix(label, prefix+".") || strings.HasPrefix(label, prefix+"_") {
			return true
		}
	}
	return label == "namespace" || label == "device" || label == "modelName" || label == "__name__"
}
