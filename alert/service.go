package alert

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// service is what one kind of receiver documents: its request, its answers and
// its limits. Implementations have no state.
type service interface {
	// request makes the call that tells m. It is made anew for each try, since
	// signatures hold the time.
	request(h *Hook, m *Message, now time.Time) (call, error)
	// read understands an answer.
	read(status int, body []byte) answer
	// rates are the limits on messages of one robot.
	rates() []rate
	// robot names what the limits count by; hooks of one robot share them.
	robot(h *Hook) string
}

// services are the kinds there are.
var services = map[Kind]service{
	KindGeneric:   generic{},
	KindWeCom:     wecom{},
	KindDingTalk:  dingtalk{},
	KindFeishu:    feishu{},
	KindSlack:     slack{},
	KindPagerDuty: pagerduty{},
}

// call is one HTTP POST.
type call struct {
	url    string
	body   []byte
	header http.Header
}

// answer is what a receiver said.
type answer struct {
	ok    bool
	retry bool          // the same message may be taken later
	wait  time.Duration // not to be tried before, 0 where it does not say
	text  string        // why it was not taken; may hold secrets
}

// byURL is the part of a service whose robot is its address.
type byURL struct{}

func (byURL) robot(h *Hook) string { return string(h.Kind) + " " + string(h.URL) }

// byStatus understands an answer by its HTTP status alone.
func byStatus(status int, body []byte) answer {
	a := answer{text: fmt.Sprintf("HTTP status %d", status)}
	switch {
	case status >= 200 && status < 300:
		return answer{ok: true}
	case status >= 300 && status < 400:
		a.text += ": it redirects; set url to the address that it redirects to"
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly,
		status == http.StatusTooManyRequests, status >= 500:
		a.retry = true
	}
	if b := bytes.TrimSpace(body); len(b) > 0 {
		a.text += ": " + string(b)
	}
	return a
}

// byCode understands the answer of a service that tells success by a number in
// its JSON body, whatever the status is. later holds the codes of a service that
// would take the message after that time.
func byCode(status int, body []byte, name, textName string, later map[int]time.Duration) answer {
	var members map[string]json.RawMessage
	var code *int
	if json.Unmarshal(body, &members) == nil {
		_ = json.Unmarshal(members[name], &code) // stays nil when it is no number
	}
	if code == nil {
		a := byStatus(status, body)
		if a.ok {
			// A proxy or login page answers 200 too.
			return answer{retry: true, text: fmt.Sprintf("the answer has no %s, so it is not the service's: check the url and proxies", name)}
		}
		return a
	}
	if *code == 0 && status < 300 {
		return answer{ok: true}
	}
	var text string
	_ = json.Unmarshal(members[textName], &text) // the code says enough
	wait, limited := later[*code]
	return answer{
		retry: limited || byStatus(status, nil).retry, wait: wait,
		text: fmt.Sprintf("%s %d: %s", name, *code, text),
	}
}

func jsonCall(url string, v any) (call, error) {
	b := &bytes.Buffer{}
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false) // keeps sizes as the services count them
	if err := enc.Encode(v); err != nil {
		return call{}, fmt.Errorf("cannot write the message as JSON: %w", err)
	}
	return call{
		url: url, body: bytes.TrimSuffix(b.Bytes(), []byte("\n")),
		header: http.Header{"Content-Type": {"application/json; charset=utf-8"}},
	}, nil
}
