package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"inquest/record"
	"inquest/sensor"
)

// Clock is a clock that was found off in the window, or that nothing ties to the
// others.
type Clock struct {
	// Entity is the node, else the pod, else the service whose clock it is.
	Entity record.Entity `json:"entity"`
	// OffsetMs is what the clock showed more than the middle of all, in ms, and
	// ErrorMs how far that may be off at most. Spans and log records of the entity
	// were corrected by it. Both are 0 where Note says why nothing was corrected.
	OffsetMs float64 `json:"offset_ms"`
	ErrorMs  float64 `json:"error_ms"`
	// Note is why the clock was not corrected, or what its offset is against.
	Note string `json:"note,omitempty"`
}

// maxClocks bounds the clocks of a verdict.
const maxClocks = 40

const (
	noteUntied = "not corrected: no calls tie this clock to another"
	noteApart  = "against the clocks that it calls or is called by; none of them is tied to the most others"
)

// clocks tells which clocks were corrected, the largest offset first, and then
// which could not be judged.
func clocks(states []sensor.ClockState) []Clock {
	if len(states) < 2 {
		return nil
	}
	ms := func(ns int64) float64 { return float64(ns/int64(10*time.Microsecond)) / 100 }
	var out []Clock
	for _, s := range states {
		c := Clock{Entity: s.Entity}
		switch {
		case !s.Tied:
			c.Note = noteUntied
		case !s.Applied():
			continue
		default:
			c.OffsetMs, c.ErrorMs = ms(s.Offset), ms(s.Error)
			if s.Group > 0 {
				c.Note = noteApart
			}
		}
		out = append(out, c)
	}
	slices.SortStableFunc(out, func(a, b Clock) int {
		return cmp.Compare(max(b.OffsetMs, -b.OffsetMs), max(a.OffsetMs, -a.OffsetMs))
	})
	if len(out) > maxClocks {
		rest := len(out) - maxClocks
		out = out[:maxClocks]
		last := &out[maxClocks-1]
		last.Note = fmt.Sprintf("%s (and %d more clocks)", last.Note, rest)
	}
	return out
}
