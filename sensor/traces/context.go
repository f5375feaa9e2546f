package traces

import (
	"net/netip"
	"strings"
	"time"

	"inquest/record"
	"inquest/sensor"
	"inquest/stats"
)

const (
	// KindOrphanSpans is the share of a service's visits whose parent was never seen.
	KindOrphanSpans = "orphan_spans"
	// KindBrokenContext is the share of an operation's requests that begin a trace
	// of their own. Where calls usually come in with a trace, it is nought.
	KindBrokenContext = "broken_context"
	// KindLostSpans is the share of successful calls that left no span at the callee.
	KindLostSpans = "lost_spans"
)

// Context measures whether traces hang together: parents that are missing, traces
// that begin inside the system, calls without a span at the other end.
type Context struct{}

// Name implements [sensor.Sensor].
func (Context) Name() string { return "traces/context" }

// Quadrant implements [sensor.Sensor].
func (Context) Quadrant() record.Quadrant { return record.QuadrantTraces }

// callPlace is where calls are made.
type callPlace struct{ service, name, address string }

// Measure implements [sensor.Sensor].
func (s Context) Measure(w *sensor.Window, p *sensor.Profile) {
	shares := newTrials(s, p)
	ops := names{}
	reached := map[callPlace]string{}
	whole := settled(w)
	for _, t := range w.Traces {
		if t.Start >= whole {
			continue
		}
		for _, v := range t.Visits {
			e := v.Entry
			shares.add(measured{KindOrphanSpans, v.Service, ""}, e.Above == nil && e.Parent != "", e)
			shares.add(measured{KindBrokenContext, v.Service, ops.of(e.Name)}, e.Parent == "", e)
			// Calls that begin a trace have another name than what is usually entered.
			shares.add(measured{KindBrokenContext, v.Service, ""}, e.Parent == "", e)
			for _, n := range v.Nodes {
				if n.Kind == "client" {
					if at := placeOf(n); reached[at] == "" {
						reached[at] = callee(n)
					}
				}
			}
		}
	}
	lost := map[[2]string]*sensor.Hits{}
	for _, t := range w.Traces {
		for _, n := range t.Nodes {
			if n.Kind != "client" || failed(n) {
				continue
			}
			to := reached[placeOf(n)]
			if to == "" {
				if to = addressed(n); to == "" {
					continue
				}
			}
			h := lost[[2]string{n.Service, to}]
			if h == nil {
				k := key(s, KindLostSpans, sensor.Service(to), "", "1")
				k.Peer = sensor.Service(n.Service)
				h = p.Trials(k)
				lost[[2]string{n.Service, to}] = h
			}
			h.Add(!leads(n), short(n))
		}
	}
}

// leastSettle is the least time that a request gets to end before its missing
// parent counts.
const leastSettle = int64(10 * time.Second)

// settled is the time from which requests may still be going on at the end of the
// window: their callers' spans are told when they end, and are not missing yet. It
// is one and a half of the long requests' duration before that end.
func settled(w *sensor.Window) int64 {
	var took []float64
	for _, t := range w.Traces {
		if n := t.Nodes[0]; n.Above == nil && n.Parent == "" {
			took = append(took, float64(n.Duration))
		}
	}
	wait := leastSettle
	if len(took) > 0 {
		wait = max(wait, int64(1.5*stats.Quantile(took, 0.99)))
	}
	return w.Range.To - wait
}

func placeOf(n *sensor.Node) callPlace {
	return callPlace{n.Service, n.Name, n.Attributes["server.address"]}
}

// callee returns the service that a call reached, empty when there is none.
func callee(n *sensor.Node) string {
	for _, c := range n.Children {
		if c.Visit != n.Visit {
			return c.Service
		}
	}
	return ""
}

// addressed returns the service that a call over HTTP or RPC names by its address:
// a plain name, or one inside a cluster. It is asked only where no call of the
// slice got there. Databases and queues send no spans, and others' hosts neither.
func addressed(n *sensor.Node) string {
	a := n.Attributes
	if a["db.system"] != "" || a["db.system.name"] != "" || a["messaging.system"] != "" {
		return ""
	}
	if a["rpc.system"] == "" && a["http.response.status_code"] == "" && a["http.status_code"] == "" {
		return ""
	}
	host, _, _ := strings.Cut(a["server.address"], ":")
	if _, err := netip.ParseAddr(host); err == nil || host == "localhost" {
		return ""
	}
	name, domain, dotted := strings.Cut(host, ".")
	if dotted && !strings.Contains("."+domain+".", ".svc.") {
		return ""
	}
	return name
}
