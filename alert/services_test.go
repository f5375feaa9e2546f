package alert

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

var example = Event{
	Time: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), Reason: "schema.pattern", Service: "chat-api",
	Severity: SeverityError, Source: "otlp/http", ID: "812-3",
	Text: "trace_id \"xyz\" is not <32> hexadecimal digits: *see* [the schema](http://evil.test) & <@all>",
	Hint: "inquest deadletters --reason schema.pattern", Labels: []Label{{"rule", "/properties/trace_id/pattern"}},
}

// tell sends one event through a real HTTP server and returns the request.
func tell(t *testing.T, h Hook, e Event, answer string, status int) (*http.Request, map[string]any, []byte) {
	t.Helper()
	r := &receiver{answer: func(_ int, w http.ResponseWriter) { w.WriteHeader(status); io.WriteString(w, answer) }}
	srv := httptest.NewServer(r)
	t.Cleanup(srv.Close)
	h.Name, h.URL = "hook", Secret(srv.URL)+h.URL
	a := start(t, Settings{}, h)
	a.Notify(e)
	wait(t, "the message", func() bool { return a.Stats()[0].Sent == 1 })
	var body map[string]any
	if err := json.Unmarshal(r.body(0), &body); err != nil {
		t.Fatal(err)
	}
	if ct := r.calls[0].Header.Get("Content-Type"); ct != "application/json; charset=utf-8" {
		t.Errorf("content type %q", ct)
	}
	return r.calls[0], body, r.body(0)
}

// at returns a member of nested objects and arrays.
func at(v any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[p]
		case int:
			l, _ := v.([]any)
			if p >= len(l) {
				return nil
			}
			v = l[p]
		}
	}
	return v
}

func has(t *testing.T, what any, parts ...string) {
	t.Helper()
	s := fmt.Sprint(what)
	for _, p := range parts {
		if !strings.Contains(s, p) {
			t.Errorf("%q is missing in %q", p, s)
		}
	}
}

func lacks(t *testing.T, what any, parts ...string) {
	t.Helper()
	s := fmt.Sprint(what)
	for _, p := range parts {
		if strings.Contains(s, p) {
			t.Errorf("%q is in %q", p, s)
		}
	}
}

func fresh(t *testing.T, stamp string, unit time.Duration) {
	t.Helper()
	n, err := strconv.ParseInt(stamp, 10, 64)
	if age := time.Since(time.Unix(0, n*int64(unit))); err != nil || age < -2*time.Second || age > time.Minute {
		t.Errorf("timestamp %q", stamp)
	}
}

func TestGeneric(t *testing.T) {
	req, body, raw := tell(t, Hook{Kind: KindGeneric, URL: "/hook", Secret: "key"}, example, "", 204)
	stamp := req.Header.Get(HeaderTimestamp)
	fresh(t, stamp, time.Second)
	if got := req.Header.Get(HeaderSignature); got != Sign("key", stamp, raw) || !strings.HasPrefix(got, "sha256=") {
		t.Errorf("signature %q", got)
	}
	if id := req.Header.Get(HeaderID); id == "" || id != body["id"] {
		t.Errorf("id %q, body %q", id, body["id"])
	}
	for name, want := range map[string]any{
		"version": 1.0, "reason": "schema.pattern", "service": "chat-api", "severity": "error", "count": 1.0,
		"first": "2026-11-30T12:00:00Z", "title": "inquest: schema.pattern in chat-api",
	} {
		if body[name] != want {
			t.Errorf("%s = %v, want %v", name, body[name], want)
		}
	}
	if at(body, "example", "text") != example.Text || at(body, "example", "labels", 0, "value") != "/properties/trace_id/pattern" {
		t.Errorf("example %v", body["example"])
	}
}

func TestWeCom(t *testing.T) {
	req, body, _ := tell(t, Hook{Kind: KindWeCom, URL: "/cgi-bin/webhook/send?key=693a91f6"}, example, `{"errcode":0,"errmsg":"ok"}`, 200)
	if req.URL.Query().Get("key") != "693a91f6" || body["msgtype"] != "markdown" {
		t.Errorf("%s %v", req.URL, body)
	}
	content := at(body, "markdown", "content")
	has(t, content, `**<font color="warning">inquest: schema.pattern in chat-api</font>**`,
		"\n> What: trace_id", "\n> Service: chat-api", "\n> Source: otlp/http", "812-3", "rule: /properties", "\n> Next: inquest deadletters")
	lacks(t, content, "*see*", "](", "<@all", "<32")
}

