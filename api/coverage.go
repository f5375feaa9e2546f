package api

import (
	"net/http"
	"time"

	"inquest/sensor/coverage"
)

// coverage answers how much of what is stored can be joined to its requests, and
// where the chain tears.
func (s *server) coverage(w http.ResponseWriter, r *http.Request) error {
	now := s.now()
	from, to, err := s.rangeParams(r, now.Add(-15*time.Minute), now)
	if err != nil {
		return err
	}
	if to.Sub(from) > s.limits.Window {
		return badRequest("ask for less", "the range of %s is longer than %s", to.Sub(from), s.limits.Window)
	}
	report, err := coverage.Measure(r.Context(), s.cfg.Records, from, to, coverage.Options{})
	if err != nil {
		return err
	}
	return writeSuccess(w, report)
}
