package logs

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"inquest/record"
	"inquest/sensor"
	"inquest/stats"
)

const (
	// KindStall is the share of successful answers of an access log that took many
	// times as long as most of the same route.
	KindStall = "stall"
	// KindGatewayTimeout is the share of answers of an access log that tell that time
	// ran out.
	KindGatewayTimeout = "gateway_timeout"
)

// stallTimes is from how many times the median an answer counts as stalled; see
// package traces, which reads spans in the same way.
const stallTimes = 8

// limits are those at which people set timeouts.
var limits = []time.Duration{
	time.Second, 2 * time.Second, 3 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 20 * time.Second,
	30 * time.Second, 45 * time.Second, time.Minute, 90 * time.Second, 2 * time.Minute, 3 * time.Minute, 5 * time.Minute, 10 * time.Minute,
}

// Access reads status and duration of access logs together: 200 after far longer
// than usual is a stall, 504 or a failure after just a limit that people set is a
// timeout of the gateway.
type Access struct{}

// Name implements [sensor.Sensor].
func (Access) Name() string { return "logs/access" }

// Quadrant implements [sensor.Sensor].
func (Access) Quadrant() record.Quadrant { return record.QuadrantLogs }

// answer is a line of an access log.
type answer struct {
	route  string
	status int
	took   float64 // s, NaN when not told
}

// Measure implements [sensor.Sensor].
func (s Access) Measure(w *sensor.Window, p *sensor.Profile) {
	type route struct{ service, name string }
	type line struct {
		log *sensor.Log
		answer
	}
	var lines []line
	took := map[route]*sensor.Sample{}
	each(w, func(l *sensor.Log) {
		if l.Service == "" {
			return
		}
		a, ok := readAnswer(l)
		if !ok {
			return
		}
		lines = append(lines, line{l, a})
		k := route{l.Service, a.route}
		if took[k] == nil {
			took[k] = &sensor.Sample{}
		}
		took[k].Add(a.took, record.Item{})
	})
	usual := make(map[route]float64, len(took))
	for k, d := range took {
		usual[k] = stats.Median(d.Values)
	}
	for i := range lines {
		l := &lines[i]
		k := route{l.log.Service, l.route}
		key := sensor.Key{Quadrant: s.Quadrant(), Sensor: s.Name(), Kind: KindGatewayTimeout, Entity: sensor.Service(k.service), Subject: k.name, Unit: "1"}
		share(p, key, l.timedOut(), l.log)
		if l.status < 400 && !math.IsNaN(l.took) {
			key.Kind = KindStall
			share(p, key, usual[k] > 0 && l.took >= stallTimes*usual[k], l.log)
		}
	}
}

// share adds a trial, with its record when it is a hit.
func share(p *sensor.Profile, k sensor.Key, hit bool, l *sensor.Log) {
	h := p.Trials(k)
	if !hit {
		h.N++
		return
	}
	h.Add(true, Item(l))
}

func (a *answer) timedOut() bool {
	switch a.status {
	case 504, 408, 524:
		return true
	}
	if a.status < 500 || math.IsNaN(a.took) {
		return false
	}
	for _, l := range limits {
		if math.Abs(a.took-l.Seconds()) <= l.Seconds()/100 {
			return true
		}
	}
	return false
}

// each calls fn with the records of a window: those of requests, then the others.
func each(w *sensor.Window, fn func(*sensor.Log)) {
	for _, t := range w.Traces {
		for _, v := range t.Visits {
			for i := range v.Logs {
				fn(&v.Logs[i])
			}
		}
	}
	for i := range w.Loose {
		fn(&w.Loose[i])
	}
}

// durations are attributes that tell how long an answer took, with their unit in s.
// A number of "duration" has no unit that all agree on; it counts with one only.
var durations = []struct {
	name string
	unit float64
}{
	{"http.server.request.duration", 1},
	{"request_time", 1},
	{"duration_ms", 1e-3},
	{"latency_ms", 1e-3},
	{"response_time_ms", 1e-3},
	{"elapsed_ms", 1e-3},
	{"duration", 0},
}

// readAnswer reads a line of an access log from its attributes, else from a text of
// the common log format with a duration at its end.
func readAnswer(l *sensor.Log) (answer, bool) {
	status := l.Attributes["http.response.status_code"]
	if status == "" {
		status = l.Attributes["http.status_code"]
	}
	if status == "" {
		return readCommon(l.Body)
	}
	n, err := strconv.Atoi(status)
	if err != nil {
		return answer{}, false
	}
	a := answer{status: n, took: math.NaN()}
	for _, name := range []string{"http.route", "url.path", "http.target"} {
		if v := l.Attributes[name]; v != "" {
			v, _, _ = strings.Cut(v, "?")
			a.route = sensor.OperationName(v)
			break
		}
	}
	for _, d := range durations {
		v := l.Attributes[d.name]
		if v == "" {
			continue
		}
		if x, err := strconv.ParseFloat(v, 64); err == nil && d.unit > 0 {
			a.took = x * d.unit
			break
		}
		if x, err := time.ParseDuration(v); err == nil {
			a.took = x.Seconds()
			break
		}
	}
	return a, !math.IsNaN(a.took) || a.route != ""
}

// common is a line as most servers write it: request, status, and at the end how
// long it took with its unit.
var common = regexp.MustCompile(`"?[A-Z]{3,7} (\S+) HTTP/[0-9.]+"? (\d{3})\b(?:.*?\b(\d+(?:\.\d+)?) ?(ms|s|µs|us)\b)?`)

var units = map[string]float64{"s": 1, "ms": 1e-3, "µs": 1e-6, "us": 1e-6}

func readCommon(text string) (answer, bool) {
	if len(text) > headBytes || !strings.Contains(text, " HTTP/") {
		return answer{}, false
	}
	m := common.FindStringSubmatch(text)
	if m == nil {
		return answer{}, false
	}
	status, err := strconv.Atoi(m[2])
	if err != nil {
		return answer{}, false
	}
	path, _, _ := strings.Cut(m[1], "?")
	a := answer{route: sensor.OperationName(path), status: status, took: math.NaN()}
	if x, err := strconv.ParseFloat(m[3], 64); err == nil {
		a.took = x * units[m[4]]
	}
	return a, true
}
