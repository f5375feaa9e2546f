package alert

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/url"
	"strconv"
	"time"
)

// dingtalk is a custom robot of DingTalk (钉钉自定义机器人).
// https://open.dingtalk.com/document/orgapp/custom-robots-send-group-messages
type dingtalk struct{ byURL }

// dingtalkContent bounds the text, so that the request stays below 20,000 bytes
// when every letter that JSON escapes has been escaped.
const dingtalkContent = 8000

// dingtalkLater are the codes that tell the message may be taken later. A robot
// that sent too fast is locked for ten minutes.
var dingtalkLater = map[int]time.Duration{
	-1:     0,
	130101: 10 * time.Minute,
	410100: 10 * time.Minute,
	90018:  time.Minute,
	90030:  time.Hour, // the organisation's quota is used up
}

func (dingtalk) request(h *Hook, m *Message, now time.Time) (call, error) {
	address := string(h.URL)
	if h.Secret != "" {
		u, err := url.Parse(address)
		if err != nil { // the error would show the URL
			return call{}, errors.New("cannot sign: the url cannot be parsed")
		}
		stamp := strconv.FormatInt(now.UnixMilli(), 10)
		mac := hmac.New(sha256.New, []byte(h.Secret))
		mac.Write([]byte(stamp + "\n" + string(h.Secret)))
		q := u.Query()
		q.Set("timestamp", stamp)
		q.Set("sign", base64.StdEncoding.EncodeToString(mac.Sum(nil)))
		u.RawQuery = q.Encode()
		address = u.String()
	}
	title := cut(m.title(), 200)
	return jsonCall(address, map[string]any{
		"msgtype": "markdown",
		"markdown": map[string]string{
			"title": title, // shown in the list of chats, no Markdown
			// Lines need a blank one between them to stay lines.
			"text": markdown(m, dingtalkContent, "#### "+plain.Replace(title), "\n\n> "),
		},
		"at": map[string]bool{"isAtAll": false},
	})
}

func (dingtalk) read(status int, body []byte) answer {
	return byCode(status, body, "errcode", "errmsg", dingtalkLater)
}

// rates: 20 a minute, with a second for the way.
func (dingtalk) rates() []rate { return []rate{{20, 61 * time.Second}} }
