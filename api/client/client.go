// Package client asks an inquest server over its HTTP API.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"inquest/api/apitype"
)

// DefaultServer is where a recorder answers when nothing else is configured.
const DefaultServer = "http://localhost:4319"

// maxAnswer bounds an answer that is read as a whole.
const maxAnswer = 256 << 20

// Client asks one server. It may be used concurrently.
type Client struct {
	base string
	http *http.Client
}

// New returns a client of the server at base, a URL as http://localhost:4319;
// without a scheme http is meant. A nil httpClient means [http.DefaultClient];
// a call ends with its context.
func New(base string, httpClient *http.Client) (*Client, error) {
	if base == "" {
		base = DefaultServer
	}
	if !strings.Contains(base, "://") {
		base = "http://" + base
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%q is not the address of a server: write it like %s", base, DefaultServer)
	}
	if httpClient == nil {
		httpClient = http.DefaultClient
	}
	return &Client{base: strings.TrimSuffix(base, "/"), http: httpClient}, nil
}

// Server returns the server's address.
func (c *Client) Server() string { return c.base }

// UnreachableError means that no server answers.
type UnreachableError struct {
	Server string
	Err    error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("no recorder answers at %s: start one with `inquest serve`, or name another with --server (%s)", e.Server, e.Err)
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// AnswerError is an error that the server answered.
type AnswerError struct {
	Code int // HTTP status
	Body apitype.Error
}

func (e *AnswerError) Error() string {
	msg := e.Body.Error
	if msg == "" {
		msg = fmt.Sprintf("the server answered %d %s: is it an inquest server?", e.Code, http.StatusText(e.Code))
	}
	if e.Body.Hint != "" {
		msg += ": " + e.Body.Hint
	}
	return msg
}

// Answer is what every answer has beside its data.
type Answer struct {
	Warnings []string
}

// get asks and reads data as JSON into out.
func (c *Client) get(ctx context.Context, path string, params url.Values, out any) (Answer, error) {
	if len(params) > 0 {
		path += "?" + params.Encode()
	}
	resp, err := c.send(ctx, http.MethodGet, path, nil, nil)
	if err != nil {
		return Answer{}, err
	}
	defer resp.Body.Close()
	return decode(resp.Body, out)
}

func decode(body io.Reader, out any) (Answer, error) {
	envelope := struct {
		Data     any      `json:"data"`
		Warnings []string `json:"warnings"`
	}{Data: out}
	data, err := readAll(body)
	if err != nil {
		return Answer{}, err
	}
	if err := json.Unmarshal(data, &envelope); err != nil {
		return Answer{}, fmt.Errorf("cannot read the server's answer: %w: is the server of another version?", err)
	}
	return Answer{Warnings: envelope.Warnings}, nil
}

func readAll(body io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(body, maxAnswer+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read the server's answer: %w", err)
	}
	if len(data) > maxAnswer {
		return nil, errors.New("the server's answer is too large: ask for less")
	}
	return data, nil
}

// send does a request and turns every answer that is no success into an error.
// The caller closes the body.
func (c *Client) send(ctx context.Context, method, path string, header http.Header, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("cannot ask %s: %w", c.base, err)
	}
	for k, v := range header {
		req.Header[k] = v
	}
	resp, err := c.http.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		var netErr net.Error
		if errors.As(err, &netErr) {
			var uerr *url.Error
			if errors.As(err, &uerr) {
				err = uerr.Err
			}
			return nil, &UnreachableError{Server: c.base, Err: err}
		}
		return nil, fmt.Errorf("cannot ask %s: %w", c.base, err)
	}
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	defer resp.Body.Close()
	answer := &AnswerError{Code: resp.StatusCode}
	data, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err == nil && json.Unmarshal(data, &answer.Body) != nil {
		answer.Body = apitype.Error{} // a proxy's page, perhaps
	}
	return nil, answer
}
