package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"inquest/api/apitype"
	"inquest/store"
	"inquest/store/payload"
)

// Error types; those that Prometheus has are named as there.
const (
	kindBadData        = "bad_data"
	kindExecution      = "execution"
	kindTimeout        = "timeout"
	kindCanceled       = "canceled"
	kindUnavailable    = "unavailable"
	kindTooMany        = "too_many_requests"
	kindForbidden      = "forbidden"
	kindNotFound       = "not_found"
	kindNotImplemented = "not_implemented"
	kindInternal       = "internal"
)

// apiError is an error with its HTTP status and with what the caller can do.
type apiError struct {
	code       int
	kind       string
	err        error
	hint       string
	retryAfter bool
}

func (e *apiError) Error() string { return e.err.Error() }
func (e *apiError) Unwrap() error { return e.err }

func errorf(format string, args ...any) error { return fmt.Errorf(format, args...) }

// badParam is the error of a parameter that the caller must mend.
func badParam(name string, err error) error {
	return &apiError{code: http.StatusBadRequest, kind: kindBadData, err: fmt.Errorf("invalid parameter %q: %w", name, err)}
}

func badRequest(hint, format string, args ...any) error {
	return &apiError{code: http.StatusBadRequest, kind: kindBadData, err: fmt.Errorf(format, args...), hint: hint}
}

func notFound(hint, format string, args ...any) error {
	return &apiError{code: http.StatusNotFound, kind: kindNotFound, err: fmt.Errorf(format, args...), hint: hint}
}

// statusClientClosed is nginx' code for a client that went away; no one reads it.
const statusClientClosed = 499

// classify turns any error into one that can be answered.
func classify(ctx context.Context, err error) *apiError {
	var e *apiError
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &e):
		return e
	case errors.As(err, &tooLarge):
		return &apiError{
			code: http.StatusRequestEntityTooLarge, kind: kindBadData, err: err,
			hint: fmt.Sprintf("a request's body may have %d bytes", tooLarge.Limit),
		}
	case errors.Is(err, store.ErrQuery):
		return &apiError{code: http.StatusBadRequest, kind: kindBadData, err: err, hint: "mend the query"}
	case errors.Is(err, payload.ErrUnavailable):
		return &apiError{
			code: http.StatusServiceUnavailable, kind: kindUnavailable, err: err,
			hint: "ask again when the payload store can be reached; the server's log tells why it cannot", retryAfter: true,
		}
	case errors.Is(err, store.ErrUnavailable):
		return &apiError{
			code: http.StatusServiceUnavailable, kind: kindUnavailable, err: err,
			hint: "ask again; GET /api/v1/status tells the state of the stores", retryAfter: true,
		}
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &apiError{
			code: http.StatusServiceUnavailable, kind: kindTimeout, err: fmt.Errorf("the query took too long: %w", err),
			hint: "ask for a shorter time range, filter more, or aggregate in the query",
		}
	case errors.Is(err, context.Canceled):
		return &apiError{code: statusClientClosed, kind: kindCanceled, err: err}
	default:
		return &apiError{code: http.StatusInternalServerError, kind: kindInternal, err: err, hint: "the server's log has more"}
	}
}

func writeError(w http.ResponseWriter, d dialect, e *apiError) {
	if e.retryAfter {
		w.Header().Set("Retry-After", "1")
	}
	var body any = apitype.Error{Status: "error", ErrorType: e.kind, Error: e.Error(), Hint: e.hint}
	if d == jaeger {
		msg := e.Error()
		if e.hint != "" {
			msg += ": " + e.hint
		}
		body = jaegerAnswer{Errors: []jaegerError{{Code: e.code, Msg: msg}}}
	}
	writeJSONStatus(w, e.code, body)
}

func writeJSON(w http.ResponseWriter, body any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("cannot encode the answer: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	_, err = w.Write(data)
	return err
}

func writeJSONStatus(w http.ResponseWriter, code int, body any) {
	data, err := json.Marshal(body)
	if err != nil { // not for the types that are passed here
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	w.Write(data)
}

// success is the envelope of an answer.
type success struct {
	Status   string   `json:"status"`
	Data     any      `json:"data"`
	Warnings []string `json:"warnings,omitempty"`
}

// writeSuccess answers with data, and with what there is to warn of.
func writeSuccess(w http.ResponseWriter, data any, warnings ...string) error {
	return writeJSON(w, success{Status: "success", Data: data, Warnings: withLag(w, warnings)})
}

// withLag adds to the warnings that the stores lag behind, when they do.
func withLag(w http.ResponseWriter, warnings []string) []string {
	if lag := w.Header().Get(apitype.HeaderLag); lag != "" {
		warnings = append(warnings, lag)
	}
	return warnings
}

// withWarning adds a warning where there is one.
func withWarning(warnings []string, more string) []string {
	if more == "" {
		return warnings
	}
	return append(slices.Clone(warnings), more)
}
