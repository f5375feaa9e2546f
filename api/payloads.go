package api

import (
	"context"
	"errors"
	"net/http"

	"inquest/api/apitype"
	"inquest/store/payload"
)

// payload answers with the raw content of that hash.
func (s *server) payload(w http.ResponseWriter, r *http.Request) error {
	if s.cfg.Payloads == nil {
		return noPayloads()
	}
	sum, err := payload.ParseSum(r.PathValue("sum"))
	if err != nil {
		return badParam("sum", err)
	}
	content, err := s.cfg.Payloads.Get(r.Context(), sum)
	if errors.Is(err, payload.ErrNotFound) {
		return &apiError{code: http.StatusNotFound, kind: kindNotFound, err: err, hint: "it may be past its age, erased, or never captured"}
	}
	if err != nil {
		return err
	}
	// Whatever a user sent must not run in a browser.
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Disposition", "attachment")
	_, err = w.Write(content)
	return err
}

// Eraser removes what is kept of a user; the recorder does.
type Eraser interface {
	EraseUser(ctx context.Context, user string) (apitype.ErasedPayloads, error)
}

// maxUserID is the longest user id, in bytes, that can be erased.
const maxUserID = 4096

// erasePayloads removes the raw inputs of one user, wherever they are kept.
func (s *server) erasePayloads(w http.ResponseWriter, r *http.Request) error {
	if s.cfg.Eraser == nil {
		return badRequest("ask a recording server", "this server does not record")
	}
	user := r.Form.Get("user")
	if user == "" {
		return badParam("user", errorf("it is missing: name the user id whose raw inputs are to go"))
	}
	if len(user) > maxUserID {
		return badParam("user", errorf("%d bytes are above the limit of %d", len(user), maxUserID))
	}
	out, err := s.cfg.Eraser.EraseUser(r.Context(), user)
	if err != nil {
		return err
	}
	return writeSuccess(w, out)
}

func noPayloads() error {
	return badRequest("set payloads::policies of the inquest extension", "no payloads are captured here")
}
