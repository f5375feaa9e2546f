package apitype

import "time"

// DeadLetter is a record that could not be stored as it came, kept whole.
type DeadLetter struct {
	ID       string    `json:"id"`
	Received time.Time `json:"received"`
	// Reason is a short stable code, Rule the broken rule, Detail a sentence.
	Reason  string `json:"reason"`
	Rule    string `json:"rule,omitempty"`
	Detail  string `json:"detail"`
	Kind    string `json:"kind"` // event, log, span or point
	Source  string `json:"source,omitempty"`
	Service string `json:"service,omitempty"`
	Records int    `json:"records"`
	Time    string `json:"time,omitempty"` // the record's own, RFC 3339
	// Payload is what came, in the given encoding: otlp/json, text or base64. Of
	// a letter in several Parts it is the first.
	Encoding string `json:"encoding"`
	Payload  string `json:"payload"`
	Parts    int    `json:"parts,omitempty"`
}

// DeadLetterCount counts open dead letters of one reason and service.
type DeadLetterCount struct {
	Reason  string `json:"reason"`
	Service string `json:"service,omitempty"`
	Letters int    `json:"letters"`
	Records int    `json:"records"`
	First   string `json:"first"` // RFC 3339
	Last    string `json:"last"`  // RFC 3339
}

// Redriven is what became of dead letters that were tried again.
type Redriven struct {
	Letters int            `json:"letters"` // tried
	Done    int            `json:"done"`    // whose records are stored now
	Records int            `json:"records"` // stored
	Refused map[string]int `json:"refused,omitempty"`
}

// Discarded counts dead letters that were closed without storing their records.
type Discarded struct {
	Letters int `json:"letters"`
}
