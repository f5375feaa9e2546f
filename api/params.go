package api

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"inquest/api/apitype"
)

// formError is the error of a request whose parameters cannot be read.
func formError(err error) error {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return err
	}
	return badRequest("send parameters in the URL or as application/x-www-form-urlencoded", "cannot read the parameters: %w", err)
}

// timeParam reads a time; def when it is absent.
func (s *server) timeParam(r *http.Request, name string, def time.Time) (time.Time, error) {
	v := r.Form.Get(name)
	if v == "" {
		return def, nil
	}
	t, err := apitype.ParseTime(v, s.now())
	if err != nil {
		return t, badParam(name, err)
	}
	return t, nil
}

// rangeParams reads start and end. Where end is absent, to is defTo.
func (s *server) rangeParams(r *http.Request, defFrom, defTo time.Time) (from, to time.Time, err error) {
	if from, err = s.timeParam(r, "start", defFrom); err != nil {
		return from, to, err
	}
	if to, err = s.timeParam(r, "end", defTo); err != nil {
		return from, to, err
	}
	if !to.IsZero() && to.Before(from) {
		return from, to, badRequest("exchange start and end", "the end %s is before the start %s", to.Format(time.RFC3339), from.Format(time.RFC3339))
	}
	return from, to, nil
}

// intParam reads a number from 0 to most; def when it is absent.
func intParam(r *http.Request, name string, def, most int) (int, error) {
	v := r.Form.Get(name)
	if v == "" {
		return def, nil
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 {
		return 0, badParam(name, errorf("%q is not a number of 0 or more", v))
	}
	if most > 0 && n > most {
		return 0, badParam(name, errorf("%d is above the limit of %d", n, most))
	}
	return n, nil
}

// durationParam reads a duration; def when it is absent.
func durationParam(r *http.Request, name string, def time.Duration) (time.Duration, error) {
	v := r.Form.Get(name)
	if v == "" {
		return def, nil
	}
	d, err := apitype.ParseDuration(v)
	if err != nil {
		return 0, badParam(name, err)
	}
	return d, nil
}

// queryParam reads the parameter query, which must be there.
func queryParam(r *http.Request, example string) (string, error) {
	q := r.Form.Get("query")
	if q == "" {
		return "", badRequest("for example query="+example, "the parameter %q is missing", "query")
	}
	return q, nil
}
