package verdict

import (
	"time"

	"inquest/sensor"
)

// onset estimates when the cause began to show: the earliest of its evidence.
func onset(q Question, ev *evidence, f *facts, h *hypothesis) *Onset {
	if q.Onset != nil {
		return &Onset{Time: q.Onset.UTC(), Given: true}
	}
	if b := f.breakOf(h); b != nil && len(b.At) > 0 {
		return &Onset{Time: sensor.Time(b.At[0]), ErrorSeconds: spacing(b.At, ev.window)}
	}
	return &Onset{Time: q.From.UTC(), ErrorSeconds: q.To.Sub(q.From).Seconds()}
}

// spacing is how far apart the observations are: the onset lies at most so far
// before the first.
func spacing(at []int64, w sensor.Range) float64 {
	if len(at) < 2 {
		return time.Duration(w.To - w.From).Seconds()
	}
	return time.Duration((at[len(at)-1] - at[0]) / int64(len(at)-1)).Seconds()
}
