package apitype

// Error is the body of every answer that is not a success.
type Error struct {
	Status string `json:"status"` // always "error"
	// ErrorType is one of bad_data, execution, timeout, canceled, unavailable,
	// too_many_requests, forbidden, not_found, not_implemented, internal.
	ErrorType string `json:"errorType"`
	Error     string `json:"error"`
	// Hint says what to do.
	Hint string `json:"hint,omitempty"`
}

// Headers and trailers of the API.
const (
	// HeaderLag is set when an answer may lack records that were acknowledged
	// just before the question.
	HeaderLag = "Inquest-Lag"
	// HeaderLimit is the largest number of rows in the answer.
	HeaderLimit = "Inquest-Limit"
	// TrailerRows is the number of rows in the answer.
	TrailerRows = "Inquest-Rows"
	// TrailerCut is "true" when the limit cut the answer.
	TrailerCut = "Inquest-Cut"
	// TrailerError is the reason for which an answer ends before its end.
	TrailerError = "Inquest-Error"
)
