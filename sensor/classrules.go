package sensor

import (
	"slices"
	"strings"
)

// classRule gives a class to names that have all of its words and none of those
// that follow a "!". Words are parts of the name as convention splits it
// ("k8s.pod.cpu.usage", "cpuUsage"); a word ending in * matches by its beginning.
// The first rule that fits is taken, so the special stands before the general.
type classRule struct {
	class     Class
	want, not []string
}

func (r *classRule) fits(words []string) bool {
	for _, w := range r.want {
		if !hasWord(words, w) {
			return false
		}
	}
	for _, w := range r.not {
		if hasWord(words, w) {
			return false
		}
	}
	return true
}

func hasWord(have []string, want string) bool {
	if stem, ok := strings.CutSuffix(want, "*"); ok {
		return slices.ContainsFunc(have, func(h string) bool { return strings.HasPrefix(h, stem) })
	}
	return slices.Contains(have, want)
}

// classTable lists the rules in their order: a class, then alternatives.
var classTable = []struct {
	class Class
	rules []string
}{
	{ClassInfo, []string{"timestamp", "timestamps", "start time !to !request*", "boot time", "uptime", "gc last time", "node time seconds"}},

	// Telemetry of telemetry.
	{ClassLimit, []string{"otelcol* capacity", "otel sdk capacity"}},
	{ClassLoss, []string{"otelcol* fail*", "otelcol* refused", "otelcol* dropped", "otel sdk dropped", "telemetry dropped", "spans dropped", "logs dropped"}},
	{ClassQueue, []string{"otelcol* queue", "otel sdk queue"}},
	{ClassTelemetry, []string{"otelcol* !process !memory !cpu", "otel sdk", "scrape"}},

	{ClassOOM, []string{"oom*", "ray memory eviction"}},
	{ClassGPUThrottle, []string{"dcgm violation", "gpu throttl*", "dcgm throttl*", "nvidia throttl*", "clocks event*", "clock events"}},
	{ClassThrottle, []string{"throttl*", "cpu pressure"}},
	{ClassPressure, []string{"pressure", "psi", "memory failures", "memory failcnt", "page* fault*", "major faults", "refault*"}},
	{ClassGPUError, []string{"xid", "ecc", "gpu error*", "dcgm remap*", "dcgm remapped", "dcgm retired", "dcgm replay", "nvlink error*", "dcgm health", "nvlink recovery"}},
	{ClassGPUTemp, []string{"dcgm temp", "gpu temp*", "nvidia temp*"}},
	{ClassGPUPower, []string{"dcgm power", "gpu power", "nvidia power", "dcgm energy", "nv energy", "gpu energy"}},
	{ClassGPUClock, []string{"dcgm clock", "gpu clock*", "nvidia clock*"}},
	{ClassReserved, []string{"memory reserved", "cuda reserved", "torch reserved", "fb reserved", "allocator reserved"}},
	{ClassFragments, []string{"fragment*"}},
	{ClassGPUMemory, []string{"gpu memory", "gpu mem", "dcgm fb", "gram", "cuda memory", "cuda allocated", "nvidia memory"}},
	{ClassPreemption, []string{"preempt*", "retract*"}},

	// Lengths of times before what they are times of.
	{ClassPoolWait, []string{
		"pool wait*", "connection* wait*", "connection* pending", "connection* timeouts", "pool timeout*", "pool pending",
		"connection* acquire", "pool acquire", "hikaricp pending",
	}},
	{ClassOutgoing, []string{"connection* use time", "connection* create time", "hikaricp usage", "hikaricp creation"}},
	{ClassGC, []string{"gc !memstats !memory !gogc !gomemlimit !sys !goal", "garbage"}},
	{ClassLimit, []string{"gogc", "gomemlimit"}},
	{ClassLatency, []string{"time to first", "time per", "inter token latency", "hit duration", "miss duration", "kv block seconds"}},

	{ClassEvictions, []string{"evict*"}},
	{ClassCached, []string{"tokens cached", "cached tokens", "cache read tokens"}},
	{ClassCacheHit, []string{"cache hit*", "keyspace hit*", "hit rate", "hit ratio", "hit tokens", "lookup hits", "cache num hits"}},
	{ClassCacheLookup, []string{"cache miss*", "keyspace miss*", "cache queries", "cache lookups", "requested tokens", "lookup requests"}},
	{ClassExperts, []string{"expert*", "moe", "eplb"}},
	{ClassAdapter, []string{"lora", "lora*", "adapter* !net !network"}},
	{ClassFallbacks, []string{"fallback*"}},
	{ClassRefusals, []string{"refusal*", "refused !connection* !tcp", "guardrail*", "moderation", "content filter*"}},
	{ClassBatch, []string{"batch size", "batch current size", "iteration tokens"}},
	{ClassInput, []string{
		"request prompt tokens", "operation input tokens", "request input tokens", "request input length",
		"prompt length", "input length", "tokenization length",
	}},
	{ClassOutput, []string{
		"request generation tokens !max", "operation output tokens", "request output tokens", "request generated tokens",
		"output length", "request output length",
	}},
	{ClassOther, []string{"request params", "request max tokens", "request max num", "max new tokens", "cuda graph"}},
	{ClassTokens, []string{"gen ai token*"}},
	{ClassCacheUse, []string{"cache usage", "token usage", "cache utilization"}},

	{ClassRestart, []string{"restart*", "terminated", "container status waiting", "crash*"}},
	{ClassNetworkLoss, []string{"retrans*", "tcp reset*", "network drop*", "network error*", "network loss", "network errs", "packet* drop*", "packet* loss"}},
	{ClassSuccess, []string{"success rate", "success ratio", "availability"}},
	{ClassErrors, []string{"rejected connection*", "connection* refused", "failed requests", "client disconnections"}},
	{ClassQueue, []string{
		"queue size", "queue length", "queue depth", "waiting", "pending", "queued", "num queue", "queue reqs", "backlog",
		"blocked clients", "unschedulable",
	}},
	{ClassMemory, []string{"memory pool", "jvm buffer", "memory bytes !gpu"}},
	{ClassPool, []string{"db client connection*", "connection* pool", "hikaricp", "pool"}},
	{ClassConnections, []string{"connection*", "connected", "sockstat", "sockets"}},
	{ClassOutgoing, []string{"client latency", "client duration", "outgoing duration", "outgoing latency", "llm api latency"}},
	{ClassLatency, []string{
		"latency", "duration", "durations", "response time", "queue time", "handler time", "prediction time", "worker time",
		"rtt", "ttft", "tpot", "ntpot", "itl", "lag", "delay", "latencies",
	}},
	{ClassRetries, []string{"retry", "retries", "resend*"}},
	{ClassErrors, []string{
		"error*", "failure*", "failed", "abort*", "exception*", "rejected", "5xx", "requests5*", "dropped", "corrupted",
		"timeouts", "timeout total", "requests4*", "rejections", "fail",
	}},
	{ClassGPU, []string{"gpu", "gpus", "dcgm", "nvidia"}},
	{ClassCPU, []string{"cpu", "load1", "load5", "load15"}},
	{ClassFiles, []string{"fds", "file descriptors", "file descriptor"}},
	{ClassMemory, []string{"memory", "mem", "rss", "heap", "memstats", "resident", "swap", "uss"}},
	{ClassDiskUse, []string{"filesystem usage", "filesystem used", "filesystem utilization", "volume used", "volume utilization", "disk used", "disk utilization", "disk usage", "fs usage", "fs used"}},
	{ClassDisk, []string{"disk", "filesystem", "fs", "syscall*"}},
	{ClassNetwork, []string{"network", "net"}},
	{ClassRunning, []string{
		"requests running", "request running", "running reqs", "inflight", "in flight", "active requests", "concurrent*",
		"executing", "requests active", "incoming requests",
	}},
	{ClassTokens, []string{"token*"}},
	{ClassQuality, []string{"confidence", "drift", "quality", "score", "entropy", "repetition", "accuracy", "search distance"}},
	{ClassThroughput, []string{
		"request*", "throughput", "qps", "ops", "workload", "reqs", "req", "responses", "commands", "inference count",
		"inference exec", "spend",
	}},
}

