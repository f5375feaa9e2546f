package verdict

import (
	"context"
	"time"

	"inquest/record"
	"inquest/sensor"
)

// maxNoted bounds the findings that are taken as they were noted.
const maxNoted = 1000

// readNoted takes what checks found at the time of the incident or just before,
// where the source has such findings. What stood long before explains no change.
func (e *Engine) readNoted(ctx context.Context, ev *evidence) error {
	src, ok := e.src.(sensor.Noter)
	if !ok {
		return nil
	}
	guard := (ev.window.To - ev.window.From) / 2
	near := sensor.Range{From: ev.window.From - guard, To: ev.window.To + guard}
	items := map[record.Quadrant]int{}
	err := src.Noted(ctx, near, func(n sensor.Noted) error {
		x := &n.Finding
		if len(ev.noted) >= maxNoted || x.Onset == nil {
			return nil
		}
		spread := time.Duration(x.OnsetErrorSeconds * float64(time.Second))
		if x.Onset.Add(spread).UnixNano() < near.From || x.Onset.Add(-spread).UnixNano() > ev.window.To {
			return nil
		}
		ev.noted = append(ev.noted, n)
		items[x.Quadrant]++
		return nil
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for _, quad := range record.Quadrants {
		if items[quad] > 0 {
			ev.examined = append(ev.examined, Examined{Source: "checks", Quadrant: quad, Items: items[quad], Ranges: []Range{outRange(near)}})
		}
	}
	if err != nil {
		ev.missing = append(ev.missing, Missing{Source: "checks", Quadrant: record.QuadrantResources, Reason: err.Error()})
	}
	return nil
}

// take adds noted findings to the facts. They were compared with a fact, not with
// a baseline, so they count whether or not their quadrant has one.
func (f *facts) take(noted []sensor.Noted) {
	for _, n := range noted {
		f.findings = append(f.findings, n.Finding)
		f.past = append(f.past, history{})
		service := sensor.Service(n.Service)
		if n.Service != "" && n.Finding.Entity != service {
			f.edges = append(f.edges, record.Edge{Kind: record.EdgeServes, From: service, To: n.Finding.Entity})
		}
	}
}
