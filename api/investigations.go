package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"inquest/api/apitype"
	"inquest/record"
	"inquest/store"
)

// Investigator holds inquests. Its methods may be called concurrently.
type Investigator interface {
	// Investigate looks for what broke, stores the verdict as a record with the
	// fields of [VerdictFields], and returns it with its id. It returns soon
	// after ctx ends. An error that the caller must mend is [store.ErrQuery].
	Investigate(ctx context.Context, req InvestigationRequest) (Investigation, error)
	// Render writes the report on a verdict. Format is json, markdown, html or
	// text; another is an error.
	Render(w io.Writer, inv Investigation, format string) error
}

// InvestigationRequest is a question as the [Investigator] gets it: From is
// before To, and both are set.
type InvestigationRequest struct {
	From, To time.Time
	// Symptom is what was noticed, in words; it may be empty.
	Symptom string
	// Service, Operation and Metric say where it was noticed; any may be empty.
	Service, Operation, Metric string
	// Onset is when it began; zero when that is not known.
	Onset time.Time
	// Baseline are stretches of normal operation; none leaves the choice to the
	// investigator. From is before To in each.
	Baseline []TimeRange
}

// TimeRange is a stretch of time.
type TimeRange struct{ From, To time.Time }

// Investigation is a verdict with what is needed to find it again.
type Investigation = apitype.Investigation

// Fields of a stored verdict's record, whose type is [record.TypeVerdict] and
// whose time is when the verdict was found.
const (
	FieldVerdictID      = "verdict.id"
	FieldVerdictState   = "verdict.state"
	FieldVerdictFrom    = "verdict.from" // RFC 3339
	FieldVerdictTo      = "verdict.to"   // RFC 3339
	FieldVerdictSymptom = "verdict.symptom"
	FieldVerdictCause   = "verdict.cause"
	FieldVerdictJSON    = "verdict.json" // the whole verdict
)

// VerdictFields are the fields by which a stored verdict is found again.
// Created is the record's time and not among them.
func VerdictFields(inv Investigation) []record.Field {
	return []record.Field{
		{Name: FieldVerdictID, Value: inv.ID},
		{Name: FieldVerdictState, Value: inv.State},
		{Name: FieldVerdictFrom, Value: inv.From.UTC().Format(time.RFC3339Nano)},
		{Name: FieldVerdictTo, Value: inv.To.UTC().Format(time.RFC3339Nano)},
		{Name: FieldVerdictSymptom, Value: inv.Symptom},
		{Name: FieldVerdictCause, Value: inv.Cause},
		{Name: FieldVerdictJSON, Value: string(inv.Verdict)},
	}
}

func investigationOf(row map[string]string) Investigation {
	inv := Investigation{
		ID: row[FieldVerdictID], State: row[FieldVerdictState],
		Symptom: row[FieldVerdictSymptom], Cause: row[FieldVerdictCause],
	}
	// Times are of our own writing; one that is not shows as the zero time.
	inv.Created, _ = time.Parse(time.RFC3339Nano, row[record.FieldTime])
	inv.From, _ = time.Parse(time.RFC3339Nano, row[FieldVerdictFrom])
	inv.To, _ = time.Parse(time.RFC3339Nano, row[FieldVerdictTo])
	if v := row[FieldVerdictJSON]; json.Valid([]byte(v)) {
		inv.Verdict = json.RawMessage(v)
	}
	return inv
}

var reportTypes = map[string]string{
	"json":     "application/json",
	"markdown": "text/markdown; charset=utf-8",
	"html":     "text/html; charset=utf-8",
	"text":     "text/plain; charset=utf-8",
}

func (s *server) investigator() (Investigator, error) {
	if s.cfg.Investigator == nil {
		return nil, &apiError{
			code: http.StatusNotImplemented, kind: kindNotImplemented,
			err: errorf("this server holds no inquests"), hint: "ask one that runs as: inquest serve",
		}
	}
	return s.cfg.Investigator, nil
}

func (s *server) investigate(w http.ResponseWriter, r *http.Request) error {
	by, err := s.investigator()
	if err != nil {
		return err
	}
	format, err := reportFormat(r)
	if err != nil {
		return err
	}
	req, err := s.investigationRequest(r)
	if err != nil {
		return err
	}
	inv, err := by.Investigate(r.Context(), req)
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/api/v1/investigations/"+inv.ID)
	return writeReport(w, by, inv, format, http.StatusCreated)
}

func reportFormat(r *http.Request) (string, error) {
	format := r.URL.Query().Get("format")
	if format == "" {
		return "json", nil
	}
	if reportTypes[format] == "" {
		return "", badParam("format", errorf("%q is not json, markdown, html or text", format))
	}
	return format, nil
}

// investigationRequest reads the body of a request. The content type is
// required since browsers send it across sites only after asking.
func (s *server) investigationRequest(r *http.Request) (InvestigationRequest, error) {
	var req InvestigationRequest
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != mediaJSON {
		return req, &apiError{
			code: http.StatusUnsupportedMediaType, kind: kindBadData,
			err:  errorf("the content type %q is not application/json", r.Header.Get("Content-Type")),
			hint: `send a JSON object as {"from":"30m","to":"now"} with Content-Type: application/json`,
		}
	}
	var body apitype.InvestigationRequest
	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	err = dec.Decode(&body)
	if err == nil && dec.More() {
		err = errors.New("something follows the JSON object")
	}
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return req, err
	}
	if err != nil {
		return req, badRequest("send a JSON object with from, to, symptom, service, operation, metric, onset and baseline", "cannot read the request: %w", err)
	}
	req.Symptom, req.Service, req.Operation, req.Metric = body.Symptom, body.Service, body.Operation, body.Metric
	if err := s.investigationWindow(&req, body); err != nil {
		return req, err
	}
	return req, s.investigationBaseline(&req, body)
}

