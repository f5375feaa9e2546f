package eventtest

import (
	"math/rand/v2"
	"strings"
)

// Kind is a way in which an event can be broken.
type Kind struct {
	Name string
	Code string // of the reason that is due
	Rule string // of the reason that is due
	// JSONOnly says that the kind has no attribute form.
	JSONOnly bool
	edit     func(rng *rand.Rand, e map[string]any) // of a good event
	text     func(rng *rand.Rand, json string) string
}

// Kinds are all ways in which [Broken] breaks an event.
var Kinds = []Kind{
	{Name: "no timestamp", Code: "schema.required", Rule: "/required", edit: without("timestamp")},
	{Name: "no level", Code: "schema.required", Rule: "/required", edit: without("level")},
	{Name: "no service", Code: "schema.required", Rule: "/required", edit: without("service")},
	{Name: "no req_id", Code: "schema.required", Rule: "/required", edit: without("req_id")},
	{Name: "no trace_id", Code: "schema.required", Rule: "/required", edit: without("trace_id")},
	{Name: "no span_id", Code: "schema.required", Rule: "/required", edit: without("span_id")},
	{Name: "no business", Code: "schema.required", Rule: "/required", edit: without("business")},
	{Name: "no system", Code: "schema.required", Rule: "/required", edit: without("system")},
	{Name: "no computation", Code: "schema.required", Rule: "/required", edit: without("computation")},
	{Name: "no biz_type", Code: "schema.required", Rule: "/properties/business/required", edit: without("business.biz_type")},
	{Name: "no user_id", Code: "schema.required", Rule: "/properties/business/required", edit: without("business.user_id")},
	{Name: "no input_hash", Code: "schema.required", Rule: "/properties/business/required", edit: without("business.input_hash")},
	{Name: "no gpu_memory_used_mb", Code: "schema.required", Rule: "/properties/system/required", edit: without("system.gpu_memory_used_mb")},
	{Name: "no gpu_util_percent", Code: "schema.required", Rule: "/properties/system/required", edit: without("system.gpu_util_percent")},
	{Name: "no model_version", Code: "schema.required", Rule: "/properties/system/required", edit: without("system.model_version")},
	{Name: "no device", Code: "schema.required", Rule: "/properties/system/required", edit: without("system.device")},
	{Name: "no op_name", Code: "schema.required", Rule: "/properties/computation/required", edit: without("computation.op_name")},
	{Name: "no input_stats", Code: "schema.required", Rule: "/properties/computation/required", edit: without("computation.input_stats")},
	{Name: "no output_stats", Code: "schema.required", Rule: "/properties/computation/required", edit: without("computation.output_stats")},
	{Name: "no shape", Code: "schema.required", Rule: "/$defs/stats/required", edit: without("computation.input_stats.shape")},
	{Name: "no dtype", Code: "schema.required", Rule: "/$defs/stats/required", edit: without("computation.output_stats.dtype")},
	{Name: "no has_nan", Code: "schema.required", Rule: "/$defs/stats/required", edit: without("computation.output_stats.has_nan")},
	{Name: "no min_val", Code: "schema.required", Rule: "/$defs/stats/required", edit: without("computation.input_stats.min_val")},
	{Name: "timestamp is a date", Code: "schema.format", Rule: "/properties/timestamp/format", edit: with("timestamp", "2026-11-30")},
	{Name: "timestamp without offset", Code: "schema.format", Rule: "/properties/timestamp/format", edit: with("timestamp", "2026-11-30T12:00:00")},
	{Name: "timestamp is a number", Code: "schema.type", Rule: "/properties/timestamp/type", edit: with("timestamp", int64(1796040000))},
	{Name: "timestamp before 1970", Code: "time.early", Rule: "/properties/timestamp", edit: with("timestamp", "1969-07-20T20:17:40Z")},
	{Name: "timestamp after 2262", Code: "time.late", Rule: "/properties/timestamp", edit: with("timestamp", "2500-01-01T00:00:00Z")},
	{Name: "level in small letters", Code: "schema.enum", Rule: "/properties/level/enum", edit: with("level", "info")},
	{Name: "level is a number", Code: "schema.type", Rule: "/properties/level/type", edit: with("level", int64(9))},
	{Name: "service is empty", Code: "schema.length", Rule: "/properties/service/minLength", edit: with("service", "")},
	{Name: "req_id is empty", Code: "schema.length", Rule: "/properties/req_id/minLength", edit: with("req_id", "")},
	{Name: "req_id is too long", Code: "schema.length", Rule: "/properties/req_id/maxLength", edit: with("req_id", strings.Repeat("é", 257))},
	{Name: "trace_id is too short", Code: "schema.pattern", Rule: "/properties/trace_id/pattern", edit: cutOff("trace_id", 1)},
	{Name: "trace_id in capitals", Code: "schema.pattern", Rule: "/properties/trace_id/pattern", edit: with("trace_id", "4BF92F3577B34DA6A3CE929D0E0E4736")},
	{Name: "trace_id is zero", Code: "schema.not", Rule: "/properties/trace_id/not", edit: with("trace_id", strings.Repeat("0", 32))},
	{Name: "trace_id is null", Code: "schema.type", Rule: "/properties/trace_id/type", edit: with("trace_id", nil)},
	{Name: "span_id is no number", Code: "schema.pattern", Rule: "/properties/span_id/pattern", edit: with("span_id", "00f067aa0ba902bg")},
	{Name: "span_id is zero", Code: "schema.not", Rule: "/properties/span_id/not", edit: with("span_id", strings.Repeat("0", 16))},
	{Name: "another version", Code: "schema.enum", Rule: "/properties/schema_version/const", edit: with("schema_version", "2.0")},
	{Name: "unknown node", Code: "schema.enum", Rule: "/properties/event/enum", edit: with("event", "training")},
	{Name: "input_hash is too short", Code: "schema.pattern", Rule: "/properties/business/properties/input_hash/pattern", edit: cutOff("business.input_hash", 2)},
	{Name: "input_hash of other text", Code: "hash.mismatch", Rule: "/properties/business/properties/input_hash", edit: with("business.input", "not what was hashed")},
	{Name: "input is a number", Code: "schema.type", Rule: "/properties/business/properties/input/type", edit: with("business.input", int64(7))},
	{Name: "user_id is a number", Code: "schema.type", Rule: "/properties/business/properties/user_id/type", edit: with("business.user_id", int64(42))},
	{Name: "business is text", Code: "schema.type", Rule: "/properties/business/type", edit: with("business", "search")},
	{Name: "gpu_memory_used_mb below 0", Code: "schema.range", Rule: "/properties/system/properties/gpu_memory_used_mb/minimum", edit: with("system.gpu_memory_used_mb", -0.5)},
	{Name: "gpu_memory_used_mb is text", Code: "schema.type", Rule: "/properties/system/properties/gpu_memory_used_mb/type", edit: with("system.gpu_memory_used_mb", "61440")},
	{Name: "gpu_util_percent above 100", Code: "schema.range", Rule: "/properties/system/properties/gpu_util_percent/maximum", edit: with("system.gpu_util_percent", 100.5)},
	{Name: "gpu_util_percent below 0", Code: "schema.range", Rule: "/properties/system/properties/gpu_util_percent/minimum", edit: with("system.gpu_util_percent", int64(-1))},
	{Name: "model_version is a number", Code: "schema.type", Rule: "/properties/system/properties/model_version/type", edit: with("system.model_version", 3.1)},
	{Name: "shape is a number", Code: "schema.type", Rule: "/$defs/stats/properties/shape/type", edit: with("computation.input_stats.shape", int64(512))},
	{Name: "shape has text", Code: "schema.type", Rule: "/$defs/stats/properties/shape/items/type", edit: with("computation.output_stats.shape", []any{int64(1), "512"})},
	{Name: "shape below 0", Code: "schema.range", Rule: "/$defs/stats/properties/shape/items/minimum", edit: with("computation.input_stats.shape", []any{int64(-1), int64(512)})},
	{Name: "shape has a fraction", Code: "schema.type", Rule: "/$defs/stats/properties/shape/items/type", edit: with("computation.input_stats.shape", []any{1.5})},
	{Name: "has_nan is text", Code: "schema.type", Rule: "/$defs/stats/properties/has_nan/type", edit: with("computation.input_stats.has_nan", "false")},
	{Name: "max_val is text", Code: "schema.type", Rule: "/$defs/stats/properties/max_val/type", edit: with("computation.output_stats.max_val", "21.5")},
	{Name: "unknown decision", Code: "schema.enum", Rule: "/properties/decision/properties/type/enum", edit: with("decision", map[string]any{"type": "panic"})},
	{Name: "decision without type", Code: "schema.required", Rule: "/properties/decision/required", edit: with("decision", map[string]any{"reason": "timeout"})},
	{Name: "tokens below 0", Code: "schema.range", Rule: "/properties/tokenization/properties/length/minimum", edit: with("tokenization", map[string]any{"length": int64(-1)})},
	{Name: "deviation is text", Code: "schema.type", Rule: "/properties/features/properties/deviations/additionalProperties/type", edit: with("features", map[string]any{"deviations": map[string]any{"age": "3"}})},
	{Name: "JSON is cut off", Code: "schema.json", JSONOnly: true, text: func(_ *rand.Rand, s string) string { return s[:len(s)*3/4] }},
	{Name: "JSON has NaN", Code: "schema.json", JSONOnly: true, text: func(_ *rand.Rand, s string) string { return s[:len(s)-1] + `,"loss":NaN}` }},
	{Name: "JSON is not UTF-8", Code: "schema.json", JSONOnly: true, text: func(_ *rand.Rand, s string) string { return s[:len(s)-1] + ",\"note\":\"\xff\"}" }},
	{Name: "JSON has a member twice", Code: "schema.duplicate", JSONOnly: true, text: func(_ *rand.Rand, s string) string { return s[:len(s)-1] + `,"req_id":"r-other"}` }},
	{Name: "JSON is too deep", Code: "schema.depth", JSONOnly: true, text: func(_ *rand.Rand, s string) string {
		return s[:len(s)-1] + `,"tree":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + "}"
	}},
	{Name: "number too large", Code: "schema.range", JSONOnly: true, text: func(_ *rand.Rand, s string) string { return s[:len(s)-1] + `,"loss":1e999}` }},
}

// Broken returns the i-th event, broken in the way of Kinds[kind], and the code of
// the reason that is due.
func Broken(rng *rand.Rand, i, kind int) (e Event, wantCode string) {
	k := Kinds[kind]
	e = Good(rng, i)
	if k.text != nil {
		return Event{Text: k.text(rng, string(e.JSON()))}, k.Code
	}
	k.edit(rng, e.Members)
	return e, k.Code
}

// parentOf finds the object that a path's last name is in.
func parentOf(e map[string]any, path string) (parent map[string]any, name string) {
	names := strings.Split(path, ".")
	for _, n := range names[:len(names)-1] {
		e = e[n].(map[string]any)
	}
	return e, names[len(names)-1]
}

func without(path string) func(*rand.Rand, map[string]any) {
	return func(_ *rand.Rand, e map[string]any) {
		parent, name := parentOf(e, path)
		delete(parent, name)
	}
}

func with(path string, value any) func(*rand.Rand, map[string]any) {
	return func(_ *rand.Rand, e map[string]any) {
		parent, name := parentOf(e, path)
		parent[name] = value
	}
}

// cutOff shortens a text by n bytes.
func cutOff(path string, n int) func(*rand.Rand, map[string]any) {
	return func(_ *rand.Rand, e map[string]any) {
		parent, name := parentOf(e, path)
		s := parent[name].(string)
		parent[name] = s[:len(s)-n]
	}
}
