package client

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"inquest/api/apitype"
)

// RecordQuery is a LogsQL query.
type RecordQuery struct {
	LogsQL string
	// From and To bound the time; zero means unbounded.
	From, To time.Time
	// Limit is the largest number of rows; 0 means the server's default.
	Limit int
	// Order is "newest" or "oldest" first, or empty to leave it to the query.
	Order string
}

// RecordsInfo tells about an answer that was read to its end.
type RecordsInfo struct {
	Rows int
	// Cut is true when there were more rows than the limit.
	Cut bool
	// Lag is not empty when the newest records may be missing.
	Lag string
}

// maxLine bounds one record; the store's own limit is lower.
const maxLine = 16 << 20

// Records calls fn with each row, a JSON object that is valid during the call.
// When the answer breaks off it returns an error, whatever fn got.
func (c *Client) Records(ctx context.Context, q RecordQuery, fn func(row json.RawMessage) error) (RecordsInfo, error) {
	params := url.Values{"query": {q.LogsQL}}
	setTime(params, "start", q.From)
	setTime(params, "end", q.To)
	if q.Limit > 0 {
		params.Set("limit", strconv.Itoa(q.Limit))
	}
	if q.Order != "" {
		params.Set("order", q.Order)
	}
	header := http.Header{"Accept": {"application/x-ndjson"}, "Content-Type": {"application/x-www-form-urlencoded"}}
	resp, err := c.send(ctx, http.MethodPost, "/api/v1/records/query", header, []byte(params.Encode()))
	if err != nil {
		return RecordsInfo{}, err
	}
	defer resp.Body.Close()
	info := RecordsInfo{Lag: resp.Header.Get(apitype.HeaderLag)}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	// A line is passed on when the next one has come: the last may be an error.
	var held []byte
	for lines.Scan() {
		if held != nil {
			info.Rows++
			if err := fn(held); err != nil {
				return info, err
			}
		}
		held = append(held[:0], lines.Bytes()...)
	}
	if err := lines.Err(); err != nil {
		return info, fmt.Errorf("the answer broke off after %d rows: %w", info.Rows, err)
	}
	if broken := resp.Trailer.Get(apitype.TrailerError); broken != "" {
		return info, fmt.Errorf("the query failed after %d rows: %s", info.Rows, broken)
	}
	if held != nil {
		info.Rows++
		if err := fn(held); err != nil {
			return info, err
		}
	}
	info.Cut = resp.Trailer.Get(apitype.TrailerCut) == "true"
	return info, nil
}

func setTime(params url.Values, name string, t time.Time) {
	if !t.IsZero() {
		params.Set(name, t.UTC().Format(time.RFC3339Nano))
	}
}

// QueryResult is the answer to a PromQL query in Prometheus' encoding.
type QueryResult struct {
	ResultType string          `json:"resultType"`
	Result     json.RawMessage `json:"result"`
}

// QueryInstant evaluates PromQL at one time; zero means now.
func (c *Client) QueryInstant(ctx context.Context, expr string, at time.Time) (QueryResult, Answer, error) {
	params := url.Values{"query": {expr}}
	setTime(params, "time", at)
	var res QueryResult
	a, err := c.get(ctx, "/api/v1/query", params, &res)
	return res, a, err
}

// QueryRange evaluates PromQL at from, from+step, … ≤ to.
func (c *Client) QueryRange(ctx context.Context, expr string, from, to time.Time, step time.Duration) (QueryResult, Answer, error) {
	params := url.Values{"query": {expr}, "step": {strconv.FormatFloat(step.Seconds(), 'f', -1, 64)}}
	setTime(params, "start", from)
	setTime(params, "end", to)
	var res QueryResult
	a, err := c.get(ctx, "/api/v1/query_range", params, &res)
	return res, a, err
}

// Trace returns a trace by its id.
func (c *Client) Trace(ctx context.Context, id string) (apitype.Trace, Answer, error) {
	var t apitype.Trace
	a, err := c.get(ctx, "/api/v1/traces/"+url.PathEscape(id), nil, &t)
	return t, a, err
}

// Drilldown leads from a metric point to a trace and its logs. A zero time
// means now; a zero window, the server's default.
func (c *Client) Drilldown(ctx context.Context, expr string, at time.Time, window time.Duration) (apitype.Drilldown, Answer, error) {
	params := url.Values{"query": {expr}}
	setTime(params, "time", at)
	if window > 0 {
		params.Set("window", strconv.FormatFloat(window.Seconds(), 'f', -1, 64))
	}
	var d apitype.Drilldown
	a, err := c.get(ctx, "/api/v1/drilldown", params, &d)
	return d, a, err
}

// Status is the server's state.
type Status struct {
	Version  string          `json:"version"`
	Recorder json.RawMessage `json:"recorder"`
}

// Status returns the server's state.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var s Status
	_, err := c.get(ctx, "/api/v1/status", nil, &s)
	return s, err
}

// Investigate asks for an inquest and waits for its verdict.
func (c *Client) Investigate(ctx context.Context, req apitype.InvestigationRequest) (apitype.Investigation, Answer, error) {
	var inv apitype.Investigation
	body, err := json.Marshal(req)
	if err != nil {
		return inv, Answer{}, fmt.Errorf("cannot encode the request: %w", err)
	}
	resp, err := c.send(ctx, http.MethodPost, "/api/v1/investigations", http.Header{"Content-Type": {"application/json"}}, body)
	if err != nil {
		return inv, Answer{}, err
	}
	defer resp.Body.Close()
	a, err := decode(resp.Body, &inv)
	return inv, a, err
}

// Investigations lists stored verdicts, newest first, without their content.
// Limit 0 means the server's default.
func (c *Client) Investigations(ctx context.Context, from, to time.Time, limit int) ([]apitype.Investigation, error) {
	params := url.Values{}
	setTime(params, "start", from)
	setTime(params, "end", to)
	setLimit(params, limit)
	var list []apitype.Investigation
	_, err := c.get(ctx, "/api/v1/investigations", params, &list)
	return list, err
}

// Investigation returns a stored verdict.
func (c *Client) Investigation(ctx context.Context, id string) (apitype.Investigation, error) {
	var inv apitype.Investigation
	_, err := c.get(ctx, "/api/v1/investigations/"+url.PathEscape(id), nil, &inv)
	return inv, err
}

// Report writes the report on a stored verdict as markdown, html, text or json.
func (c *Client) Report(ctx context.Context, w io.Writer, id, format string) error {
	path := "/api/v1/investigations/" + url.PathEscape(id) + "?" + url.Values{"format": {format}}.Encode()
	resp, err := c.send(ctx, http.MethodGet, path, nil, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(w, resp.Body); err != nil {
		return fmt.Errorf("cannot read the report: %w", err)
	}
	return nil
}

func setLimit(params url.Values, limit int) {
	if limit > 0 {
		params.Set("limit", strconv.Itoa(limit))
	}
}
