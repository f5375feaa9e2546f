package truth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// mostAnswer bounds the answer of a health address.
	mostAnswer = 64 << 10
	// mostVersion bounds a version that is told.
	mostVersion = 256
	// askAtOnce bounds the questions to one service's addresses at a time.
	askAtOnce = 8
)

// health is what one address told.
type health struct {
	url     string // without secrets
	version string
	// loaded is when the model was loaded, started when the process started; zero
	// where it is not told.
	loaded, started time.Time
	err             error // why nothing was told
}

// shownURL is an address without what may be secret.
func shownURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "(not a URL)"
	}
	u.User = nil
	if u.RawQuery != "" {
		u.RawQuery = "…"
	}
	return u.String()
}

// ask asks all addresses of a service.
func ask(ctx context.Context, c *http.Client, s *Service, timeout time.Duration) []health {
	out := make([]health, len(s.Healthz))
	slots := make(chan struct{}, askAtOnce)
	var wg sync.WaitGroup
	for i, raw := range s.Healthz {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			out[i] = askOne(ctx, c, s, raw, timeout)
		})
	}
	wg.Wait()
	return out
}

func askOne(ctx context.Context, c *http.Client, s *Service, raw string, timeout time.Duration) health {
	h := health{url: shownURL(raw)}
	body, err := get(ctx, c, raw, timeout)
	if err != nil {
		h.err = err
		return h
	}
	h.read(body, s, time.Now())
	return h
}

// read takes from an answer what it tells. One that is no JSON tells nothing.
func (h *health) read(body []byte, s *Service, now time.Time) {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var doc any
	if dec.Decode(&doc) != nil {
		return
	}
	h.version = first(doc, s.VersionPaths)
	h.loaded = instant(doc, s.LoadedPaths, now)
	h.started = instant(doc, s.StartedPaths, now)
}

func get(ctx context.Context, c *http.Client, raw string, timeout time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, raw, nil)
	if err != nil {
		return nil, errors.New("the address is malformed")
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "inquest")
	resp, err := c.Do(req)
	if err != nil {
		return nil, unreached(err, timeout)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, mostAnswer+1))
	switch {
	case err != nil:
		return nil, unreached(err, timeout)
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return nil, fmt.Errorf("it answers with HTTP status %d", resp.StatusCode)
	case len(body) > mostAnswer:
		return nil, fmt.Errorf("its answer is above the limit of %d bytes", mostAnswer)
	}
	return body, nil
}

// unreached makes an error that does not show the URL.
func unreached(err error, timeout time.Duration) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("it does not answer within %s", timeout)
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return err
}

// lookup returns the member that a path of names with dots leads to. A member
// whose name has the dots itself comes first; a number is an index of a list.
func lookup(doc any, path string) (any, bool) {
	switch d := doc.(type) {
	case map[string]any:
		if v, ok := d[path]; ok {
			return v, true
		}
		if name, rest, ok := strings.Cut(path, "."); ok {
			if v, ok := d[name]; ok {
				return lookup(v, rest)
			}
		}
	case []any:
		name, rest, more := strings.Cut(path, ".")
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(d) {
			if !more {
				return d[i], true
			}
			return lookup(d[i], rest)
		}
	}
	return nil, false
}

// first returns the first text or number that one of the paths leads to.
func first(doc any, paths []string) string {
	for _, p := range paths {
		v, ok := lookup(doc, p)
		if !ok {
			continue
		}
		switch v := v.(type) {
		case string:
			if v = strings.TrimSpace(v); v != "" && len(v) <= mostVersion {
				return v
			}
		case json.Number:
			if s := v.String(); len(s) <= mostVersion {
				return s
			}
		}
	}
	return ""
}

// instant returns the first time that one of the paths leads to: RFC 3339, or
// seconds or milliseconds since the Unix epoch. A path that speaks of uptime
// leads to seconds until now.
func instant(doc any, paths []string, now time.Time) time.Time {
	for _, p := range paths {
		text := first(doc, []string{p})
		if text == "" {
			continue
		}
		if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
			return t
		}
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(n) || n < 0 || n > 1e14 {
			continue
		}
		switch {
		case strings.Contains(p, "uptime"):
			if n < 1e9 {
				return now.Add(-time.Duration(n * float64(time.Second)))
			}
		case n > 1e11:
			return time.UnixMilli(int64(n))
		case n > 1e8:
			return time.Unix(0, int64(n*1e9))
		}
	}
	return time.Time{}
}
