package api

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"inquest/admit"
	"inquest/api/apitype"
	"inquest/record"
	"inquest/schema"
	"inquest/store"
)

// Letters works on dead letters; the recorder does.
type Letters interface {
	Redrive(ctx context.Context, f admit.LetterFilter) (admit.Redriven, error)
	Discard(ctx context.Context, f admit.LetterFilter, why string) (int, error)
}

const (
	defaultLetters = 100
	maxLetters     = 10_000
	maxLetterIDs   = 1_000
)

// letterFilter reads which letters a request is about.
func (s *server) letterFilter(r *http.Request) (f admit.LetterFilter, err error) {
	if f.From, f.To, err = s.rangeParams(r, time.Time{}, time.Time{}); err != nil {
		return f, err
	}
	f.IDs = r.Form["id"]
	if len(f.IDs) > maxLetterIDs {
		return f, badParam("id", errorf("%d ids are above the limit of %d", len(f.IDs), maxLetterIDs))
	}
	f.Reason, f.Service = r.Form.Get("reason"), r.Form.Get("service")
	f.Source, f.Kind = r.Form.Get("source"), r.Form.Get("kind")
	return f, nil
}

// listLetters answers with open dead letters, the newest first.
func (s *server) listLetters(w http.ResponseWriter, r *http.Request) error {
	f, err := s.letterFilter(r)
	if err != nil {
		return err
	}
	limit, err := intParam(r, "limit", defaultLetters, maxLetters)
	if err != nil {
		return err
	}
	letters := []apitype.DeadLetter{}
	q := store.RecordQuery{LogsQL: f.Query() + " | sort by (_time desc) limit " + strconv.Itoa(max(limit, 1)), From: f.From, To: f.To}
	err = s.cfg.Records.QueryRecords(r.Context(), q, func(fields []record.Field) error {
		letters = append(letters, letterOf(fields))
		return nil
	})
	if err != nil {
		return err
	}
	return writeSuccess(w, letters)
}

func letterOf(fields []record.Field) apitype.DeadLetter {
	var l apitype.DeadLetter
	for _, f := range fields {
		v := strings.Clone(f.Value)
		switch f.Name {
		case record.FieldTime:
			l.Received, _ = time.Parse(time.RFC3339Nano, v) // as the store writes it
		case record.FieldBody:
			l.Detail = v
		case record.FieldLetterID:
			l.ID = v
		case record.FieldLetterReason:
			l.Reason = v
		case record.FieldLetterRule:
			l.Rule = v
		case record.FieldLetterKind:
			l.Kind = v
		case record.FieldLetterSource:
			l.Source = v
		case "service.name":
			l.Service = v
		case record.FieldLetterTime:
			l.Time = v
		case record.FieldLetterEncoding:
			l.Encoding = v
		case record.FieldLetterPayload:
			l.Payload = v
		case record.FieldLetterRecords:
			l.Records, _ = strconv.Atoi(v)
		case record.FieldLetterParts:
			l.Parts, _ = strconv.Atoi(v)
		}
	}
	return l
}

// countLetters answers with the open dead letters by reason and service.
func (s *server) countLetters(w http.ResponseWriter, r *http.Request) error {
	f, err := s.letterFilter(r)
	if err != nil {
		return err
	}
	counts := []apitype.DeadLetterCount{}
	const stats = ` | stats by ("deadletter.reason", "service.name") count() letters, sum("deadletter.records") records, min(_time) first, max(_time) last | sort by (letters desc, "deadletter.reason", "service.name")`
	err = s.cfg.Records.QueryRecords(r.Context(), store.RecordQuery{LogsQL: f.Query() + stats, From: f.From, To: f.To}, func(fields []record.Field) error {
		var c apitype.DeadLetterCount
		for _, f := range fields {
			v := strings.Clone(f.Value)
			switch f.Name {
			case record.FieldLetterReason:
				c.Reason = v
			case "service.name":
				c.Service = v
			case "letters":
				c.Letters, _ = strconv.Atoi(v)
			case "records":
				c.Records, _ = strconv.Atoi(v)
			case "first":
				c.First = v
			case "last":
				c.Last = v
			}
		}
		counts = append(counts, c)
		return nil
	})
	if err != nil {
		return err
	}
	return writeSuccess(w, counts)
}

// redriveLetters admits dead letters again.
func (s *server) redriveLetters(w http.ResponseWriter, r *http.Request) error {
	f, err := s.lettersToChange(r)
	if err != nil {
		return err
	}
	out, err := s.cfg.Letters.Redrive(r.Context(), f)
	if err != nil {
		return err
	}
	return writeSuccess(w, out)
}

// discardLetters closes dead letters without storing their records.
func (s *server) discardLetters(w http.ResponseWriter, r *http.Request) error {
	f, err := s.lettersToChange(r)
	if err != nil {
		return err
	}
	why := r.Form.Get("why")
	if strings.TrimSpace(why) == "" {
		return badParam("why", errorf("it is missing: say why the letters are not needed"))
	}
	n, err := s.cfg.Letters.Discard(r.Context(), f, why)
	if err != nil {
		return err
	}
	return writeSuccess(w, apitype.Discarded{Letters: n})
}

// lettersToChange reads the letters that a change is about, which must be named:
// by a filter, or by all=true.
func (s *server) lettersToChange(r *http.Request) (admit.LetterFilter, error) {
	f, err := s.letterFilter(r)
	if err != nil {
		return f, err
	}
	if s.cfg.Letters == nil {
		return f, badRequest("ask a recording server", "this server does not record")
	}
	named := len(f.IDs) > 0 || f.Reason+f.Service+f.Source+f.Kind != "" || !f.From.IsZero() || !f.To.IsZero()
	if !named && r.Form.Get("all") != "true" {
		return f, badRequest("give id, reason, service, source, kind, start or end, or all=true", "no dead letters are named")
	}
	return f, nil
}

// eventSchema answers with the published schema of AI events.
func (s *server) eventSchema(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/schema+json")
	_, err := w.Write(schema.AIEvent())
	return err
}
