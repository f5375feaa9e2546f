package inquest

import (
	"math"
	"slices"
	"time"
)

// Node is an event at one of the nodes of a request's way. The types of this
// package are all there are.
type Node interface {
	// fill writes the node's own fields over the template.
	fill(*Event)
	common() *Common
}

// Common are the fields that each node may have. All may be left out.
type Common struct {
	Message string
	Level   Level     // default INFO; WARN for NaN, a fallback, a decision
	Time    time.Time // when the step ended; default now
	Op      string    // name of the operation; default the node's
	Input   *Stats    // of what went in
	Output  *Stats    // of what came out
	// Extra are members of your own, written beside the event's. Their values must
	// have a JSON form.
	Extra map[string]any
}

func (c *Common) common() *Common { return c }

// Ingress is the arrival of a request.
type Ingress struct {
	Common
	// Raw is the input as it came. Its hash is on this event and on the later ones
	// of the same request; it is itself written only with [Config.CaptureInput].
	Raw string
}

// Preprocess is the preparation of the input: tokenization for a language model.
type Preprocess struct {
	Common
	Tokenization *Tokenization
}

// Tokenization is what the tokenizer did.
type Tokenization struct {
	Length         int    `json:"length"` // tokens after the cut
	Truncated      bool   `json:"truncated"`
	TruncationSide string `json:"truncation_side"` // left, right or none
	MaxLength      int    `json:"max_length"`      // tokens that are let through
}

// Feature is the making of features.
type Feature struct {
	Common
	Deviations map[string]float64 // by feature, standard deviations from the training's mean
	Unseen     []string           // features with a category that the training did not have
	OutOfRange []string           // features outside the training's range
}

// ModelLoad is the loading of a model. [LoadModel] fills it in.
type ModelLoad struct {
	Common
	ConfiguredVersion string
	ConfiguredPath    string
	RealPath          string // with links resolved
	FileSHA256        string // 64 lower-case hexadecimal digits
	Device            string
	Fallback          bool // something else was loaded than asked for
	Stages            map[string]time.Duration
}

// Inference is a run of the model.
type Inference struct {
	Common
	Stages map[string]time.Duration
}

// Postprocess is the making of the answer from the model's output.
type Postprocess struct{ Common }

// Egress is the answer's departure.
type Egress struct{ Common }

// DecisionType is a kind of decision.
type DecisionType string

// The kinds of decision.
const (
	DecisionCache    DecisionType = "cache"
	DecisionFallback DecisionType = "fallback"
	DecisionRetry    DecisionType = "retry"
	DecisionDegrade  DecisionType = "degrade"
	DecisionSwitch   DecisionType = "switch"
)

// Decision says that the service took another way than the usual one.
type Decision struct {
	Common
	Type   DecisionType
	Reason string // why; a decision without one helps nobody
	From   string // what would have been used
	To     string // what was used
}

func (n *Ingress) fill(e *Event) {
	e.Event = "ingress"
	if n.Input == nil && n.Raw != "" {
		e.Computation.Input = *StatsOfText(n.Raw)
	}
}

func (n *Preprocess) fill(e *Event) {
	e.Event = "preprocess"
	if n.Tokenization != nil {
		t := *n.Tokenization
		t.Length, t.MaxLength = max(0, t.Length), max(0, t.MaxLength)
		if t.TruncationSide == "" {
			t.TruncationSide = "none"
		}
		e.Tokenization = &t
	}
}

func (n *Feature) fill(e *Event) {
	e.Event = "feature"
	f := &features{Unseen: n.Unseen, OutOfRange: slices.Clone(n.OutOfRange)}
	for name, sigma := range n.Deviations {
		if math.IsNaN(sigma) { // JSON has no NaN, and it is in no range
			f.OutOfRange = append(f.OutOfRange, name)
			continue
		}
		if f.Deviations == nil {
			f.Deviations = map[string]float64{}
		}
		f.Deviations[name] = finite(sigma)
	}
	slices.Sort(f.OutOfRange)
	f.OutOfRange = slices.Compact(f.OutOfRange)
	e.Features = f
}

func (n *ModelLoad) fill(e *Event) {
	e.Event = "model_load"
	if n.Fallback {
		e.Level = LevelWarn
	}
	e.ModelLoad = &modelLoad{
		n.ConfiguredVersion, n.ConfiguredPath, n.RealPath, n.FileSHA256, n.Device, n.Fallback, seconds(n.Stages),
	}
	if n.Device != "" {
		e.System.Device = n.Device
	}
}

func (n *Inference) fill(e *Event) {
	e.Event = "inference"
	if n.Stages != nil {
		e.Inference = &inference{seconds(n.Stages)}
	}
}

func (n *Postprocess) fill(e *Event) { e.Event = "postprocess" }

func (n *Egress) fill(e *Event) { e.Event = "egress" }

func (n *Decision) fill(e *Event) {
	e.Event = "decision"
	e.Level = LevelWarn
	e.Decision = &decision{n.Type, n.Reason, n.From, n.To}
}
