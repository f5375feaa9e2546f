package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"inquest/api/apitype"
)

// LetterFilter chooses open dead letters. What is empty chooses all.
type LetterFilter struct {
	IDs                           []string
	Reason, Service, Source, Kind string
	From, To                      time.Time
	// All must be set to change letters without naming any.
	All bool
}

func (f LetterFilter) params() url.Values {
	params := url.Values{}
	for _, id := range f.IDs {
		params.Add("id", id)
	}
	for name, v := range map[string]string{"reason": f.Reason, "service": f.Service, "source": f.Source, "kind": f.Kind} {
		if v != "" {
			params.Set(name, v)
		}
	}
	setTime(params, "start", f.From)
	setTime(params, "end", f.To)
	if f.All {
		params.Set("all", "true")
	}
	return params
}

// DeadLetters lists open dead letters, the newest first. Limit 0 means the
// server's default.
func (c *Client) DeadLetters(ctx context.Context, f LetterFilter, limit int) ([]apitype.DeadLetter, error) {
	params := f.params()
	setLimit(params, limit)
	var list []apitype.DeadLetter
	_, err := c.get(ctx, "/api/v1/deadletters", params, &list)
	return list, err
}

// DeadLetterCounts counts open dead letters by reason and service.
func (c *Client) DeadLetterCounts(ctx context.Context, f LetterFilter) ([]apitype.DeadLetterCount, error) {
	var list []apitype.DeadLetterCount
	_, err := c.get(ctx, "/api/v1/deadletters/counts", f.params(), &list)
	return list, err
}

// RedriveDeadLetters has dead letters admitted again.
func (c *Client) RedriveDeadLetters(ctx context.Context, f LetterFilter) (apitype.Redriven, error) {
	var out apitype.Redriven
	err := c.postForm(ctx, "/api/v1/deadletters/redrive", f.params(), &out)
	return out, err
}

// DiscardDeadLetters closes dead letters without storing their records.
func (c *Client) DiscardDeadLetters(ctx context.Context, f LetterFilter, why string) (apitype.Discarded, error) {
	params := f.params()
	params.Set("why", why)
	var out apitype.Discarded
	err := c.postForm(ctx, "/api/v1/deadletters/discard", params, &out)
	return out, err
}

func (c *Client) postForm(ctx context.Context, path string, params url.Values, out any) error {
	resp, err := c.send(ctx, http.MethodPost, path, http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, []byte(params.Encode()))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = decode(resp.Body, out)
	return err
}
