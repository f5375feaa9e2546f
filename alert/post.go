package alert

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"
)

// mostAnswer bounds what is read of an answer.
const mostAnswer = 64 << 10

// post makes one try. The text of its answer holds no secrets.
func (s *sender) post(ctx context.Context, m *Message) answer {
	a := s.try(ctx, m)
	a.text = s.redact.text(a.text)
	return a
}

func (s *sender) try(ctx context.Context, m *Message) answer {
	now := time.Now()
	c, err := s.service.request(&s.hook, m, now)
	if err != nil {
		return answer{text: err.Error()}
	}
	ctx, cancel := context.WithTimeout(ctx, s.hook.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(c.body))
	if err != nil {
		return answer{text: s.redact.error(err).Error()}
	}
	req.Header = c.header
	req.Header.Set("User-Agent", "inquest")
	resp, err := s.client.Do(req)
	if err != nil {
		return s.unreached(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, mostAnswer))
	if err != nil {
		return s.unreached(err)
	}
	a := s.service.read(resp.StatusCode, body)
	if !a.ok {
		a.wait = max(a.wait, retryAfter(resp.Header.Get("Retry-After"), time.Now()))
	}
	return a
}

func (s *sender) unreached(err error) answer {
	if errors.Is(err, context.DeadlineExceeded) {
		return answer{retry: true, text: "no answer within " + s.hook.Timeout.String()}
	}
	return answer{retry: true, text: s.redact.error(err).Error()}
}

// retryAfter reads the header, seconds or a date; 0 where it says nothing.
func retryAfter(v string, now time.Time) time.Duration {
	if v == "" {
		return 0
	}
	if n, err := strconv.ParseFloat(v, 64); err == nil {
		if !(n > 0) { // nor NaN
			return 0
		}
		return time.Duration(min(n, mostWait.Seconds()) * float64(time.Second))
	}
	if t, err := http.ParseTime(v); err == nil {
		return min(max(t.Sub(now), 0), mostWait)
	}
	return 0
}
