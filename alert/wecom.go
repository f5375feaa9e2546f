package alert

import "time"

// wecom is a group robot of WeCom (企业微信群机器人).
// https://developer.work.weixin.qq.com/document/path/91770
type wecom struct{ byURL }

const wecomContent = 4096 // bytes of a Markdown message's content

// wecomLater are the codes that tell the message may be taken later: system
// busy, too many calls, too many at once.
var wecomLater = map[int]time.Duration{-1: 0, 45009: time.Minute, 45033: 0}

func (wecom) request(h *Hook, m *Message, _ time.Time) (call, error) {
	// Its colours: info is green, comment grey, warning orange.
	colour := "warning"
	if m.Severity == SeverityInfo {
		colour = "info"
	}
	title := `**<font color="` + colour + `">` + cut(plain.Replace(m.title()), wecomContent/8) + "</font>**"
	return jsonCall(string(h.URL), map[string]any{
		"msgtype":  "markdown",
		"markdown": map[string]string{"content": markdown(m, wecomContent, title, "\n> ")},
	})
}

func (wecom) read(status int, body []byte) answer {
	return byCode(status, body, "errcode", "errmsg", wecomLater)
}

// rates: 20 a minute, with a second for the way.
func (wecom) rates() []rate { return []rate{{20, 61 * time.Second}} }
