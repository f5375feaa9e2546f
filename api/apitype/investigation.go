package apitype

import (
	"encoding/json"
	"time"
)

// States of a verdict.
const (
	StateConfirmed    = "confirmed"
	StateSuspected    = "suspected"
	StateInconclusive = "inconclusive"
)

// InvestigationRequest asks what broke between From and To. Times are as
// [ParseTime] reads them.
type InvestigationRequest struct {
	// From is the start of the window; 1 h before To when empty.
	From string `json:"from,omitempty"`
	// To is the end of the window; now when empty.
	To string `json:"to,omitempty"`
	// Symptom is what was noticed, in words.
	Symptom string `json:"symptom,omitempty"`
	// Service, Operation and Metric say where it was noticed.
	Service   string `json:"service,omitempty"`
	Operation string `json:"operation,omitempty"`
	Metric    string `json:"metric,omitempty"`
	// Onset is when it began, where that is known; it lies in the window.
	Onset string `json:"onset,omitempty"`
	// Baseline are stretches of normal operation to compare with, before or
	// after the window. When there are none, the hour before it is taken.
	Baseline []Stretch `json:"baseline,omitempty"`
}

// Stretch is a stretch of time; times are as [ParseTime] reads them.
type Stretch struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Investigation is a verdict with what is needed to find it again.
type Investigation struct {
	ID      string    `json:"id"`
	State   string    `json:"state"`
	Created time.Time `json:"created"`
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	Symptom string    `json:"symptom,omitempty"`
	// Cause is the verdict's cause in one line; empty when inconclusive.
	Cause string `json:"cause"`
	// Verdict is the whole verdict. It is left out of lists.
	Verdict json.RawMessage `json:"verdict,omitempty"`
}
