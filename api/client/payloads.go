package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"inquest/api/apitype"
)

// Payload writes the raw content with that SHA-256 to w.
func (c *Client) Payload(ctx context.Context, w io.Writer, sum string) error {
	resp, err := c.send(ctx, http.MethodGet, "/api/v1/payloads/"+url.PathEscape(sum), nil, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(w, resp.Body); err != nil {
		return fmt.Errorf("cannot read the payload: %w", err)
	}
	return nil
}

// ErasePayloads removes the payloads of one user.
func (c *Client) ErasePayloads(ctx context.Context, user string) (apitype.ErasedPayloads, error) {
	var out apitype.ErasedPayloads
	err := c.postForm(ctx, "/api/v1/payloads/erase", url.Values{"user": {user}}, &out)
	return out, err
}
