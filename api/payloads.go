package api

import (
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

// erasePayloads removes the payloads of one user.
func (s *server) erasePayloads(w http.ResponseWriter, r *http.Request) error {
	if s.cfg.Payloads == nil {
		return noPayloads()
	}
	user := r.Form.Get("user")
	if user == "" {
		return badParam("user", errorf("it is missing: name the user id whose payloads are to go"))
	}
	gone, err := s.cfg.Payloads.EraseUser(r.Context(), user)
	if err != nil {
		return err
	}
	out := apitype.ErasedPayloads{References: gone.References, Bytes: gone.Bytes, Removed: []string{}, Shared: []string{}, Unreadable: []string{}}
	for _, sum := range gone.Removed {
		out.Removed = append(out.Removed, sum.String())
	}
	for _, sum := range gone.Shared {
		out.Shared = append(out.Shared, sum.String())
	}
	for _, sum := range gone.Unreadable {
		out.Unreadable = append(out.Unreadable, sum.String())
	}
	return writeSuccess(w, out)
}

func noPayloads() error {
	return badRequest("set payloads::policies of the inquest extension", "no payloads are captured here")
}
