package traces

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	"inquest/record"
	"inquest/sensor"
)

// Kinds of what a request does inside a service, in ms.
const (
	// KindConnectTime is the time to open a connection; the subject is the phase:
	// dns, connect or tls.
	KindConnectTime = "connect_time"
	// KindLoadTime is the time to load, initialise or warm up a model.
	KindLoadTime = "load_time"
	// KindQueueTime is the time of waiting for a turn, a worker or a connection.
	KindQueueTime = "queue_time"
	// KindSpanTime is the time of any other internal span, its children not counted.
	KindSpanTime = "span_time"
)

// attributeQueue is the time of waiting for the engine, in s.
const attributeQueue = "llm.request.queue_time"

// Phases measures spans inside of visits by what their names say that they do.
// They are parts of self_time, which says how much it is in all: here is where.
type Phases struct{}

// Name implements [sensor.Sensor].
func (Phases) Name() string { return "traces/phases" }

// Quadrant implements [sensor.Sensor].
func (Phases) Quadrant() record.Quadrant { return record.QuadrantTraces }

// Measure implements [sensor.Sensor].
func (s Phases) Measure(w *sensor.Window, p *sensor.Profile) {
	named := map[string]phase{}
	samples := newSamples(s, p, "ms")
	for _, t := range w.Traces {
		for _, n := range t.Nodes {
			if v := n.Attributes[attributeQueue]; v != "" {
				if seconds, err := strconv.ParseFloat(v, 64); err == nil {
					samples.add(measured{KindQueueTime, n.Service, attributeQueue}, seconds*1e3, n)
				}
			}
			if n.Kind != "internal" && n.Kind != "client" && n.Kind != "" {
				continue
			}
			ph, ok := named[n.Name]
			if !ok {
				ph = phaseOf(n.Name)
				named[n.Name] = ph
			}
			switch {
			case ph.kind == KindSpanTime:
				if n.Kind == "client" || n == n.Visit.Entry || leads(n) {
					continue
				}
				samples.add(measured{ph.kind, n.Service, ph.subject}, float64(n.Self)/1e6, n)
			case leads(n):
				// A call, whatever its name is.
			default:
				samples.add(measured{ph.kind, n.Service, ph.subject}, float64(n.Duration)/1e6, n)
				if ph.kind == KindConnectTime {
					connected(s, p, ph.subject, n)
				}
			}
		}
	}
}

// connected measures the way to the other end of a connection, where it is known.
func connected(s sensor.Sensor, p *sensor.Profile, subject string, n *sensor.Node) {
	if n.Above == nil || n.Above.Visit != n.Visit {
		return
	}
	for _, c := range n.Above.Children {
		if c.Visit == n.Visit {
			continue
		}
		k := key(s, KindConnectTime, sensor.Service(c.Service), subject, "ms")
		k.Peer = sensor.Service(n.Service)
		p.Value(k, float64(n.Duration)/1e6, short(n))
		return
	}
}

// leads reports whether a child of n is of another visit.
func leads(n *sensor.Node) bool {
	for _, c := range n.Children {
		if c.Visit != n.Visit {
			return true
		}
	}
	return false
}

// phase is what a span's name says that it does.
type phase struct{ kind, subject string }

var (
	queueWords = []string{"queue", "queued", "queueing", "queuing", "wait", "waiting", "acquire", "pending"}
	loadWords  = []string{"load", "loading", "init", "initialize", "initialise", "initialization", "initialisation", "warmup", "compile", "capture", "download"}
	modelWords = []string{
		"model", "models", "weight", "weights", "engine", "checkpoint", "adapter", "lora", "tokenizer",
		"graph", "graphs", "kernel", "kernels", "cuda", "shards",
	}
)

// phaseOf reads a span's name. Names of routes and statements are not read: they
// tell what is asked for.
func phaseOf(name string) phase {
	other := phase{KindSpanTime, sensor.OperationName(name)}
	if strings.ContainsAny(name, "/?=") {
		return other
	}
	words := nameWords(name)
	has := func(any ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(any, w) })
	}
	switch {
	case has("dns", "getaddrinfo"):
		return phase{KindConnectTime, "dns"}
	case has("tls", "ssl", "handshake"):
		return phase{KindConnectTime, "tls"}
	case has(queueWords...):
		return phase{KindQueueTime, other.subject}
	case has("connect", "connecting", "dial"):
		return phase{KindConnectTime, "connect"}
	case has("warmup") || has("warm") && has("up") || has(loadWords...) && has(modelWords...):
		return phase{KindLoadTime, other.subject}
	}
	return other
}

// nameWords cuts a name at what is no letter and at humps, in small letters.
func nameWords(name string) []string {
	var out []string
	from, last := -1, rune(0)
	for i, r := range name {
		switch {
		case !unicode.IsLetter(r):
			if from >= 0 {
				out = append(out, strings.ToLower(name[from:i]))
			}
			from = -1
		case from >= 0 && unicode.IsUpper(r) && unicode.IsLower(last):
			out = append(out, strings.ToLower(name[from:i]))
			from = i
		case from < 0:
			from = i
		}
		last = r
	}
	if from >= 0 {
		out = append(out, strings.ToLower(name[from:]))
	}
	return out
}
