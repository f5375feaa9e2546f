package recorder

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"inquest/admit/decision"
)

// decider types records that tell of decisions, on their way to the stores: the
// journal keeps them as they came. The applier's goroutine uses it.
type decider struct {
	recogniser *decision.Recogniser     // may be nil
	names      map[string]decision.Type // of spans, those of no decision too
}

// maxSpanNames bounds the names that are remembered; then they are read anew.
const maxSpanNames = 10_000

func newDecider(r *decision.Recogniser) *decider {
	return &decider{recogniser: r, names: map[string]decision.Type{}}
}

// batch types the records of b. Doing so twice changes nothing.
func (d *decider) batch(b *batch) {
	switch {
	case d.recogniser == nil:
	case b.logs != nil:
		d.logs(*b.logs)
	case b.traces != nil:
		d.spans(*b.traces)
	}
}

func (d *decider) logs(ld plog.Logs) {
	for _, rl := range ld.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, lr := range sl.LogRecords().All() {
				if found, ok := d.recogniser.RecogniseLog(lr); ok {
					found.Put(lr.Attributes())
				}
			}
		}
	}
}

func (d *decider) spans(td ptrace.Traces) {
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, sp := range ss.Spans().All() {
				kind := d.named(sp.Name())
				if kind == "" {
					continue
				}
				if _, has := sp.Attributes().Get(decision.AttributeSpanType); !has {
					sp.Attributes().PutStr(decision.AttributeSpanType, string(kind))
				}
			}
		}
	}
}

// named returns the decision that a span of that name is about, or "".
func (d *decider) named(name string) decision.Type {
	kind, ok := d.names[name]
	if ok {
		return kind
	}
	if found, is := d.recogniser.Span(name); is {
		kind = found
	}
	if len(d.names) >= maxSpanNames {
		clear(d.names)
	}
	d.names[strings.Clone(name)] = kind
	return kind
}
