// Package verdict judges: it takes a question about a stretch of time, gathers
// findings from all sources, weighs hypotheses and says what broke and how it
// knows. The same input gives the same verdict, byte for byte.
package verdict

import (
	"time"

	"inquest/record"
)

// State is how sure a verdict is.
type State string

// The states of a verdict.
const (
	// StateConfirmed needs strong evidence from at least two quadrants and a
	// margin over every other hypothesis.
	StateConfirmed State = "confirmed"
	// StateSuspected has a leading hypothesis that lacks a second quadrant or a
	// margin.
	StateSuspected State = "suspected"
	// StateInconclusive has nothing that separates.
	StateInconclusive State = "inconclusive"
)

// Range is a stretch of time, From inclusive, To exclusive.
type Range struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// Question is what an inquest is about.
type Question struct {
	// From and To bound the incident as far as the asker knows.
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// Symptom is what was felt, where that is known.
	Symptom *Symptom `json:"symptom,omitempty"`
	// Baseline are stretches of normal operation. When empty, the engine chooses
	// them itself; in either case it leaves out what is anomalous in them.
	Baseline []Range `json:"baseline,omitempty"`
	// Onset is when it began, when the asker knows. Otherwise it is estimated.
	Onset *time.Time `json:"onset,omitempty"`
}

// Symptom is what was felt. All fields are optional.
type Symptom struct {
	Entity    *record.Entity `json:"entity,omitempty"`
	Operation string         `json:"operation,omitempty"`
	Metric    string         `json:"metric,omitempty"`
	Text      string         `json:"text,omitempty"`
}

// Verdict is the answer. All lists have a stable order.
type Verdict struct {
	State    State    `json:"state"`
	Summary  string   `json:"summary"`
	Question Question `json:"question"`
	// Window is what was examined, Baseline what it was compared with.
	Window   Range   `json:"window"`
	Baseline []Range `json:"baseline"`

	// Cause is the leading hypothesis; nil when the verdict is inconclusive.
	Cause *Cause `json:"cause,omitempty"`
	Onset *Onset `json:"onset,omitempty"`
	// Also are further causes that broke at the same time: each stands on evidence
	// that none before it explains. Most verdicts have none.
	Also []Further `json:"also,omitempty"`
	// Confidence is the leading hypothesis' share of the belief, 0 to 1.
	Confidence float64 `json:"confidence"`
	// Quadrants are those with strong evidence for the cause.
	Quadrants []record.Quadrant `json:"quadrants"`
	// Chain is how the fault spread, from the cause outwards.
	Chain []Effect `json:"chain,omitempty"`
	// Findings are all findings that the verdict refers to, the cause's first.
	Findings []record.Finding `json:"findings"`
	// Counter is what speaks against the cause.
	Counter []Counter `json:"counter_evidence,omitempty"`
	// Alternatives are the other hypotheses, best first.
	Alternatives []Hypothesis `json:"alternatives,omitempty"`
	// Examined and NotExamined say of each source what was looked at. A source
	// in NotExamined never counts as having shown nothing.
	Examined    []Examined `json:"examined"`
	NotExamined []Missing  `json:"not_examined,omitempty"`
	// Clocks are those that were corrected, and those that could not be judged.
	Clocks []Clock `json:"clocks,omitempty"`
	// NextChecks are what to look at next, most telling first.
	NextChecks []string `json:"next_checks,omitempty"`
}

// Cause is what broke.
type Cause struct {
	// Entity is the service, pod, node, GPU, model or dependency at fault.
	Entity record.Entity `json:"entity"`
	// Instances are the pods or nodes that carry it, when the entity is a service.
	Instances []record.Entity `json:"instances,omitempty"`
	// Fault is the identifier of the catalogue entry, Title its name.
	Fault string `json:"fault"`
	Title string `json:"title"`
	// Mechanism says how such a fault works.
	Mechanism string `json:"mechanism,omitempty"`
	Operation string `json:"operation,omitempty"`
	Metric    string `json:"metric,omitempty"`
	// Code is the region of the code, where log statements or spans tell it.
	Code *CodeRegion `json:"code,omitempty"`
	// Remedy and Check come from the catalogue.
	Remedy string `json:"remedy,omitempty"`
	Check  string `json:"check,omitempty"`
	// Findings are the identifiers of the evidence for it.
	Findings []string `json:"findings"`
	// Weights say what each expectation of the fault contributed.
	Weights []Weight `json:"weights"`
}

