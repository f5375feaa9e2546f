package logs

import (
	"math"
	"testing"

	"inquest/sensor"
)

// TestReadAnswer reads lines of access logs as servers write them.
func TestReadAnswer(t *testing.T) {
	attrs := func(kv ...string) sensor.Log {
		l := sensor.Log{Attributes: map[string]string{}}
		for i := 0; i < len(kv); i += 2 {
			l.Attributes[kv[i]] = kv[i+1]
		}
		return l
	}
	body := func(s string) sensor.Log { return sensor.Log{Body: s} }
	none := math.NaN()
	for _, c := range []struct {
		name    string
		log     sensor.Log
		want    answer
		ok      bool
		timeout bool
	}{
		{"semantic conventions", attrs("http.response.status_code", "200", "http.route", "/v1/chat", "http.server.request.duration", "1.5"), answer{"/v1/chat", 200, 1.5}, true, false},
		{"older conventions", attrs("http.status_code", "504", "http.target", "/v1/chat?x=1", "duration_ms", "30000"), answer{"/v1/chat", 504, 30}, true, true},
		{"Go's duration", attrs("http.response.status_code", "502", "http.route", "/a", "duration", "29.9s"), answer{"/a", 502, 29.9}, true, true},
		{"duration without unit", attrs("http.response.status_code", "502", "http.route", "/a", "duration", "30"), answer{"/a", 502, none}, true, false},
		{"common format", body(`127.0.0.1 - "POST /v1/completions HTTP/1.1" 200 OK 812 ms`), answer{"/v1/completions", 200, 0.812}, true, false},
		{"uvicorn, no duration", body(`INFO: 10.0.0.1:4711 - "GET /health HTTP/1.1" 200 OK`), answer{"/health", 200, none}, true, false},
		{"failure far from a limit", attrs("http.response.status_code", "500", "http.route", "/a", "duration_ms", "1234"), answer{"/a", 500, 1.234}, true, false},
		{"ordinary line", body("chat done: 312 prompt tokens"), answer{}, false, false},
		{"status that is no number", attrs("http.response.status_code", "OK"), answer{}, false, false},
	} {
		got, ok := readAnswer(&c.log)
		same := got.route == c.want.route && got.status == c.want.status &&
			(math.Abs(got.took-c.want.took) < 1e-9 || math.IsNaN(got.took) && math.IsNaN(c.want.took))
		if ok != c.ok || ok && !same {
			t.Errorf("%s: read %+v, %v; want %+v, %v", c.name, got, ok, c.want, c.ok)
		}
		if ok && got.timedOut() != c.timeout {
			t.Errorf("%s: timed out %v, want %v", c.name, got.timedOut(), c.timeout)
		}
	}
}