// classRules is the table, taken apart.
var classRules = func() []classRule {
	var out []classRule
	for _, row := range classTable {
		for _, text := range row.rules {
			r := classRule{class: row.class}
			for _, w := range strings.Fields(text) {
				if w, ok := strings.CutPrefix(w, "!"); ok {
					r.not = append(r.not, w)
				} else {
					r.want = append(r.want, w)
				}
			}
			out = append(out, r)
		}
	}
	return out
}()

// special tells limits, what is left of them, and information, empty for all
// other names.
func special(name string, words []string) Class {
	switch {
	case name == "up":
		return ClassTelemetry
	case words == nil:
		return ClassOther
	case words[len(words)-1] == "info", words[len(words)-1] == "created":
		return ClassInfo
	case isLimit(words):
		return ClassLimit
	case isFree(words):
		return ClassFree
	}
	return ""
}

// bounded are words of what has a limit.
var bounded = []string{
	"memory", "mem", "cpu", "gpu", "power", "connection*", "clients", "maxclients", "maxmemory", "fds", "mmaps", "threads",
	"tokens", "resource", "filesystem", "disk", "volume", "pods", "heap", "fb", "queue", "pool", "gram", "nofile",
}

// isLimit reports whether words name a limit or a size of what is there, not
// what is used of it.
func isLimit(words []string) bool {
	for _, w := range []string{
		"utilization", "utilisation", "util", "ratio", "perc", "percent", "violation", "throttl*", "duration*", "latency",
		"seconds", "time", "hit*", "exceeded", "reached", "failures", "rate", "current", "params", "request", "new", "tasks",
		"kv_cache", "cached", "violations", "errors", "oom*",
	} {
		if hasWord(words, w) && (w != "request" || !hasWord(words, "container")) {
			return false
		}
	}
	if hasWord(words, "usage") && words[len(words)-1] != "limit" {
		return false
	}
	sized := false
	for _, w := range []string{"limit", "limits", "max", "capacity", "maxclients", "maxmemory", "allocatable", "maximum"} {
		sized = sized || slices.Contains(words, w)
	}
	if slices.Contains(words, "container") && (hasWord(words, "request") || hasWord(words, "requests")) && !hasWord(words, "http") {
		sized = true // what a container asks for
	}
	if slices.Contains(words, "total") {
		for _, pair := range [][]string{{"gpu", "memory"}, {"mem"}, {"fb"}, {"slots"}, {"pool", "bytes"}, {"gram"}} {
			all := true
			for _, w := range pair {
				all = all && slices.Contains(words, w)
			}
			if all {
				return true
			}
		}
	}
	switch {
	case words[0] == "machine", slices.Contains(words, "filesystem") && slices.Contains(words, "size"):
		return true
	case !sized:
		return false
	}
	return slices.ContainsFunc(bounded, func(w string) bool { return hasWord(words, w) })
}

// isFree reports whether words name what is left of memory, disk or a pool.
func isFree(words []string) bool {
	left := false
	for _, w := range []string{"free", "available", "avail"} {
		left = left || slices.Contains(words, w)
	}
	if left {
		return slices.ContainsFunc([]string{"memory", "mem", "fb", "gram", "filesystem", "disk", "volume", "swap"},
			func(w string) bool { return slices.Contains(words, w) })
	}
	return slices.Contains(words, "idle") && hasWord(words, "connection*")
}
