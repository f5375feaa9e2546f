package traces

import (
	"inquest/record"
	"inquest/sensor"
)

// KindErrorRate is the share of an operation's requests that end in error
// although no call below them did: the service's own errors.
const KindErrorRate = "error_rate"

// Errors measures error status per operation.
type Errors struct{}

// Name implements [sensor.Sensor].
func (Errors) Name() string { return "traces/errors" }

// Quadrant implements [sensor.Sensor].
func (Errors) Quadrant() record.Quadrant { return record.QuadrantTraces }

// Measure implements [sensor.Sensor].
func (s Errors) Measure(w *sensor.Window, p *sensor.Profile) {
	for _, t := range w.Traces {
		for _, v := range t.Visits {
			k := key(s, KindErrorRate, sensor.Service(v.Service), sensor.OperationName(v.Entry.Name), "1")
			p.Share(k, OwnError(v), item(v.Entry))
		}
	}
}

// OwnError reports whether a visit failed although no call below it did.
func OwnError(v *sensor.Visit) bool { return failed(v.Entry) && !belowFailed(v) }

func failed(n *sensor.Node) bool {
	if n.Error {
		return true
	}
	for _, a := range []string{"http.response.status_code", "http.status_code"} {
		if c := n.Attributes[a]; len(c) == 3 && c[0] == '5' {
			return true
		}
	}
	return n.Attributes["error.type"] != ""
}

func belowFailed(v *sensor.Visit) bool {
	for _, n := range v.Nodes {
		for _, r := range n.Remote() {
			if failed(r.Entry) {
				return true
			}
		}
		if _, dep := sensor.DependencyOf(n); dep && n.Error {
			return true
		}
	}
	return false
}