// Further is a cause that broke besides the first.
type Further struct {
	Cause
	// State is confirmed with strong evidence from at least two quadrants, else
	// suspected.
	State State  `json:"state"`
	Onset *Onset `json:"onset,omitempty"`
	// Confidence, 0 to 1, is that it is there, given the causes before it.
	Confidence float64           `json:"confidence"`
	Quadrants  []record.Quadrant `json:"quadrants"`
}

// Weight is what one expectation of a fault contributed to its score.
type Weight struct {
	Quadrant record.Quadrant `json:"quadrant"`
	Text     string          `json:"text"`
	// Strength is the p-value of the evidence, corrected for the number of
	// measures looked at; 1 when nothing was seen.
	Strength float64 `json:"strength"`
	// Nats is the logarithm of the likelihood ratio; 0 when not examined.
	Nats     float64  `json:"nats"`
	Examined bool     `json:"examined"`
	Findings []string `json:"findings,omitempty"`
}

// CodeRegion lies between two log statements (or operations) of a service: the
// last that was still reached and the first that was not. Either may be empty.
type CodeRegion struct {
	After  string `json:"after,omitempty"`
	Before string `json:"before,omitempty"`
	// Missing are all statements that stopped appearing, in the order in which
	// the code used to reach them.
	Missing []string `json:"missing,omitempty"`
}

// Onset is when the fault began.
type Onset struct {
	Time         time.Time `json:"time"`
	ErrorSeconds float64   `json:"error_seconds"`
	// Given is true when the asker told it.
	Given bool `json:"given,omitempty"`
}

// Effect is one link of the chain.
type Effect struct {
	Entity record.Entity `json:"entity"`
	// Via is the edge by which the effect came, nil for the cause itself.
	Via      *record.Edge `json:"via,omitempty"`
	Text     string       `json:"text"`
	Findings []string     `json:"findings,omitempty"`
}

// Counter is something that speaks against a hypothesis.
type Counter struct {
	// Kind is "missing" (predicted, looked for, not there), "contradiction" or
	// "unexplained" (seen, but not by this cause).
	Kind     string          `json:"kind"`
	Quadrant record.Quadrant `json:"quadrant,omitempty"`
	Text     string          `json:"text"`
	Findings []string        `json:"findings,omitempty"`
}

// Hypothesis is a fault at an entity and how well it stands.
type Hypothesis struct {
	Entity record.Entity `json:"entity"`
	Fault  string        `json:"fault"`
	Title  string        `json:"title"`
	// Score is in nats: the logarithm of how much more likely the evidence is
	// under the hypothesis than without a fault.
	Score       float64           `json:"score"`
	Probability float64           `json:"probability"`
	Quadrants   []record.Quadrant `json:"quadrants"`
	Findings    []string          `json:"findings,omitempty"`
	Weights     []Weight          `json:"weights,omitempty"`
	// Against says why it is not the leading one.
	Against string `json:"against,omitempty"`
}

// Examined is a source that was looked at.
type Examined struct {
	Source   string          `json:"source"`
	Quadrant record.Quadrant `json:"quadrant"`
	Items    int             `json:"items"`
	Ranges   []Range         `json:"ranges,omitempty"`
}

// Missing is a source, or part of one, that was not looked at.
type Missing struct {
	Source   string          `json:"source"`
	Quadrant record.Quadrant `json:"quadrant"`
	Reason   string          `json:"reason"`
	Ranges   []Range         `json:"ranges,omitempty"`
}
