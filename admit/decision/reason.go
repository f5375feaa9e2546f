package decision

import (
	"regexp"
	"strings"
	"unicode"
)

// Longest texts of a decision, in bytes.
const (
	maxObject = 80
	maxReason = 160
)

// objectEnd is where the name of what was left or taken ends.
var objectEnd = regexp.MustCompile(`(?i)[,;，；。（）()|\n\]}]|[.!](?:\s|$)|:\s|：` +
	`|\s+(?:because|due|after|for|since|as|when|while|on|in|with|within|until|instead|from|reason|at|by|via|and|so|if|which|that|attempt|trace_id|request_id|req_id)\b` +
	`|\s+[\w.]+=|\s*(?:原因|因为|由于|理由|继续|处理|进行|重试|返回|，)|\s+(?:->|=>|→)`)

// object makes a name of the text that begins with it.
func object(s string) string {
	s = strings.TrimLeft(s, " \t:：'\"`“「『【[(<")
	if at := objectEnd.FindStringIndex(s); at != nil {
		s = s[:at[0]]
	}
	s = strings.Trim(s, " \t'\"`“”「」『』【】[]<>.:：")
	for _, article := range []string{"the ", "a ", "an ", "使用", "了"} {
		if len(s) > len(article) && strings.EqualFold(s[:len(article)], article) {
			s = strings.TrimSpace(s[len(article):])
		}
	}
	return strings.TrimSpace(start(s, maxObject))
}

// stated is a reason that the text names as one.
var stated = regexp.MustCompile(`(?i)(?:\bdue to\b|\bbecause(?: of)?\b|\breason\b["']?\s*[:=]?|\bcaused? by\b|\bcause\s*[:=]|\bas it raised\b|\bafter connection broken by\b|\bon account of\b|\berr(?:or)?["']?\s*[:=]|原因(?:是|为)?["”]?\s*[:：=]?|由于|因为|因(?:此)?)\s*["'“]?(.+)`)

// after is a reason in "after a timeout".
var after = regexp.MustCompile(`(?i)\b(?:after|on|upon|following)\s+((?:an?\s+|the\s+)?[^,;，；。\n(]*?(?:timeout|timed? ?-?out|errors?|failures?|failed|exception|refused|reset|limit(?:ed)?|unavailable|overload(?:ed)?|\b[45]\d\d\b|超时|失败|异常|错误)[^,;，；。\n.]{0,40})`)

// raised is the name of an exception after a colon, as Python prints it.
var raised = regexp.MustCompile(`[:：]\s*((?:[\w.]*(?:Error|Exception|Timeout|Refused|Unavailable)\b).*)`)

// trouble is what makes a clause that stands before the decision its reason.
var trouble = regexp.MustCompile(`(?i)\b(?:fail(?:ed|s|ure|ing)?|errors?|timed? ?out|timeout|unavailable|not (?:available|found|supported|installed|enough|responding|ready)|unsupported|cannot|can't|could not|couldn't|unable|exceed(?:ed|s)?|exhaust(?:ed|ion)|refused|reset|missing|overload(?:ed)?|out of memory|oom|unhealthy|rate limit(?:ed)?|throttled|invalid|too (?:large|long|many|slow|big)|broken|down|unreachable|expired|full|[45]\d\d|no such|exception|low confidence|breaker)\b|超时|失败|异常|错误|不可用|不足|超限|过高|过长|过大|过载|熔断|宕机|不支持|无法|未就绪|报错|限流|未命中|拒绝|断开|耗尽|故障|过期|OOM`)

// preface is what loggers put before the text.
var preface = regexp.MustCompile(`^(?:\s|\[[^\]]{0,60}\]|(?:\d{4}[-/])?\d\d[-/]\d\d[T ]|\d\d:\d\d:\d\d(?:[.,]\d+)?Z?|(?i:WARN(?:ING)?|INFO|ERROR|DEBUG|CRITICAL|TRACE)\b:?|[\w./-]+\.(?:py|go|cc|cpp|java|rs|ts|js):\d+\]?:?|[-|:：])+`)

// reasonOf finds why, in the body around a match.
func reasonOf(body string, from, to int) string {
	s := sentence(body, from, to)
	for _, where := range []string{body[s.from:s.to], body[from:]} {
		for _, e := range []*regexp.Regexp{stated, after, raised} {
			if m := e.FindStringSubmatchIndex(where); m != nil {
				if r := tidyReason(where[m[2]:m[3]]); r != "" {
					return r
				}
			}
		}
	}
	// The clauses before the decision, the nearest first.
	before := body[:from]
	for range 2 {
		before = strings.TrimRightFunc(before, func(r rune) bool {
			return unicode.IsSpace(r) || strings.ContainsRune(",;.:，；。：-–—!！|→", r)
		})
		at := max(lastCut(before, "\n", ";", "；", "。", "，", ", ", ". ", " | ", " - ", `":"`, `": "`, `="`), 0)
		if trouble.MatchString(before[at:]) {
			return tidyReason(preface.ReplaceAllString(before[at:], ""))
		}
		before = before[:at]
	}
	return ""
}

// lastCut returns the place after the last of the marks, or -1.
func lastCut(s string, marks ...string) int {
	cut := -1
	for _, m := range marks {
		if at := strings.LastIndex(s, m); at >= 0 {
			cut = max(cut, at+len(m))
		}
	}
	return cut
}

// reasonEnd is where a reason ends.
var reasonEnd = regexp.MustCompile(`(?i)[,;，；。\n]|\.(?:\s|$)|["”]|':\s|\s+(?:so|and|then)\s+|\s*(?:retrying|falling back|switching|will retry)\b|\s+(?:trace_id|request_id|req_id|attempt)=`)

var brackets = [][2]string{{"(", ")"}, {"[", "]"}, {"{", "}"}, {"（", "）"}, {"【", "】"}}

func tidyReason(s string) string {
	s = strings.TrimLeft(s, " \t:：=\"'“")
	if at := reasonEnd.FindStringIndex(s); at != nil {
		s = s[:at[0]]
	}
	s = strings.Trim(s, " \t\"'”“`:：")
	for _, pair := range brackets {
		if strings.HasSuffix(s, pair[1]) && !strings.Contains(s, pair[0]) {
			s = strings.TrimSuffix(s, pair[1])
		}
	}
	return strings.TrimSpace(start(s, maxReason))
}
