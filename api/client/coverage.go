package client

import (
	"context"
	"encoding/json"
	"net/url"
	"time"
)

// Coverage returns how much of what is stored between from and to can be joined
// to its requests, and where the chain tears, as JSON of the API's form.
func (c *Client) Coverage(ctx context.Context, from, to time.Time) (json.RawMessage, error) {
	params := url.Values{}
	setTime(params, "start", from)
	setTime(params, "end", to)
	var out json.RawMessage
	_, err := c.get(ctx, "/api/v1/coverage", params, &out)
	return out, err
}
