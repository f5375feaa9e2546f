package inquest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// Level is how severe an event is.
type Level string

// The levels of an event.
const (
	LevelTrace Level = "TRACE"
	LevelDebug Level = "DEBUG"
	LevelInfo  Level = "INFO"
	LevelWarn  Level = "WARN"
	LevelError Level = "ERROR"
	LevelFatal Level = "FATAL"
)

// schemaVersion is the version of the event schema that is written.
const schemaVersion = "1.0"

// Event is one AI event as it is written. Callers meet it in [Config.OnEvent]
// only: they write the nodes ([Ingress] and its like).
type Event struct {
	SchemaVersion string      `json:"schema_version"`
	Timestamp     time.Time   `json:"timestamp"`
	Level         Level       `json:"level"`
	Service       string      `json:"service"`
	RequestID     string      `json:"req_id,omitempty"`
	TraceID       string      `json:"trace_id,omitempty"`
	SpanID        string      `json:"span_id,omitempty"`
	Event         string      `json:"event"`
	Message       string      `json:"message,omitempty"`
	Business      business    `json:"business"`
	System        System      `json:"system"`
	Computation   computation `json:"computation"`

	Tokenization *Tokenization  `json:"tokenization,omitempty"`
	Features     *features      `json:"features,omitempty"`
	ModelLoad    *modelLoad     `json:"model_load,omitempty"`
	Inference    *inference     `json:"inference,omitempty"`
	Decision     *decision      `json:"decision,omitempty"`
	Extra        map[string]any `json:"-"` // members of the user's own

	oddTime bool // the caller's time could not be written
}

// System is the state of the device that a step runs on.
type System struct {
	GPUMemoryUsedMB float64 `json:"gpu_memory_used_mb"` // 0 on a CPU
	GPUUtilPercent  float64 `json:"gpu_util_percent"`   // 0 to 100; 0 on a CPU
	ModelVersion    string  `json:"model_version"`
	Device          string  `json:"device"` // such as cuda:0 or cpu
}

type business struct {
	BizType   string  `json:"biz_type"`
	UserID    string  `json:"user_id"`
	InputHash string  `json:"input_hash,omitempty"`
	Input     *string `json:"input,omitempty"`
}

type computation struct {
	OpName string `json:"op_name"`
	Input  Stats  `json:"input_stats"`
	Output Stats  `json:"output_stats"`
}

type features struct {
	Deviations map[string]float64 `json:"deviations,omitempty"`
	Unseen     []string           `json:"unseen,omitempty"`
	OutOfRange []string           `json:"out_of_range,omitempty"`
}

type modelLoad struct {
	ConfiguredVersion string             `json:"configured_version,omitempty"`
	ConfiguredPath    string             `json:"configured_path,omitempty"`
	RealPath          string             `json:"real_path,omitempty"`
	FileSHA256        string             `json:"file_sha256,omitempty"`
	Device            string             `json:"device,omitempty"`
	Fallback          bool               `json:"fallback"`
	Stages            map[string]float64 `json:"stages,omitempty"`
}

type inference struct {
	Stages map[string]float64 `json:"stages"`
}

type decision struct {
	Type   DecisionType `json:"type"`
	Reason string       `json:"reason,omitempty"`
	From   string       `json:"from,omitempty"`
	To     string       `json:"to,omitempty"`
}

// encode writes the event as JSON on one line. What of Extra cannot be written
// is named in problem, and the rest is written.
func (e *Event) encode() (text []byte, problem error) {
	text, err := oneLine(e)
	if err != nil {
		return nil, fmt.Errorf("cannot write the event: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(e.Extra)) {
		if reserved[name] {
			problem = fmt.Errorf("the extra member %q has the name of one of the event's own, it is left out", name)
			continue
		}
		value, err := oneLine(e.Extra[name])
		if err != nil {
			problem = fmt.Errorf("the extra member %q is left out: %w", name, err)
			continue
		}
		key, err := oneLine(name)
		if err != nil {
			problem = err
			continue
		}
		text = append(text[:len(text)-1], ',')
		text = append(append(append(append(text, key...), ':'), value...), '}')
	}
	return text, problem
}

// reserved are the members that Extra cannot have.
var reserved = map[string]bool{
	"schema_version": true, "timestamp": true, "level": true, "service": true, "req_id": true,
	"trace_id": true, "span_id": true, "event": true, "message": true, "business": true,
	"system": true, "computation": true, "tokenization": true, "features": true,
	"model_load": true, "inference": true, "decision": true,
}

// oneLine is JSON without a line feed and without escapes for HTML.
func oneLine(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	var compact bytes.Buffer // a user's json.RawMessage may hold line feeds
	if err := json.Compact(&compact, b.Bytes()); err != nil {
		return nil, err
	}
	return compact.Bytes(), nil
}

// finite returns what JSON can write instead of an infinite number.
func finite(v float64) float64 {
	return max(-math.MaxFloat64, min(math.MaxFloat64, v))
}

func seconds(stages map[string]time.Duration) map[string]float64 {
	if stages == nil {
		return nil
	}
	out := make(map[string]float64, len(stages))
	for k, v := range stages {
		out[k] = max(0, v.Seconds())
	}
	return out
}
