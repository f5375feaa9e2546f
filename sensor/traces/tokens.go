package traces

import (
	"math"
	"strconv"

	"inquest/record"
	"inquest/sensor"
)

// KindTokenMismatch is the share of calls of a model for which client and server
// count different tokens: parts of an answer are lost on the way, or it was
// answered by another.
const KindTokenMismatch = "token_mismatch"

// usage are the counts that are compared.
var usage = []string{"gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"}

// Tokens compares the token counts of a call's both ends.
type Tokens struct{}

// Name implements [sensor.Sensor].
func (Tokens) Name() string { return "traces/tokens" }

// Quadrant implements [sensor.Sensor].
func (Tokens) Quadrant() record.Quadrant { return record.QuadrantTraces }

// Measure implements [sensor.Sensor].
func (s Tokens) Measure(w *sensor.Window, p *sensor.Profile) {
	for _, t := range w.Traces {
		for _, v := range t.Visits {
			if v.Caller == nil {
				continue
			}
			for _, name := range usage {
				server, ok := tokensOf(v, name)
				client, has := clientTokens(v, name)
				if !ok || !has {
					continue
				}
				k := key(s, KindTokenMismatch, sensor.Service(v.Service), name, "1")
				k.Peer = sensor.Service(v.Caller.Service)
				// One token more or less is a matter of what ends an answer.
				p.Share(k, math.Abs(server-client) > 1, short(v.Entry))
			}
		}
	}
}

// tokensOf returns the count at the outermost span of a visit that tells it.
func tokensOf(v *sensor.Visit, name string) (float64, bool) {
	for _, n := range v.Nodes {
		if c, ok := count(n, name); ok {
			return c, true
		}
	}
	return 0, false
}

// clientTokens returns the count at the span that called, or at the one around it
// when that call is all it does.
func clientTokens(v *sensor.Visit, name string) (float64, bool) {
	for n := v.Entry.Above; n != nil && n.Visit == v.Caller; n = n.Above {
		if c, ok := count(n, name); ok {
			return c, true
		}
		if n.Above == nil || len(n.Above.Children) > 1 {
			break
		}
	}
	return 0, false
}

func count(n *sensor.Node, name string) (float64, bool) {
	a := n.Attributes[name]
	if a == "" {
		return 0, false
	}
	v, err := strconv.ParseFloat(a, 64)
	return v, err == nil
}
