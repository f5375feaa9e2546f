package admit

import (
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"inquest/admit/event"
)

// Policy is what is asked of log records beyond that they can be stored. Its
// zero value asks nothing. It may be used concurrently.
type Policy struct {
	// Events checks AI events. Nil takes them as ordinary log records.
	Events *event.Validator
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
	if service == "" { // the event's own
		if v, ok := lr.Attributes().Get(event.Prefix + "service"); ok {
			service = v.AsString()
		}
	}
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
