// Package eventtest makes AI events, good ones and ones broken in known ways, for
// tests and benchmarks. The same source of random numbers gives the same events.
package eventtest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
)

// Event is an AI event before it is sent.
type Event struct {
	// Members are text, bool, int64, float64, nil, []any and map[string]any.
	Members map[string]any
	// Text is the event as JSON where Members cannot say it, such as broken JSON.
	// It has no attribute form.
	Text string
}

// Start is about when the events of this package happened.
var Start = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

var (
	nodes    = []string{"ingress", "preprocess", "feature", "model_load", "inference", "postprocess", "egress", "decision"}
	services = []string{"chat-api", "ranker", "embedder", "gateway"}
	levels   = []string{"TRACE", "DEBUG", "INFO", "INFO", "INFO", "WARN", "ERROR", "FATAL"}
	inputs   = []string{"What is the capital of France?", "用一句话介绍北京", "line one\nline \"two\"", "naïve café ☕"}
)

// Good returns the i-th valid event. Its req_id tells i; every fourth event has
// its raw input, every eighth has each node's own members.
func Good(rng *rand.Rand, i int) Event {
	input := fmt.Sprintf("%s #%d", inputs[rng.IntN(len(inputs))], i)
	sum := sha256.Sum256([]byte(input))
	node := nodes[i%len(nodes)]
	business := map[string]any{
		"biz_type":   "search_qa",
		"user_id":    fmt.Sprintf("u-%d", rng.IntN(10_000)),
		"input_hash": hex.EncodeToString(sum[:]),
	}
	if i%4 == 0 {
		business["input"] = input
	}
	e := map[string]any{
		"timestamp": Start.Add(time.Duration(i) * time.Millisecond).Format(time.RFC3339Nano),
		"level":     levels[rng.IntN(len(levels))],
		"service":   services[rng.IntN(len(services))],
		"req_id":    RequestID(i),
		"trace_id":  fmt.Sprintf("%016x%016x", rng.Uint64()|1, rng.Uint64()),
		"span_id":   fmt.Sprintf("%016x", rng.Uint64()|1),
		"event":     node,
		"message":   "step done",
		"business":  business,
		"system": map[string]any{
			"gpu_memory_used_mb": float64(rng.IntN(80_000)) + 0.5,
			"gpu_util_percent":   float64(rng.IntN(1000))/10 + 0.05,
			"model_version":      "qwen2.5-7b@3",
			"device":             "cuda:0",
		},
		"computation": map[string]any{
			"op_name":      node,
			"input_stats":  stats(rng, "int64"),
			"output_stats": stats(rng, "float16"),
		},
	}
	addNode(rng, e, node)
	return Event{Members: e}
}

// RequestID is the req_id of the i-th event.
func RequestID(i int) string { return fmt.Sprintf("r-%08d", i) }

func stats(rng *rand.Rand, dtype string) map[string]any {
	s := map[string]any{
		"shape":   []any{int64(1 + rng.IntN(8)), int64(1 + rng.IntN(4096))},
		"dtype":   dtype,
		"has_nan": rng.IntN(50) == 0,
		"min_val": rng.NormFloat64() - 5,
		"max_val": rng.NormFloat64() + 5,
	}
	if rng.IntN(20) == 0 {
		s["min_val"], s["max_val"] = nil, nil
	}
	return s
}

// addNode adds the members of the event's own node.
func addNode(rng *rand.Rand, e map[string]any, node string) {
	switch node {
	case "preprocess":
		e["tokenization"] = map[string]any{"length": int64(512), "truncated": true, "truncation_side": "right", "max_length": int64(512)}
	case "feature":
		e["features"] = map[string]any{
			"deviations": map[string]any{"user.age": rng.NormFloat64(), "hour": rng.NormFloat64()},
			"unseen":     []any{"city"}, "out_of_range": []any{},
		}
	case "model_load":
		sum := sha256.Sum256([]byte("model"))
		e["model_load"] = map[string]any{
			"configured_version": "qwen2.5-7b@3", "configured_path": "/models/current", "real_path": "/models/qwen2.5-7b-3",
			"file_sha256": hex.EncodeToString(sum[:]), "device": "cuda:0", "fallback": false,
			"stages": map[string]any{"read": 4.25, "to_device": 2.5},
		}
	case "inference":
		e["inference"] = map[string]any{"stages": map[string]any{"prefill": rng.Float64(), "decode": rng.Float64()}}
	case "decision":
		e["decision"] = map[string]any{"type": "fallback", "reason": "timeout after 2 s", "from": "qwen2.5-7b", "to": "qwen2.5-1.5b"}
	}
}

// JSON returns the event as one line of JSON, without its end.
func (e Event) JSON() []byte {
	if e.Members == nil {
		return []byte(e.Text)
	}
	text, err := json.Marshal(e.Members)
	if err != nil {
		return []byte(e.Text) // Members hold only what JSON can
	}
	return text
}

// HasAttributes tells whether the event can be sent as attributes.
func (e Event) HasAttributes() bool { return e.Members != nil }

// BodyRecord returns a log record with the event as the JSON text of its body.
func (e Event) BodyRecord() plog.LogRecord {
	lr := plog.NewLogRecord()
	lr.Body().SetStr(string(e.JSON()))
	return lr
}

// MapRecord returns a log record with the event as an OTLP map in its body. The
// event must have an attribute form.
func (e Event) MapRecord() plog.LogRecord {
	lr := plog.NewLogRecord()
	m := lr.Body().SetEmptyMap()
	for _, name := range slices.Sorted(maps.Keys(e.Members)) {
		put(m.PutEmpty(name), e.Members[name])
	}
	return lr
}

// AttributeRecord returns a log record with the event as attributes. The event
// must have an attribute form.
func (e Event) AttributeRecord() plog.LogRecord {
	lr := plog.NewLogRecord()
	lr.SetEventName("ai.")
	flat(lr.Attributes(), "ai", e.Members)
	return lr
}

func flat(attrs pcommon.Map, path string, members map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(members)) {
		at := path + "." + name
		if below, ok := members[name].(map[string]any); ok && len(below) > 0 {
			flat(attrs, at, below)
			continue
		}
		put(attrs.PutEmpty(at), members[name])
	}
}

func put(v pcommon.Value, x any) {
	switch x := x.(type) {
	case string:
		v.SetStr(x)
	case bool:
		v.SetBool(x)
	case int64:
		v.SetInt(x)
	case float64:
		v.SetDouble(x)
	case []any:
		list := v.SetEmptySlice()
		for _, item := range x {
			put(list.AppendEmpty(), item)
		}
	case map[string]any:
		m := v.SetEmptyMap()
		for _, name := range slices.Sorted(maps.Keys(x)) {
			put(m.PutEmpty(name), x[name])
		}
	}
}
