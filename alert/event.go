// Package alert tells people about what happened, through webhooks.
//
// Events are grouped by reason and service. The first event of a group is told
// at once; after that the group is told at most once an interval, with the
// number of events and one example. An event is never dropped silently: what
// cannot be told now is counted into a later message, and what was never told is
// counted as lost.
package alert

import (
	"cmp"
	"strings"
	"time"
)

// Severity says how bad an event is.
type Severity string

// The severities, the mildest first.
const (
	SeverityInfo     Severity = "info"
	SeverityWarning  Severity = "warning"
	SeverityError    Severity = "error"
	SeverityCritical Severity = "critical"
)

// rank orders severities; one that is unknown counts as a warning.
func (s Severity) rank() int {
	switch s {
	case SeverityInfo:
		return 0
	case SeverityError:
		return 2
	case SeverityCritical:
		return 3
	default:
		return 1
	}
}

// known returns s, or a warning for a severity that is not of the list.
func (s Severity) known() Severity {
	return [...]Severity{SeverityInfo, SeverityWarning, SeverityError, SeverityCritical}[s.rank()]
}

// Event is one thing that happened.
type Event struct {
	// Time is when it happened; now where it is zero.
	Time time.Time
	// Reason is a short stable code such as "schema.pattern". Reason and
	// Service together name the group.
	Reason string
	// Service is whom it happened to; may be empty.
	Service string
	// Severity is a warning where it is empty.
	Severity Severity
	// Source is the way it came in, such as "otlp/http".
	Source string
	// ID leads to the event, such as the number of a dead letter.
	ID string
	// Text says what happened in a sentence.
	Text string
	// Hint says what to do next.
	Hint string
	// Labels are further facts for the reader, shown in their order. Those
	// beyond [MaxLabels] are left out, and the message says how many.
	Labels []Label
}

// Label is one named fact.
type Label struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Limits of what a message shows of an event. What is longer is cut, visibly.
const (
	MaxNameSize  = 256     // bytes of a reason, service, source, id, label
	MaxTextSize  = 4 << 10 // bytes of a text or hint
	MaxLabels    = 10
	maxOthers    = 5 // groups that a message of merged groups names
	otherReason  = "other"
	otherService = "several services"
)

// Message is what one webhook call tells: the events of one group since the
// group was told last.
type Message struct {
	// ID is the same in every try to send the message, so that a receiver can
	// tell a repetition.
	ID       string
	Reason   string
	Service  string
	Severity Severity // the worst of its events
	Count    int64    // events
	First    time.Time
	Last     time.Time
	Example  Event // the first of them
	// Merged is set on the message of groups beyond the limit on groups. Others
	// names some of them as "reason in service".
	Merged bool
	Others []string
}

// kept returns what a group keeps of an event as its example: a copy that holds
// no larger buffer alive, with every text within its limit.
func (e Event) kept() Event {
	e.Reason = strings.Clone(clean(e.Reason, MaxNameSize))
	e.Service = strings.Clone(clean(e.Service, MaxNameSize))
	e.Source = strings.Clone(clean(e.Source, MaxNameSize))
	e.ID = strings.Clone(clean(e.ID, MaxNameSize))
	e.Text = strings.Clone(clean(e.Text, MaxTextSize))
	e.Hint = strings.Clone(clean(e.Hint, MaxTextSize))
	e.Severity = e.Severity.known()
	n := min(len(e.Labels), MaxLabels)
	labels := make([]Label, 0, n+1)
	for _, l := range e.Labels[:n] {
		labels = append(labels, Label{
			Name:  strings.Clone(clean(l.Name, MaxNameSize)),
			Value: strings.Clone(clean(l.Value, MaxNameSize)),
		})
	}
	if more := len(e.Labels) - n; more > 0 {
		labels = append(labels, Label{Name: "labels left out", Value: count(int64(more))})
	}
	e.Labels = labels
	return e
}

// worse returns the worse of two severities.
func worse(a, b Severity) Severity {
	if cmp.Compare(a.rank(), b.rank()) < 0 {
		return b.known()
	}
	return a.known()
}
