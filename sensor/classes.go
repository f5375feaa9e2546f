package sensor

import (
	"slices"
	"strings"
)

// classTexts says what series of a class measure, of all that are measured by
// themselves.
var classTexts = []struct {
	class Class
	text  string
}{
	{ClassCPU, "use of the processor"},
	{ClassThrottle, "processor time that was refused"},
	{ClassPressure, "tasks that wait for memory, or for input and output"},
	{ClassMemory, "memory in use"},
	{ClassReserved, "memory that an allocator took from the system"},
	{ClassFragments, "memory that is free in pieces too small to be used"},
	{ClassOOM, "processes ended for lack of memory"},
	{ClassGC, "time and number of garbage collections"},
	{ClassGPU, "use of a GPU"},
	{ClassGPUMemory, "memory of a GPU in use"},
	{ClassGPUError, "errors of a GPU: XID, ECC, links, retired rows"},
	{ClassGPUTemp, "temperature of a GPU"},
	{ClassGPUThrottle, "time or reasons for which a GPU was slowed down"},
	{ClassGPUPower, "power that a GPU draws"},
	{ClassGPUClock, "clock rate of a GPU"},
	{ClassNetwork, "bytes or packets over the network"},
	{ClassNetworkLoss, "packets dropped, lost or sent again"},
	{ClassDisk, "input and output of disks"},
	{ClassDiskUse, "room in use on disks"},
	{ClassRestart, "restarts and crashes"},
	{ClassConnections, "connections of a server"},
	{ClassPool, "connections in use of a client's pool"},
	{ClassFiles, "open file descriptors"},
	{ClassLatency, "time until an answer, or for a part of one"},
	{ClassOutgoing, "time of calls that the owner makes"},
	{ClassTail, "99th percentile of a time, from buckets"},
	{ClassErrors, "requests that fail"},
	{ClassRetries, "calls that are tried again"},
	{ClassFallbacks, "requests that take the way of last resort"},
	{ClassRefusals, "requests refused by a guard or filter"},
	{ClassSuccess, "share of requests that succeed"},
	{ClassQueue, "requests or tasks that wait"},
	{ClassPoolWait, "waiting for a connection of a pool"},
	{ClassRunning, "requests in progress"},
	{ClassBatch, "size of batches"},
	{ClassPreemption, "requests that were preempted"},
	{ClassEvictions, "entries evicted from a cache"},
	{ClassCacheUse, "how full a cache is"},
	{ClassCacheHit, "hits of a cache, or their share"},
	{ClassCacheLookup, "questions to a cache, or its misses"},
	{ClassThroughput, "requests, records or bytes per second"},
	{ClassTokens, "tokens of all requests together, per second"},
	{ClassInput, "input tokens of one request"},
	{ClassOutput, "output tokens of one request"},
	{ClassCached, "input tokens taken from a cache"},
	{ClassAdapter, "adapters of a model in use"},
	{ClassExperts, "load and balance of a model's experts"},
	{ClassQuality, "measures of the answers' quality"},
	{ClassTelemetry, "what telemetry itself does"},
	{ClassLoss, "telemetry that was refused, dropped or lost"},
	{ClassOther, "any other metric"},
}

// Classes returns the classes that are measured by themselves, those of resources
// first.
func Classes() []Class {
	out := make([]Class, len(classTexts))
	for i := range out {
		out[i] = classTexts[i].class
	}
	return out
}

// Text says what series of the class measure, without a full stop; empty for a
// class that is not measured by itself.
func (c Class) Text() string {
	for i := range classTexts {
		if classTexts[i].class == c {
			return classTexts[i].text
		}
	}
	return ""
}

// Words returns the words of metric names that give the class, as alternatives: all
// words of one have to be there, and one that ends in * matches by its beginning.
// It is empty for a class that only labels, units or buckets give.
func (c Class) Words() []string {
	var out []string
	for _, row := range classTable {
		if row.class != c {
			continue
		}
		for _, rule := range row.rules {
			words := slices.DeleteFunc(strings.Fields(rule), func(w string) bool { return strings.HasPrefix(w, "!") })
			if text := strings.Join(words, " "); text != "" && !slices.Contains(out, text) {
				out = append(out, text)
			}
		}
	}
	return out
}
