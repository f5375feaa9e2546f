package traces

import (
	"math"
	"strings"
	"time"

	"inquest/record"
	"inquest/sensor"
	"inquest/stats"
)

const (
	// KindStall is the share of successful requests that take many times as long
	// as most of the same operation, through no call of theirs.
	KindStall = "stall"
	// KindGatewayTimeout is the share of requests that fail because time ran out.
	KindGatewayTimeout = "gateway_timeout"
)

// stallTimes is from how many times the median a request counts as stalled. Of
// exponential times, one in 256 is as long as eight medians: what is left of the
// usual spread is known from the baseline.
const stallTimes = 8

// Stalls measures requests that stand still until they go on or time is over. The
// usual time is that of the same slice: a fault that slows most requests is one
// of latency.
type Stalls struct{}

// Name implements [sensor.Sensor].
func (Stalls) Name() string { return "traces/stalls" }

// Quadrant implements [sensor.Sensor].
func (Stalls) Quadrant() record.Quadrant { return record.QuadrantTraces }

// Measure implements [sensor.Sensor].
func (s Stalls) Measure(w *sensor.Window, p *sensor.Profile) {
	type operation struct{ service, name string }
	durations := map[operation]*sensor.Sample{}
	ops := names{}
	for _, t := range w.Traces {
		for _, v := range t.Visits {
			op := operation{v.Service, ops.of(v.Entry.Name)}
			d := durations[op]
			if d == nil {
				d = &sensor.Sample{}
				durations[op] = d
			}
			d.Add(float64(v.Entry.Duration), record.Item{})
		}
	}
	usual := map[operation]float64{}
	for op, d := range durations {
		usual[op] = stats.Median(d.Values)
	}
	shares := newTrials(s, p)
	for _, t := range w.Traces {
		for _, v := range t.Visits {
			op := operation{v.Service, ops.of(v.Entry.Name)}
			bad := failed(v.Entry)
			shares.add(measured{KindGatewayTimeout, op.service, op.name}, bad && timedOut(v.Entry), v.Entry)
			if !bad {
				shares.add(measured{KindStall, op.service, op.name}, stalled(v, usual[op]), v.Entry)
			}
		}
	}
}

func stalled(v *sensor.Visit, usual float64) bool {
	d := float64(v.Entry.Duration)
	if usual <= 0 || d < stallTimes*usual {
		return false
	}
	called := 0.0
	for _, n := range v.Nodes {
		for _, c := range n.Children {
			if c.Visit != v {
				called += float64(c.Duration)
			}
		}
	}
	return d-called > (d-usual)/2
}

// timeoutWords are how status codes and libraries name that time ran out.
var timeoutWords = []string{"timeout", "timed out", "timedout", "timed_out", "deadline"}

// limits are those at which people set timeouts.
var limits = []time.Duration{
	time.Second, 2 * time.Second, 3 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 20 * time.Second,
	30 * time.Second, 45 * time.Second, time.Minute, 90 * time.Second, 2 * time.Minute, 3 * time.Minute, 5 * time.Minute, 10 * time.Minute,
}

// timedOut reports whether a failed span failed because time ran out: it says so,
// or it ended at a limit that people set, to within a hundredth.
func timedOut(n *sensor.Node) bool {
	for _, a := range []string{"http.response.status_code", "http.status_code"} {
		switch n.Attributes[a] {
		case "504", "408", "524":
			return true
		}
	}
	for _, a := range []string{"error.type", "exception.type"} {
		text := strings.ToLower(n.Attributes[a])
		for _, w := range timeoutWords {
			if text != "" && strings.Contains(text, w) {
				return true
			}
		}
	}
	for _, l := range limits {
		if math.Abs(float64(n.Duration-int64(l))) <= float64(l)/100 {
			return true
		}
	}
	return false
}
