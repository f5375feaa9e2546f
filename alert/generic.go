package alert

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"
)

// generic is a receiver of the user's own. It gets JSON as docs/alerts.md says.
type generic struct{ byURL }

// Headers of a generic message. The signature is "sha256=" and the hexadecimal
// HMAC-SHA256, keyed by the secret, of timestamp, a dot, and the body.
const (
	HeaderID        = "X-Inquest-Id"
	HeaderTimestamp = "X-Inquest-Timestamp"
	HeaderSignature = "X-Inquest-Signature"
)

type genericBody struct {
	Version  int             `json:"version"`
	ID       string          `json:"id"`
	Reason   string          `json:"reason"`
	Service  string          `json:"service"`
	Severity Severity        `json:"severity"`
	Count    int64           `json:"count"`
	First    time.Time       `json:"first"`
	Last     time.Time       `json:"last"`
	Title    string          `json:"title"`
	Merged   bool            `json:"merged,omitempty"`
	Groups   []string        `json:"groups,omitempty"`
	Example  *genericExample `json:"example"`
}

type genericExample struct {
	Time    time.Time `json:"time"`
	Reason  string    `json:"reason"`
	Service string    `json:"service"`
	Source  string    `json:"source,omitempty"`
	ID      string    `json:"id,omitempty"`
	Text    string    `json:"text,omitempty"`
	Hint    string    `json:"hint,omitempty"`
	Labels  []Label   `json:"labels,omitempty"`
}

func (generic) request(h *Hook, m *Message, now time.Time) (call, error) {
	e := &m.Example
	c, err := jsonCall(string(h.URL), genericBody{
		Version: 1, ID: m.ID, Reason: m.Reason, Service: m.Service, Severity: m.Severity,
		Count: m.Count, First: m.First.UTC(), Last: m.Last.UTC(), Title: m.title(), Merged: m.Merged, Groups: m.Others,
		Example: &genericExample{
			Time: e.Time.UTC(), Reason: e.Reason, Service: e.Service, Source: e.Source, ID: e.ID,
			Text: e.Text, Hint: e.Hint, Labels: e.Labels,
		},
	})
	if err != nil {
		return call{}, err
	}
	stamp := strconv.FormatInt(now.Unix(), 10)
	c.header.Set(HeaderID, m.ID)
	c.header.Set(HeaderTimestamp, stamp)
	if h.Secret != "" {
		c.header.Set(HeaderSignature, Sign(string(h.Secret), stamp, c.body))
	}
	return c, nil
}

// Sign returns the value of [HeaderSignature] for a body that was sent with
// that timestamp, so that a receiver written in Go can compare it.
func Sign(secret, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(timestamp + "."))
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

func (generic) read(status int, body []byte) answer { return byStatus(status, body) }

func (generic) rates() []rate { return nil }