func TestDingTalk(t *testing.T) {
	const secret = "SEC0123456789"
	req, body, _ := tell(t, Hook{Kind: KindDingTalk, URL: "/robot/send?access_token=a%2Bb", Secret: secret}, example, `{"errcode":0,"errmsg":"ok"}`, 200)
	q := req.URL.Query()
	fresh(t, q.Get("timestamp"), time.Millisecond)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(q.Get("timestamp") + "\n" + secret))
	if want := base64.StdEncoding.EncodeToString(mac.Sum(nil)); q.Get("sign") != want {
		t.Errorf("sign %q, want %q", q.Get("sign"), want)
	}
	if q.Get("access_token") != "a+b" || body["msgtype"] != "markdown" || at(body, "at", "isAtAll") != false {
		t.Errorf("%s %v", req.URL, body)
	}
	has(t, at(body, "markdown", "title"), "inquest: schema.pattern in chat-api")
	has(t, at(body, "markdown", "text"), "#### inquest", "\n\n> What: trace_id", "\n\n> Events: 1 at 2026-11-30 12:00:00Z")
	lacks(t, at(body, "markdown", "text"), "*see*", "](", "<@all")

	req, _, _ = tell(t, Hook{Kind: KindDingTalk, URL: "/robot/send?access_token=x"}, example, `{"errcode":0}`, 200)
	if req.URL.RawQuery != "access_token=x" {
		t.Errorf("unsigned query %q", req.URL.RawQuery)
	}
}

func TestFeishu(t *testing.T) {
	const secret = "feishu-secret"
	_, body, _ := tell(t, Hook{Kind: KindFeishu, URL: "/open-apis/bot/v2/hook/x", Secret: secret}, example, `{"code":0,"msg":"success","data":{}}`, 200)
	stamp, _ := body["timestamp"].(string)
	fresh(t, stamp, time.Second)
	mac := hmac.New(sha256.New, []byte(stamp+"\n"+secret))
	if want := base64.StdEncoding.EncodeToString(mac.Sum(nil)); body["sign"] != want {
		t.Errorf("sign %v, want %q", body["sign"], want)
	}
	card := body["card"]
	if body["msg_type"] != "interactive" || at(card, "header", "template") != "red" {
		t.Errorf("%v", body)
	}
	has(t, at(card, "header", "title", "content"), "inquest: schema.pattern in chat-api")
	if at(card, "elements", 0, "text", "tag") != "plain_text" || at(card, "elements", 0, "text", "content") != example.Text {
		t.Errorf("text %v", at(card, "elements", 0))
	}
	has(t, at(card, "elements", 1, "fields"), "Service: chat-api", "Example: 812-3")

	_, body, _ = tell(t, Hook{Kind: KindFeishu, URL: "/x"}, example, `{"StatusCode":0,"StatusMessage":"success"}`, 200)
	if body["sign"] != nil || body["timestamp"] != nil {
		t.Error("signed without a secret")
	}
}

func TestSlack(t *testing.T) {
	_, body, _ := tell(t, Hook{Kind: KindSlack, URL: "/services/T0/B0/x"}, example, "ok", 200)
	if body["text"] != "inquest: schema.pattern in chat-api" || at(body, "blocks", 0, "type") != "header" {
		t.Errorf("%v", body)
	}
	text := at(body, "blocks", 1, "text", "text")
	has(t, text, "not &lt;32&gt; hexadecimal", " &amp; &lt;@all&gt;")
	lacks(t, text, "<", ">")
	if at(body, "blocks", 1, "text", "type") != "plain_text" {
		t.Errorf("%v", at(body, "blocks", 1))
	}
	has(t, at(body, "blocks", 2, "fields"), "Service: chat-api", "Events: 1 at")
	has(t, at(body, "blocks", 3), "context", "inquest deadletters")
}

func TestPagerDuty(t *testing.T) {
	_, body, _ := tell(t, Hook{Kind: KindPagerDuty, URL: "/v2/enqueue", Secret: "R0UT1NGKEY"}, example, `{"status":"success","message":"Event processed","dedup_key":"x"}`, 202)
	for name, want := range map[string]any{
		"routing_key": "R0UT1NGKEY", "event_action": "trigger", "dedup_key": "inquest/schema.pattern/chat-api", "client": "inquest",
	} {
		if body[name] != want {
			t.Errorf("%s = %v, want %v", name, body[name], want)
		}
	}
	p := body["payload"]
	if at(p, "severity") != "error" || at(p, "source") != "chat-api" || at(p, "class") != "schema.pattern" ||
		at(p, "timestamp") != "2026-11-30T12:00:00Z" || at(p, "custom_details", "count") != 1.0 {
		t.Errorf("payload %v", p)
	}
	has(t, at(p, "summary"), "inquest: schema.pattern in chat-api: trace_id")
}

