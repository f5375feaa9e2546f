package alert

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"time"
)

// feishu is a custom robot of Feishu or Lark (飞书自定义机器人).
// https://open.feishu.cn/document/client-docs/bot-v3/add-custom-bot
type feishu struct{ byURL }

// Bounds of the texts in bytes, so that the request stays below 20 KB when
// every letter that JSON escapes has been escaped.
const (
	feishuText  = 3000
	feishuField = 200
)

// feishuLater are the codes that tell the message may be taken later: too many
// messages of the robot, too many calls.
var feishuLater = map[int]time.Duration{11232: 10 * time.Second, 11233: 10 * time.Second, 99991400: 10 * time.Second}

func (feishu) request(h *Hook, m *Message, now time.Time) (call, error) {
	// All texts are plain text, in which nothing is markup: a sender's text can
	// neither format nor mention.
	text := func(s string) map[string]any { return map[string]any{"tag": "plain_text", "content": s} }
	var elements []any
	if m.Example.Text != "" {
		elements = append(elements, map[string]any{"tag": "div", "text": text(cut(m.Example.Text, feishuText))})
	}
	var fields []any
	for _, f := range m.facts() {
		fields = append(fields, map[string]any{
			"is_short": len(f.Value) < 30,
			"text":     text(f.Name + ": " + cut(f.Value, feishuField)),
		})
	}
	elements = append(elements, map[string]any{"tag": "div", "fields": fields})
	if m.Example.Hint != "" {
		elements = append(elements, map[string]any{
			"tag": "note", "elements": []any{text(cut(m.Example.Hint, feishuText/3))},
		})
	}
	body := map[string]any{
		"msg_type": "interactive",
		"card": map[string]any{
			"config":   map[string]any{"wide_screen_mode": true},
			"header":   map[string]any{"title": text(cut(m.title(), 500)), "template": feishuColour(m.Severity)},
			"elements": elements,
		},
	}
	if h.Secret != "" {
		stamp := strconv.FormatInt(now.Unix(), 10)
		// The text to sign is the key, and what is signed is empty.
		mac := hmac.New(sha256.New, []byte(stamp+"\n"+string(h.Secret)))
		body["timestamp"] = stamp
		body["sign"] = base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	return jsonCall(string(h.URL), body)
}

func feishuColour(s Severity) string {
	switch s {
	case SeverityInfo:
		return "blue"
	case SeverityWarning:
		return "orange"
	default:
		return "red"
	}
}

func (feishu) read(status int, body []byte) answer {
	// Older gateways answer with StatusCode alone.
	var old struct {
		Code       *int
		StatusCode *int
	}
	if json.Unmarshal(body, &old) == nil && old.Code == nil && old.StatusCode != nil {
		return byCode(status, body, "StatusCode", "StatusMessage", feishuLater)
	}
	return byCode(status, body, "code", "msg", feishuLater)
}

// rates: 5 a second and 100 a minute, with some time for the way.
func (feishu) rates() []rate {
	return []rate{{5, 1200 * time.Millisecond}, {100, 61 * time.Second}}
}
