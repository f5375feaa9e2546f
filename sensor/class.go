package sensor

import (
	"strings"
	"unicode"

	"inquest/record"
)

// Class is what a metric measures, as its name, unit and labels tell.
type Class string

// The classes. Those of resources come first.
const (
	ClassCPU         Class = "cpu"
	ClassThrottle    Class = "cpu_throttling"
	ClassPressure    Class = "pressure" // tasks wait for memory or input and output (PSI, page faults)
	ClassMemory      Class = "memory"
	ClassReserved    Class = "memory_reserved" // taken from the system by an allocator
	ClassFragments   Class = "fragmentation"
	ClassOOM         Class = "oom_kill"
	ClassGC          Class = "gc_time" // garbage collection: time and number
	ClassGPU         Class = "gpu"
	ClassGPUMemory   Class = "gpu_memory"
	ClassGPUError    Class = "gpu_error"
	ClassGPUTemp     Class = "gpu_temperature"
	ClassGPUThrottle Class = "gpu_throttling"
	ClassGPUPower    Class = "gpu_power"
	ClassGPUClock    Class = "gpu_clock"
	ClassNetwork     Class = "network_io"
	ClassNetworkLoss Class = "network_loss"
	ClassDisk        Class = "disk_io"
	ClassDiskUse     Class = "disk_usage"
	ClassRestart     Class = "restart"
	ClassConnections Class = "connections" // of a server
	ClassPool        Class = "pool"        // connections of a client that are in use
	ClassFiles       Class = "file_descriptors"

	ClassLatency Class = "latency"
	// ClassOutgoing is the latency of calls that the owner makes: its callees'.
	ClassOutgoing    Class = "outgoing_latency"
	ClassTail        Class = "latency_tail" // the 99th percentile of an interval, from buckets
	ClassErrors      Class = "errors"
	ClassRetries     Class = "retries"
	ClassFallbacks   Class = "fallbacks"
	ClassRefusals    Class = "refusals"
	ClassSuccess     Class = "success_rate"
	ClassQueue       Class = "queue"
	ClassPoolWait    Class = "pool_wait" // waiting for a connection of a pool
	ClassRunning     Class = "running"   // requests in progress
	ClassBatch       Class = "batch_size"
	ClassPreemption  Class = "preemption"
	ClassEvictions   Class = "evictions"
	ClassCacheUse    Class = "cache_usage"
	ClassCacheHit    Class = "cache_hits"
	ClassCacheLookup Class = "cache_lookups"
	ClassThroughput  Class = "throughput"
	ClassTokens      Class = "tokens"        // of all requests together, per second
	ClassInput       Class = "input_tokens"  // of one request
	ClassOutput      Class = "output_tokens" // of one request
	ClassCached      Class = "cached_tokens"
	ClassAdapter     Class = "adapter"
	ClassExperts     Class = "expert_skew"
	ClassQuality     Class = "quality"
	ClassTelemetry   Class = "telemetry" // what telemetry itself does
	ClassLoss        Class = "telemetry_loss"
	ClassOther       Class = "metric"

	// The classes below are not measured by themselves: a limit, what is left of
	// one, and values that carry their meaning in labels or are times.
	ClassLimit Class = "limit"
	ClassFree  Class = "free"
	ClassInfo  Class = "info"
)

// resourceClasses are the classes of the quadrant of resources.
var resourceClasses = map[Class]bool{
	ClassCPU: true, ClassThrottle: true, ClassPressure: true, ClassMemory: true, ClassReserved: true, ClassFragments: true,
	ClassOOM: true, ClassGC: true, ClassGPU: true, ClassGPUMemory: true, ClassGPUError: true, ClassGPUTemp: true,
	ClassGPUThrottle: true, ClassGPUPower: true, ClassGPUClock: true, ClassNetwork: true, ClassNetworkLoss: true,
	ClassDisk: true, ClassDiskUse: true, ClassRestart: true, ClassConnections: true, ClassPool: true, ClassFiles: true,
}

// Quadrant returns the quadrant to which a class belongs.
func (c Class) Quadrant() record.Quadrant {
	if resourceClasses[c] {
		return record.QuadrantResources
	}
	return record.QuadrantMetrics
}

// Measured reports whether series of a class are measures by themselves.
func (c Class) Measured() bool { return c != ClassLimit && c != ClassFree && c != ClassInfo }

// Classify tells what a metric measures by its name and unit.
func Classify(name, unit string) Class {
	words := nameWords(name)
	if c := special(name, words); c != "" {
		return c
	}
	for i := range classRules {
		if classRules[i].fits(words) {
			return classRules[i].class
		}
	}
	switch unit {
	case "s", "ms", "us", "ns":
		return ClassLatency
	}
	return ClassOther
}

// nameWords splits a metric's name at everything that is not a letter or digit,
// where a small letter meets a capital, and where an abbreviation ends
// ("GPUMemoryUsed").
func nameWords(name string) []string {
	var words []string
	runes := []rune(name)
	start := 0
	flush := func(end int) {
		if end > start {
			words = append(words, strings.ToLower(string(runes[start:end])))
		}
		start = end
	}
	for i, r := range runes {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			flush(i)
			start = i + 1
		case i > 0 && unicode.IsUpper(r) && unicode.IsLower(runes[i-1]),
			i > 0 && i+1 < len(runes) && unicode.IsUpper(r) && unicode.IsUpper(runes[i-1]) && unicode.IsLower(runes[i+1]):
			flush(i)
		}
	}
	flush(len(runes))
	return words
}

// IsUtilisation reports whether a metric is a share of a limit, and the value
// that the limit has.
func IsUtilisation(name, unit string) (limit float64, ok bool) {
	has := map[string]bool{}
	for _, w := range nameWords(name) {
		has[w] = true
	}
	named := has["utilization"] || has["utilisation"] || has["util"] || has["perc"] || has["percent"] || has["ratio"]
	switch {
	case unit == "%" && named, has["percent"]:
		return 100, true
	case unit == "1" && named, has["ratio"], has["perc"]:
		return 1, true
	}
	return 0, false
}
