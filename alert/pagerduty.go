package alert

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
	"unicode/utf8"
)

// pagerduty is the Events API v2 of PagerDuty.
// https://developer.pagerduty.com/docs/send-alert-event
type pagerduty struct{}

const (
	pagerDutySummary = 1024 // characters
	pagerDutyKey     = 255  // characters
)

func (pagerduty) robot(h *Hook) string { return string(h.Kind) + " " + string(h.Secret) }

func (pagerduty) request(h *Hook, m *Message, _ time.Time) (call, error) {
	summary := m.title()
	if m.Example.Text != "" {
		summary += ": " + m.Example.Text
	}
	source := m.Service
	if source == "" {
		source = "inquest" // it may not be empty
	}
	details := map[string]any{
		"count": m.Count, "first": m.First.UTC(), "last": m.Last.UTC(), "reason": m.Reason, "message_id": m.ID,
	}
	add := func(name, value string) {
		if _, taken := details[name]; value != "" && !taken {
			details[name] = value
		}
	}
	add("text", m.Example.Text)
	add("hint", m.Example.Hint)
	for _, f := range m.facts() {
		add(f.Name, f.Value)
	}
	return jsonCall(string(h.URL), map[string]any{
		"routing_key":  string(h.Secret),
		"event_action": "trigger",
		// Messages of one group belong to one incident until it is resolved.
		"dedup_key": pagerDutyDedup(m),
		"client":    "inquest",
		"payload": map[string]any{
			"summary":        cutRunes(summary, pagerDutySummary),
			"source":         source,
			"severity":       m.Severity,
			"timestamp":      m.First.UTC(),
			"component":      m.Service,
			"group":          m.Service,
			"class":          m.Reason,
			"custom_details": details,
		},
	})
}

// pagerDutyDedup names the group. Long names are hashed, since two that were cut
// could meet.
func pagerDutyDedup(m *Message) string {
	k := "inquest/" + m.Reason + "/" + m.Service
	if utf8.RuneCountInString(k) <= pagerDutyKey {
		return k
	}
	sum := sha256.Sum256([]byte(k))
	return "inquest/" + hex.EncodeToString(sum[:])
}

// read: 202 is success, 429 and 5xx are to be tried again, 400 tells what is
// wrong with the event.
func (pagerduty) read(status int, body []byte) answer { return byStatus(status, body) }

// rates: 120 a minute for one integration.
func (pagerduty) rates() []rate { return []rate{{120, 61 * time.Second}} }
