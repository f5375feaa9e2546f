package alert

import (
	"strings"
	"time"
)

// slack is an incoming webhook of Slack.
// https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks
type slack struct{ byURL }

// Limits of Block Kit, in characters. Escaping makes a text longer by up to
// five times, and the limit counts what is sent.
const (
	slackHeader  = 150
	slackText    = 3000
	slackField   = 2000
	slackFields  = 10
	slackContext = 2000
)

// slackEscape is what Slack asks for in every text.
var slackEscape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// slackPlain is a text object in which nothing is markup. The cut is on the
// escaped text, but never within an escape.
func slackPlain(s string, limit int) map[string]any {
	out := slackEscape.Replace(s)
	for keep := limit; len([]rune(out)) > limit && keep > 0; keep -= limit/50 + 1 {
		out = slackEscape.Replace(cutRunes(s, keep))
	}
	return map[string]any{"type": "plain_text", "text": out, "emoji": false}
}

func (slack) request(h *Hook, m *Message, _ time.Time) (call, error) {
	blocks := []any{map[string]any{"type": "header", "text": slackPlain(m.title(), slackHeader)}}
	if m.Example.Text != "" {
		blocks = append(blocks, map[string]any{"type": "section", "text": slackPlain(m.Example.Text, slackText)})
	}
	var fields []any
	section := func() {
		if len(fields) > 0 {
			blocks = append(blocks, map[string]any{"type": "section", "fields": fields})
			fields = nil
		}
	}
	for _, f := range m.facts() {
		fields = append(fields, slackPlain(f.Name+": "+f.Value, slackField))
		if len(fields) == slackFields {
			section()
		}
	}
	section()
	if m.Example.Hint != "" {
		blocks = append(blocks, map[string]any{
			"type": "context", "elements": []any{slackPlain(m.Example.Hint, slackContext)},
		})
	}
	return jsonCall(string(h.URL), map[string]any{
		"text":   slackEscape.Replace(cutRunes(m.title(), slackText/6)), // for notifications
		"blocks": blocks,
	})
}

// read: an accepted message is answered with status 200 and "ok".
func (slack) read(status int, body []byte) answer {
	a := byStatus(status, body)
	if t := strings.TrimSpace(string(body)); a.ok && t != "ok" && t != "" && !strings.HasPrefix(t, "{") {
		return answer{retry: true, text: "the answer is not \"ok\", so it is not Slack's: check the url and proxies"}
	}
	return a
}

// rates: one a second, with some time for the way.
func (slack) rates() []rate { return []rate{{1, 1200 * time.Millisecond}} }