// maxBaselines bounds the stretches of a baseline.
const maxBaselines = 20

// investigationBaseline reads what the asker knows of normal operation and onset.
func (s *server) investigationBaseline(req *InvestigationRequest, body apitype.InvestigationRequest) error {
	now := s.now()
	if body.Onset != "" {
		var err error
		if req.Onset, err = apitype.ParseTime(body.Onset, now); err != nil {
			return badParam("onset", err)
		}
		if req.Onset.Before(req.From) || req.Onset.After(req.To) {
			return badRequest("name a time between from and to", "the onset %s lies outside the window", req.Onset.Format(time.RFC3339))
		}
	}
	if len(body.Baseline) > maxBaselines {
		return badRequest("unite some", "%d stretches of baseline are above the limit of %d", len(body.Baseline), maxBaselines)
	}
	for _, b := range body.Baseline {
		var r TimeRange
		var err error
		if r.From, err = apitype.ParseTime(b.From, now); err != nil {
			return badParam("baseline", err)
		}
		if r.To, err = apitype.ParseTime(b.To, now); err != nil {
			return badParam("baseline", err)
		}
		switch {
		case !r.From.Before(r.To):
			return badRequest("exchange from and to", "a baseline from %s is not before its to %s", r.From.Format(time.RFC3339), r.To.Format(time.RFC3339))
		case r.To.Sub(r.From) > s.limits.Window:
			return badRequest("choose a shorter baseline", "a baseline of %s is above the limit of %s", r.To.Sub(r.From), s.limits.Window)
		}
		req.Baseline = append(req.Baseline, r)
	}
	return nil
}

func (s *server) investigationWindow(req *InvestigationRequest, body apitype.InvestigationRequest) error {
	now := s.now()
	var err error
	req.To = now
	if body.To != "" {
		if req.To, err = apitype.ParseTime(body.To, now); err != nil {
			return badParam("to", err)
		}
	}
	req.From = req.To.Add(-time.Hour)
	if body.From != "" {
		if req.From, err = apitype.ParseTime(body.From, now); err != nil {
			return badParam("from", err)
		}
	}
	if !req.From.Before(req.To) {
		return badRequest("exchange from and to", "from %s is not before to %s", req.From.Format(time.RFC3339), req.To.Format(time.RFC3339))
	}
	if req.To.Sub(req.From) > s.limits.Window {
		return badRequest("choose a shorter window around the symptom", "the window of %s is above the limit of %s", req.To.Sub(req.From), s.limits.Window)
	}
	return nil
}

func writeReport(w http.ResponseWriter, by Investigator, inv Investigation, format string, code int) error {
	var body bytes.Buffer // a report that fails half way must not look whole
	if format == "json" {
		data, err := json.Marshal(success{Status: "success", Data: inv, Warnings: withLag(w, nil)})
		if err != nil {
			return fmt.Errorf("cannot encode the verdict: %w", err)
		}
		body.Write(data)
	} else if err := by.Render(&body, inv, format); err != nil {
		return fmt.Errorf("cannot render the report: %w", err)
	}
	h := w.Header()
	h.Set("Content-Type", reportTypes[format])
	if format == "html" {
		// The report holds text that senders wrote: nothing in it may run.
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; img-src data:")
	}
	w.WriteHeader(code)
	_, err := w.Write(body.Bytes())
	return err
}

func (s *server) listInvestigations(w http.ResponseWriter, r *http.Request) error {
	from, to, err := s.rangeParams(r, time.Time{}, time.Time{})
	if err != nil {
		return err
	}
	limit, err := intParam(r, "limit", 100, s.limits.Rows)
	if err != nil {
		return err
	}
	filter := ofType(record.TypeVerdict, "")
	switch state := r.Form.Get("state"); state {
	case "":
	case apitype.StateConfirmed, apitype.StateSuspected, apitype.StateInconclusive:
		filter += " " + equals(FieldVerdictState, state)
	default:
		return badParam("state", errorf("%q is not confirmed, suspected or inconclusive", state))
	}
	fields := []string{record.FieldTime, FieldVerdictID, FieldVerdictState, FieldVerdictFrom, FieldVerdictTo, FieldVerdictSymptom, FieldVerdictCause}
	rows, err := s.rows(r.Context(), store.RecordQuery{
		LogsQL: filter + "\n| fields \"" + strings.Join(fields, `", "`) + `"` + sortBy(record.FieldTime, true, max(limit, 1)),
		From:   from, To: to,
	})
	if err != nil {
		return err
	}
	list := make([]Investigation, len(rows))
	for i, row := range rows {
		list[i] = investigationOf(row)
	}
	return writeSuccess(w, list)
}

func (s *server) investigation(w http.ResponseWriter, r *http.Request) error {
	format, err := reportFormat(r)
	if err != nil {
		return err
	}
	id := r.PathValue("id")
	rows, err := s.rows(r.Context(), store.RecordQuery{
		LogsQL: ofType(record.TypeVerdict, "") + " " + equals(FieldVerdictID, id) + sortBy(record.FieldTime, true, 1),
	})
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return notFound("GET /api/v1/investigations lists the verdicts that are stored", "no verdict has the id %q", id)
	}
	inv := investigationOf(rows[0])
	if format == "json" {
		return writeReport(w, nil, inv, format, http.StatusOK)
	}
	by, err := s.investigator()
	if err != nil {
		return err
	}
	return writeReport(w, by, inv, format, http.StatusOK)
}
