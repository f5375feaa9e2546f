package decision

import (
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"inquest/record"
)

// attributes are the rules by the names of attributes.
type attributes struct {
	rules []AttributeRule
	names map[string]int // to a rule
	// Most names are none of ours: their length or first byte tells it.
	lengths [256]bool
	firsts  [256]bool
}

func newAttributes(rules []AttributeRule) attributes {
	a := attributes{rules: rules, names: map[string]int{}}
	for i, r := range rules {
		for _, name := range r.Names {
			if _, ok := a.names[name]; !ok {
				a.names[name] = i
			}
			a.lengths[min(len(name), len(a.lengths)-1)] = true
			a.firsts[name[0]] = true
		}
	}
	return a
}

// told is what the attributes of one record told.
type told struct {
	rule     int // that decided; -1 for none
	decision Decision
	kind     string // of decision.type
	reason   string
	from, to string
}

// rule returns the number of the rule for an attribute's name, or -1.
func (a *attributes) rule(name string) int {
	if name == "" || !a.firsts[name[0]] || !a.lengths[min(len(name), len(a.lengths)-1)] {
		return -1
	}
	if i, ok := a.names[name]; ok {
		return i
	}
	return -1
}

// read takes in an attribute that rule i is for.
func (a *attributes) read(t *told, i int, value string) {
	r := &a.rules[i]
	switch r.Is {
	case "type":
		t.kind = value
		return
	case "reason":
		t.reason = value
		return
	case "from":
		t.from = value
		return
	case "to":
		t.to = value
		return
	}
	if t.rule >= 0 && t.rule <= i {
		return
	}
	if r.Above != nil {
		n, err := strconv.ParseFloat(value, 64)
		if err != nil || !(n > *r.Above) {
			return
		}
		t.rule, t.decision = i, Decision{Type: r.Type}
		return
	}
	if len(value) > 64 {
		return
	}
	if reason, ok := r.Values[strings.ToLower(strings.TrimSpace(value))]; ok {
		t.rule, t.decision = i, Decision{Type: r.Type, Reason: reason}
	}
}

// decide joins what attributes and body tell. Attributes count more, and the
// body adds what they leave out.
func (r *Recogniser) decide(t *told, body string) (Decision, bool) {
	d, ok := t.decision, t.rule >= 0
	if kind, named := ParseType(t.kind); named {
		if d.Type != kind {
			d = Decision{Type: kind}
		}
		ok = true
	}
	text, spoken := r.Body(body)
	if !ok {
		if !spoken {
			return Decision{}, false
		}
		d = text
	} else if spoken && text.Type == d.Type {
		d = fill(d, text)
	}
	// What an attribute calls the reason, the source or the target is it.
	if t.reason != "" {
		if outcome, _, _ := strings.Cut(d.Reason, ":"); d.Type == Cache && isOutcome(outcome) && !strings.EqualFold(outcome, t.reason) && !isOutcome(firstWord(t.reason)) {
			d.Reason = outcome + ": " + t.reason
		} else {
			d.Reason = t.reason
		}
	}
	if t.from != "" {
		d.From = t.from
	}
	if t.to != "" {
		d.To = t.to
	}
	d.Reason, d.From, d.To = strings.Clone(start(d.Reason, maxReason)), strings.Clone(start(d.From, maxObject)), strings.Clone(start(d.To, maxObject))
	return d, true
}

func firstWord(s string) string {
	w, _, _ := strings.Cut(s, ":")
	return strings.ToLower(w)
}

func isOutcome(s string) bool { return s == "hit" || s == "miss" || s == "bypass" }

// fill adds to d what more has and d has not.
func fill(d, more Decision) Decision {
	if d.Reason == "" || strings.HasPrefix(more.Reason, d.Reason+": ") {
		d.Reason = more.Reason
	}
	if d.From == "" {
		d.From = more.From
	}
	if d.To == "" {
		d.To = more.To
	}
	return d
}

// Recognise recognises a decision in a log body and the record's attributes.
func (r *Recogniser) Recognise(body string, attrs []record.Field) (Decision, bool) {
	t := told{rule: -1}
	for i := range attrs {
		if n := r.attributes.rule(attrs[i].Name); n >= 0 {
			r.attributes.read(&t, n, attrs[i].Value)
		}
	}
	return r.decide(&t, body)
}

// RecogniseLog is [Recogniser.Recognise] for a record as it arrives. A body that
// is a map or list is read as JSON.
func (r *Recogniser) RecogniseLog(lr plog.LogRecord) (Decision, bool) {
	t := told{rule: -1}
	for name, v := range lr.Attributes().All() {
		if n := r.attributes.rule(name); n >= 0 {
			r.attributes.read(&t, n, v.AsString())
		}
	}
	if b := lr.Body(); b.Type() == pcommon.ValueTypeMap {
		for name, v := range b.Map().All() {
			if n := r.attributes.rule(name); n >= 0 {
				r.attributes.read(&t, n, v.AsString())
			}
		}
	}
	return r.decide(&t, lr.Body().AsString())
}

// Put writes d to a record's attributes. Those that the record has already stay.
func (d Decision) Put(attrs pcommon.Map) {
	for _, f := range []record.Field{
		{Name: AttributeType, Value: string(d.Type)},
		{Name: AttributeReason, Value: d.Reason},
		{Name: AttributeFrom, Value: d.From},
		{Name: AttributeTo, Value: d.To},
	} {
		if f.Value == "" {
			continue
		}
		if _, ok := attrs.Get(f.Name); !ok {
			attrs.PutStr(f.Name, f.Value)
		}
	}
}
