package bind

import (
	"strings"
	"unicode/utf8"

	"inquest/record"
)

// RequestIDFields are the names of fields that hold a request id. Of several the
// first that is there counts.
var RequestIDFields = []string{
	"request.id", "request_id", "req_id", "ai.req_id", "requestId", "x-request-id", "x_request_id",
	"http.request.header.x-request-id", "http.request.header.x_request_id", "gen_ai.request.id",
}

// Limits on request ids, in bytes. One below shortRequestID may be a counter
// that every service has, so it counts within its service only.
const (
	maxRequestID   = 256
	shortRequestID = 8
)

// RequestID returns the request id that the fields of a record hold, or "".
func RequestID(fields []record.Field) string {
	best, id := len(RequestIDFields), ""
	for i := range fields {
		name := fields[i].Name
		if len(name) < len("req_id") {
			continue
		}
		switch name[0] {
		case 'r', 'a', 'x', 'h', 'g':
		default:
			continue
		}
		for n := range RequestIDFields[:best] {
			if RequestIDFields[n] == name {
				if v := CleanRequestID(fields[i].Value); v != "" {
					best, id = n, v
				}
				break
			}
		}
	}
	return id
}

// CleanRequestID returns the id that a value holds, or "" where the value says
// that there is none. A header is a list of one value by OpenTelemetry's
// conventions.
func CleanRequestID(v string) string {
	if len(v) >= 4 && strings.HasPrefix(v, `["`) && strings.HasSuffix(v, `"]`) {
		if v = v[2 : len(v)-2]; strings.Contains(v, `","`) {
			return ""
		}
	}
	if v == "" || len(v) > maxRequestID {
		return ""
	}
	zero := true
	for i, c := range v {
		if c <= ' ' || c == 0x7f || c == utf8.RuneError && !strings.HasPrefix(v[i:], "\uFFFD") {
			return ""
		}
		zero = zero && (c == '0' || c == '-' || c == '_' || c == '.' || c == '*' || c == '?')
	}
	if zero {
		return ""
	}
	switch strings.ToLower(v) {
	case "none", "null", "nil", "undefined", "unknown", "n/a", "na", "nan", "empty", "default", "test", "missing", "{}", "[]", "()", "<none>", "<nil>", "<unknown>", "(none)", "(null)", "req-none", "req-":
		return ""
	}
	return v
}

// maxText is how many bytes of a body are searched for a request id.
const maxText = 4096

// labels are what stands before a request id in a text, without separators and
// in small letters.
var labels = []string{"requestid", "reqid", "xrequestid", "请求id", "请求号", "请求编号"}

// RequestIDInText returns the request id that a log body names: "request_id=x",
// "req_id: x", "requestId":"x" in JSON, "[req-x]" as OpenStack has it, or the
// ids that OpenAI-compatible servers make (chatcmpl-x, cmpl-x). It returns ""
// where the text names none, or two that differ. It takes time linear in the
// length of the text, of which it reads the first 4 KiB, and does not allocate.
func RequestIDInText(body string) string {
	body = body[:min(len(body), maxText)]
	id := ""
	for i := 0; i < len(body); {
		var found string
		if !triggers[body[i]] {
			i++
			continue
		}
		next := i + 1
		switch c := body[i]; {
		case c == 'r' || c == 'R' || c == 'x' || c == 'X' || c == 0xe8: // 请 begins with E8
			// Not "upstream-request-id" or "jsonrpc.request.id".
			if i == 0 || !isWordByte(body[i-1]) && body[i-1] != '-' && body[i-1] != '.' || c == 0xe8 {
				found, next = labelled(body, i)
			}
		case c == '[' && strings.HasPrefix(body[i:], "[req-"):
			if end := tokenEnd(body, i+1); end < len(body) && (body[end] == ']' || body[end] == ' ') {
				found, next = body[i+1:end], end
			}
		case c == 'c' && (i == 0 || !isWordByte(body[i-1]) && body[i-1] != '-'):
			if strings.HasPrefix(body[i:], "chatcmpl-") || strings.HasPrefix(body[i:], "cmpl-") {
				next = tokenEnd(body, i)
				found = body[i:next]
			}
		}
		if found = CleanRequestID(strings.TrimRight(found, ".:")); found != "" {
			if id != "" && id != found {
				return ""
			}
			id = found
		}
		i = max(next, i+1)
	}
	return id
}

// triggers are the bytes with which a label or an id begins.
var triggers = [256]bool{'r': true, 'R': true, 'x': true, 'X': true, 0xe8: true, '[': true, 'c': true}

// labelled reads a label and the id after it, at i of body.
func labelled(body string, i int) (id string, next int) {
	// Most words that begin with an r are others.
	if c := body[i]; (c == 'r' || c == 'R') && (i+1 == len(body) || body[i+1]|0x20 != 'e') {
		return "", i + 1
	}
	at := i
	label := ""
	for _, l := range labels {
		if end, ok := readLabel(body, i, l); ok {
			label, at = l, end
			break
		}
	}
	if label == "" {
		return "", i + 1
	}
	// A separator must stand between: = or :, with quotes around.
	sep := false
	for at < len(body) {
		switch c := body[at]; {
		case c == '=' || c == ':':
			if sep {
				return "", at
			}
			sep = true
			at++
			continue
		case strings.HasPrefix(body[at:], "："):
			if sep {
				return "", at
			}
			sep = true
			at += len("：")
			continue
		case c == ' ' || c == '"' || c == '\'' || c == '\\' || c == '[' && sep:
			at++
			continue
		}
		break
	}
	if !sep || at == len(body) {
		return "", max(at, i+1)
	}
	end := tokenEnd(body, at)
	if end == len(body) && len(body) == maxText { // may be cut off
		return "", end
	}
	return body[at:end], max(end, i+1)
}

// readLabel tells whether the label l stands at i, in either case and with _, -,
// . or a space between its words, and where it ends.
func readLabel(body string, i int, l string) (end int, ok bool) {
	for n := 0; n < len(l); {
		if i == len(body) {
			return 0, false
		}
		c := body[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		switch {
		case c == l[n]:
			n++
		case n > 0 && (c == '_' || c == '-' || c == '.' || c == ' '):
		default:
			return 0, false
		}
		i++
	}
	return i, i == len(body) || !isWordByte(body[i])
}

func isWordByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_'
}

// tokenEnd returns where the id that begins at i ends.
func tokenEnd(body string, i int) int {
	for i < len(body) {
		c := body[i]
		if !isWordByte(c) && c != '-' && c != '.' && c != ':' && c != '/' && c != '+' && c != '=' && c != '@' && c != '~' {
			break
		}
		i++
	}
	return i
}
