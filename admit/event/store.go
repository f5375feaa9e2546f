package event

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
)

// readClock reads the time that the event gave.
func (w *worker) readClock() *Reason {
	if !w.facts.given[roleTimestamp] {
		return nil
	}
	const rule = "/properties/timestamp"
	text := w.facts.value[roleTimestamp]
	t, err := slowTime(text)
	switch {
	case err != nil:
		return &Reason{Code: CodeFormat, Rule: rule, Detail: fmt.Sprintf("timestamp is %s: send an RFC 3339 date-time such as 2026-11-30T12:00:00.123456Z", quoted(text))}
	case t.Before(earliest):
		return &Reason{Code: CodeEarly, Rule: rule, Detail: fmt.Sprintf("timestamp is %s: no time before 1970 is stored, check the sender's clock", quoted(text))}
	case t.After(latest):
		return &Reason{Code: CodeLate, Rule: rule, Detail: fmt.Sprintf("timestamp is %s: no time after %s is stored, check the sender's clock", quoted(text), latest.UTC().Format(time.DateOnly))}
	}
	w.facts.time = t.UnixNano()
	return nil
}

// verify compares what a valid event says with what can be known of it.
func (w *worker) verify(lr plog.LogRecord) (Input, *Reason) {
	f := &w.facts
	if f.given[roleRequestID] {
		v, ok := lr.Attributes().Get(AttributeRequestID)
		if id := f.value[roleRequestID]; ok && v.AsString() != "" && v.AsString() != id {
			return Input{}, &Reason{Code: CodeConflict, Rule: "/properties/req_id", Detail: fmt.Sprintf("req_id is %s and the attribute %s is %s: a request keeps its id, send the same in both",
				quoted(id), AttributeRequestID, quoted(v.AsString()))}
		}
	}
	if !f.given[roleInput] || !f.given[roleInputHash] {
		return Input{}, nil
	}
	in := Input{Given: true, Text: f.value[roleInput], Hash: f.value[roleInputHash], UserID: f.value[roleUserID]}
	sum := sha256.Sum256([]byte(in.Text))
	var is [2 * sha256.Size]byte
	hex.Encode(is[:], sum[:])
	if string(is[:]) != in.Hash {
		return Input{}, &Reason{Code: CodeHash, Rule: "/properties/business/properties/input_hash", Detail: fmt.Sprintf(
			"business.input_hash is %s but the SHA-256 of business.input is %s: hash the UTF-8 bytes of the raw input as it came, before any change", quoted(in.Hash), is[:])}
	}
	return in, nil
}

// store gives lr the stored form. all says that leaves are all attributes of the
// event; otherwise those that lr has stay.
func (w *worker) store(resource pcommon.Resource, lr plog.LogRecord, received int64, dropInput, all bool) {
	attrs := lr.Attributes()
	sameService := w.facts.given[roleService] && w.facts.value[roleService] == serviceOf(resource)
	goes := func(r role) bool { return r == roleService && sameService || r == roleInput && dropInput }
	switch {
	case all:
		attrs.RemoveIf(func(name string, _ pcommon.Value) bool { return strings.HasPrefix(name, Prefix) })
	default:
		w.removeStored(attrs, goes)
	}
	attrs.EnsureCapacity(attrs.Len() + len(w.leaves) + 1)
	for i := range w.leaves {
		l := &w.leaves[i]
		if !goes(l.role) {
			w.put(attrs, l)
		}
	}
	if w.facts.given[roleRequestID] {
		attrs.PutStr(AttributeRequestID, w.facts.value[roleRequestID])
	}
	w.storeBody(lr)
	w.storeTimes(lr, received)
	w.storeLevel(lr)
	w.storeIDs(lr)
}

// removeStored removes the attributes that the log record holds in another place.
func (w *worker) removeStored(attrs pcommon.Map, goes func(role) bool) {
	some := false
	for r := noRole + 1; r < numRoles; r++ {
		some = some || w.facts.given[r] && (r.onRecord() || goes(r))
	}
	if !some {
		return
	}
	attrs.RemoveIf(func(name string, _ pcommon.Value) bool {
		n := w.plan.leaf(name)
		return n != nil && (n.role.onRecord() || goes(n.role))
	})
}

// storeBody puts the message into the body. A body that says something else than
// the message stays, and the message becomes an attribute.
func (w *worker) storeBody(lr plog.LogRecord) {
	given, message := w.facts.given[roleMessage], w.facts.value[roleMessage]
	body := lr.Body()
	isEmpty := body.Type() == pcommon.ValueTypeEmpty || body.Type() == pcommon.ValueTypeStr && body.Str() == ""
	switch {
	case given && (w.form == bodyForm || isEmpty):
		body.SetStr(message)
	case w.form == bodyForm:
		pcommon.NewValueEmpty().CopyTo(body)
	case given && (body.Type() != pcommon.ValueTypeStr || body.Str() != message):
		lr.Attributes().PutStr(Prefix+rolePaths[roleMessage], message)
	}
}

func (w *worker) storeTimes(lr plog.LogRecord, received int64) {
	switch {
	case w.facts.given[roleTimestamp]:
		lr.SetTimestamp(pcommon.Timestamp(w.facts.time))
	case lr.Timestamp() == 0:
		lr.SetTimestamp(lr.ObservedTimestamp())
	}
	if lr.ObservedTimestamp() == 0 && received > 0 {
		lr.SetObservedTimestamp(pcommon.Timestamp(received))
	}
}

// storeLevel sets the severity. A number that is finer than the level stays.
func (w *worker) storeLevel(lr plog.LogRecord) {
	level := w.facts.value[roleLevel]
	first := numberOf(level)
	if n := lr.SeverityNumber(); first != 0 && (n < first || n > first+3) {
		lr.SetSeverityNumber(first)
	}
	if w.facts.given[roleLevel] {
		lr.SetSeverityText(level)
	}
}

// storeIDs sets ids and the event's name. Where the record had another it is kept
// as an attribute.
func (w *worker) storeIDs(lr plog.LogRecord) {
	if w.facts.given[roleTraceID] {
		if was := lr.TraceID(); !was.IsEmpty() && was != w.trace {
			lr.Attributes().PutStr(AttributeOtherTraceID, was.String())
		}
		lr.SetTraceID(w.trace)
	}
	if w.facts.given[roleSpanID] {
		if was := lr.SpanID(); !was.IsEmpty() && was != w.span {
			lr.Attributes().PutStr(AttributeOtherSpanID, was.String())
		}
		lr.SetSpanID(w.span)
	}
	if w.facts.given[roleEvent] {
		if was := lr.EventName(); was == "" || was[min(len(was), len(Prefix)):] != w.facts.value[roleEvent] || !strings.HasPrefix(was, Prefix) {
			if was != "" && was != Prefix {
				lr.Attributes().PutStr(AttributeOtherEventName, was)
			}
			lr.SetEventName(Prefix + w.facts.value[roleEvent])
		}
	}
}
