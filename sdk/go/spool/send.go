package spool

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxAnswer is how much of a server's answer is read.
const maxAnswer = 64 << 10

// refusal is the server's answer that a request will never be accepted.
type refusal struct {
	status int
	detail string
}

func (e *refusal) Error() string {
	return fmt.Sprintf("the server refused records with status %d: %s", e.status, e.detail)
}

// retryLater is an answer, or the lack of one, after which the same request is
// sent again.
type retryLater struct {
	after time.Duration // as the server asked, or 0
	err   error
}

func (e *retryLater) Error() string { return e.err.Error() }
func (e *retryLater) Unwrap() error { return e.err }

// post sends one request. It returns how many records the server rejected of a
// request that it took, with its reason.
func (s *Shipper) post(ctx context.Context, body []byte) (rejected int64, reason string, err error) {
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	if _, err := z.Write(body); err != nil {
		return 0, "", err
	}
	if err := z.Close(); err != nil {
		return 0, "", err
	}
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, &zipped)
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Content-Encoding", "gzip")
	for k, v := range s.opts.Headers {
		req.Header.Set(k, v)
	}
	resp, err := s.opts.Client.Do(req)
	if err != nil {
		return 0, "", &retryLater{err: err}
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return 0, "", &retryLater{err: err}
	}
	if resp.StatusCode/100 != 2 {
		return 0, "", classify(resp, answer, s.opts.now())
	}
	var r otlpResponse
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") && json.Unmarshal(answer, &r) == nil {
		rejected, _ = r.PartialSuccess.RejectedLogRecords.Int64() // absent is none
		reason = r.PartialSuccess.ErrorMessage
	}
	return rejected, reason, nil
}

// classify turns an answer into what is done about it. Only answers that speak of
// the request itself are final; a wrong address or token is for a person to mend,
// and the records wait for it.
func classify(resp *http.Response, answer []byte, now time.Time) error {
	detail := strings.ToValidUTF8(string(answer[:min(len(answer), 300)]), "?")
	switch resp.StatusCode {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return &refusal{resp.StatusCode, detail}
	}
	return &retryLater{
		after: retryAfter(resp.Header.Get("Retry-After"), now),
		err:   fmt.Errorf("status %d from %s: %s", resp.StatusCode, resp.Request.URL.Redacted(), detail),
	}
}

// retryAfter reads the header Retry-After: seconds or a date.
func retryAfter(v string, now time.Time) time.Duration {
	if n, err := strconv.Atoi(v); err == nil && n > 0 {
		return time.Duration(min(n, 3600)) * time.Second
	}
	if t, err := http.ParseTime(v); err == nil && t.After(now) {
		return min(t.Sub(now), time.Hour)
	}
	return 0
}

// deliver sends records until the server has answered for each of them. A request
// that is refused is halved, so that one record cannot hold up the others. It ends
// with an error only when ctx does or a refused record cannot be set aside.
func (s *Shipper) deliver(ctx context.Context, path string, h Header, items []item) error {
	if len(items) == 0 {
		return nil
	}
	body, err := encode(h, items)
	if err != nil {
		return err
	}
	rejected, reason, err := s.postUntilAnswered(ctx, body)
	var no *refusal
	switch {
	case err == nil && rejected > 0:
		// Which ones is not said, and OTLP forbids to send them again.
		s.shipped.Add(uint64(max(0, int64(len(items))-rejected)))
		return s.refuse(path, items, uint64(rejected), fmt.Sprintf("the server rejected %d of %d records: %s", rejected, len(items), reason))
	case err == nil:
		s.shipped.Add(uint64(len(items)))
		return nil
	case errors.As(err, &no) && len(items) == 1:
		return s.refuse(path, items, 1, err.Error())
	case errors.As(err, &no):
		half := len(items) / 2
		if err := s.deliver(ctx, path, h, items[:half]); err != nil {
			return err
		}
		return s.deliver(ctx, path, h, items[half:])
	default:
		return err
	}
}

// refuse sets items aside and says so.
func (s *Shipper) refuse(path string, items []item, rejected uint64, reason string) error {
	lines := make([]line, 0, len(items))
	for _, i := range items {
		lines = append(lines, i.line)
	}
	return s.keep(path, lines, rejected, reason)
}

// keep sets lines aside and counts rejected of them.
func (s *Shipper) keep(path string, lines []line, rejected uint64, reason string) error {
	aside, err := setAside(path, lines, reason)
	if err != nil {
		return fmt.Errorf("cannot set records aside: %w", err)
	}
	s.rejected.Add(rejected)
	s.opts.OnError(fmt.Errorf("%s; kept in %s", reason, aside))
	return nil
}

// postUntilAnswered repeats post with growing pauses until the server has taken
// or refused the request.
func (s *Shipper) postUntilAnswered(ctx context.Context, body []byte) (int64, string, error) {
	pause := s.opts.MinBackoff
	for {
		rejected, reason, err := s.post(ctx, body)
		var later *retryLater
		if !errors.As(err, &later) {
			return rejected, reason, err
		}
		if ctx.Err() != nil {
			return 0, "", ctx.Err()
		}
		s.retries.Add(1)
		wait := max(pause, later.after)
		s.opts.OnError(fmt.Errorf("cannot ship records, next try in %s: %w", wait, later.err))
		select {
		case <-ctx.Done():
			return 0, "", ctx.Err()
		case <-time.After(wait):
		}
		pause = min(2*pause, s.opts.MaxBackoff)
	}
}
