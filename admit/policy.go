package admit

import (
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"inquest/admit/decision"
	"inquest/admit/event"
)

// Policy is what is asked of log records beyond that they can be stored. Its
// zero value asks nothing. It may be used concurrently.
type Policy struct {
	// Events checks AI events. Nil takes them as ordinary log records.
	Events *event.Validator
	// Decisions recognises decision logs and spans named for decisions; nil
	// recognises none.
	Decisions *decision.Recogniser
	// Validate fills in whether what an accepted event claims is true; it may be
	// nil. It must return at once.
	Validate func(service string, lr plog.LogRecord)
}

// Input is the raw input that an accepted event brought. It is no longer in the
// record.
type Input struct {
	event.Input
	Service string
	Record  plog.LogRecord
}

// Logs is [Logs] with the policy. The inputs share memory with ld.
func (p *Policy) Logs(ld plog.Logs, b Bounds, received int64, rep *Report) (kept int, inputs []Input) {
	a := admission{policy: p}
	kept = a.logs(ld, b, received, rep)
	return kept, a.inputs
}

// Spans is [Spans] with the policy.
func (p *Policy) Spans(td ptrace.Traces, b Bounds, received int64, rep *Report) (kept int) {
	a := admission{policy: p}
	return a.spans(td, b, received, rep)
}

// decided types a record that tells of a decision.
func (a *admission) decided(lr plog.LogRecord) {
	if a.policy == nil || a.policy.Decisions == nil {
		return
	}
	if d, ok := a.policy.Decisions.RecogniseLog(lr); ok {
		d.Put(lr.Attributes())
		a.rep.SetBody(nil) // what came is not what is stored
	}
}

// decidedSpan types a span that is named for a decision.
func (a *admission) decidedSpan(sp ptrace.Span) {
	if a.policy == nil || a.policy.Decisions == nil {
		return
	}
	t, ok := a.policy.Decisions.Span(sp.Name())
	if !ok {
		return
	}
	if _, has := sp.Attributes().Get(decision.AttributeSpanType); !has {
		sp.Attributes().PutStr(decision.AttributeSpanType, string(t))
		a.rep.SetBody(nil)
	}
}

// event checks an AI event and brings it into its stored form.
func (a *admission) event(lr plog.LogRecord, sh *shared) bool {
	in, why := a.policy.Events.Admit(sh.resource, lr, a.received, true)
	if why != nil {
		a.kind = LetterEvent
		a.reject(badEvent, 1, func() string { return "AI event refused, " + why.Code + ": " + why.Detail })
		a.lastCode, a.lastRule, a.lastText = why.Code, why.Rule, why.Detail
		return false
	}
	// What came is not what is stored.
	a.rep.SetBody(nil)
	service := serviceOf(sh)
	if in.Given {
		a.inputs = append(a.inputs, Input{Input: in, Service: service, Record: lr})
	}
	if a.policy.Validate != nil {
		a.policy.Validate(service, lr)
	}
	return true
}

// giveBack puts the raw input back into an event that is refused after all.
func (a *admission) giveBack(lr plog.LogRecord) {
	a.kind = LetterEvent
	n := len(a.inputs) - 1
	if n < 0 || a.inputs[n].Record != lr {
		return
	}
	lr.Attributes().PutStr(attributeInput, a.inputs[n].Text)
	a.inputs = a.inputs[:n]
}

const attributeInput = event.Prefix + "business.input"