// TestSizes sends the largest event, of letters that escape to the most, to
// each service, and checks the documented limits.
func TestSizes(t *testing.T) {
	runes := func(v any) int { return utf8.RuneCountInString(fmt.Sprint(v)) }
	for _, letter := range []string{"模", `"`, "<", "&", "*", "\\", "x", "😀", "\xffx"} {
		long := strings.Repeat(letter, 20_000)
		e := Event{Reason: long, Service: long, Source: long, ID: long, Text: long, Hint: long}
		for range MaxLabels + 3 {
			e.Labels = append(e.Labels, Label{long, long})
		}
		m := &Message{ID: newID(), Reason: clean(long, 256), Service: clean(long, 256), Severity: SeverityCritical, Count: 1 << 60, Example: e.kept(), Merged: true}
		for range maxOthers {
			m.Others = append(m.Others, clean(long, 256)+" in "+clean(long, 256))
		}
		for kind, s := range services {
			c, err := s.request(&Hook{Kind: kind, URL: "https://h.test/x", Secret: "k"}, m, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			var b any
			if err := json.Unmarshal(c.body, &b); err != nil || !utf8.Valid(c.body) {
				t.Fatalf("%s: %v", kind, err)
			}
			f := func(what string, got, most int) {
				t.Helper()
				if got > most {
					t.Errorf("%s, %q: %s has %d, the limit is %d", kind, letter, what, got, most)
				}
			}
			if !strings.Contains(string(c.body), "(cut)") {
				t.Errorf("%s: the cut is not visible", kind)
			}
			switch kind {
			case KindWeCom:
				f("content", len(fmt.Sprint(at(b, "markdown", "content"))), 4096)
				has(t, at(b, "markdown", "content"), "> What: ", "> Next: ", "> Events: ")
			case KindDingTalk:
				f("body", len(c.body), 20_000)
			case KindFeishu:
				f("body", len(c.body), 20_000)
			case KindSlack:
				f("header", runes(at(b, "blocks", 0, "text", "text")), 150)
				f("text", runes(at(b, "blocks", 1, "text", "text")), 3000)
				blocks, _ := at(b, "blocks").([]any)
				f("blocks", len(blocks), 50)
				for _, bl := range blocks {
					fields, _ := at(bl, "fields").([]any)
					f("fields", len(fields), 10)
					for _, x := range fields {
						f("field", runes(at(x, "text")), 2000)
					}
				}
			case KindPagerDuty:
				f("summary", runes(at(b, "payload", "summary")), 1024)
				f("dedup_key", runes(at(b, "dedup_key")), 255)
				f("body", len(c.body), 512<<10)
			}
		}
	}
}

func TestAnswers(t *testing.T) {
	f := func(k Kind, status int, body string, want answer) {
		t.Helper()
		got := services[k].read(status, []byte(body))
		got.text, want.text = "", ""
		if got != want {
			t.Errorf("%s, %d %s: %+v, want %+v", k, status, body, got, want)
		}
	}
	ok, no, later := answer{ok: true}, answer{}, answer{retry: true}
	f(KindGeneric, 200, "", ok)
	f(KindGeneric, 302, "", no)
	f(KindGeneric, 404, "", no)
	f(KindGeneric, 429, "", later)
	f(KindGeneric, 503, "", later)
	f(KindWeCom, 200, `{"errcode":0,"errmsg":"ok"}`, ok)
	f(KindWeCom, 200, `{"errcode":93000,"errmsg":"invalid webhook url"}`, no)
	f(KindWeCom, 200, `{"errcode":45009,"errmsg":"api freq out of limit"}`, answer{retry: true, wait: time.Minute})
	f(KindWeCom, 200, `<html>log in</html>`, later)
	f(KindWeCom, 502, `<html>`, later)
	f(KindWeCom, 500, `{"errcode":0}`, later)
	f(KindDingTalk, 200, `{"errcode":310000,"errmsg":"sign not match"}`, no)
	f(KindDingTalk, 200, `{"errcode":130101,"errmsg":"send too fast"}`, answer{retry: true, wait: 10 * time.Minute})
	f(KindDingTalk, 200, `{"errcode":-1}`, later)
	f(KindFeishu, 200, `{"code":0}`, ok)
	f(KindFeishu, 400, `{"code":9499,"msg":"Bad Request"}`, no)
	f(KindFeishu, 200, `{"code":19021,"msg":"sign match fail"}`, no)
	f(KindFeishu, 400, `{"code":11232,"msg":"frequency limited"}`, answer{retry: true, wait: 10 * time.Second})
	f(KindSlack, 200, "ok", ok)
	f(KindSlack, 200, "<html>", later)
	f(KindSlack, 400, "invalid_payload", no)
	f(KindSlack, 429, "", later)
	f(KindPagerDuty, 202, `{"status":"success"}`, ok)
	f(KindPagerDuty, 400, `{"status":"invalid event"}`, no)
	f(KindPagerDuty, 429, "", later)
}

func TestSendTellsWhy(t *testing.T) {
	r := &receiver{answer: func(_ int, w http.ResponseWriter) {
		io.WriteString(w, `{"errcode":93000,"errmsg":"invalid webhook url, key=693a91f6-7aoc"}`)
	}}
	srv := httptest.NewServer(r)
	defer srv.Close()
	a := start(t, Settings{}, Hook{Name: "w", Kind: KindWeCom, URL: Secret(srv.URL + "/send?key=693a91f6-7aoc")})
	err := a.Send(context.Background(), "w", example)
	if err == nil || !strings.Contains(err.Error(), "93000") || strings.Contains(err.Error(), "693a91f6") {
		t.Errorf("Send: %v", err)
	}
	if err := a.Send(context.Background(), "x", example); err == nil || !strings.Contains(err.Error(), "none of that name") {
		t.Errorf("Send to an unknown hook: %v", err)
	}
}
