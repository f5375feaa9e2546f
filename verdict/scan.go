package verdict

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"inquest/sensor"
)

// Scan finds incidents in a longer stretch by itself.
type Scan struct {
	From, To time.Time
	// Window is the length of what is judged at once, default 3 min; Step how far
	// it moves each time, default 1 min. An incident much shorter than Window is
	// diluted, one much longer is found in its first windows.
	Window, Step time.Duration
	// Odds is how much likelier a fault must be than none before it counts,
	// against all faults at all entities taken together; default 1000, one false
	// alarm in a thousand windows if the p-values hold.
	Odds float64
}

// Incident is a stretch that was found, and its verdict.
type Incident struct {
	Window  Range    `json:"window"`
	Score   float64  `json:"score"` // nats above the bar
	Verdict *Verdict `json:"verdict"`
}

// Detect judges every window of a stretch against the rest of it, joins
// neighbouring windows in which a fault is far likelier than none, and
// investigates each such run at its most telling window. Incidents are in the
// order of time.
func (e *Engine) Detect(ctx context.Context, s Scan) ([]Incident, error) {
	if s.Step <= 0 {
		s.Step = time.Minute
	}
	if s.Window < s.Step {
		s.Window = max(3*time.Minute, s.Step)
	}
	if s.Odds <= 1 {
		s.Odds = 1000
	}
	if !s.From.Before(s.To) {
		return nil, fmt.Errorf("%w: from %v must be before to %v", ErrQuestion, s.From, s.To)
	}
	windows, err := e.judgeWindows(ctx, s)
	if err != nil {
		return nil, err
	}
	var out []Incident
	for _, run := range runs(windows) {
		best := run[0]
		for _, w := range run {
			if w.score > best.score {
				best = w
			}
		}
		v, err := e.Investigate(ctx, Question{
			From: sensor.Time(best.r.From), To: sensor.Time(best.r.To), Baseline: []Range{{s.From, s.To}},
		})
		if err != nil {
			return nil, err
		}
		if v.State == StateInconclusive {
			continue
		}
		out = append(out, Incident{
			Window: Range{sensor.Time(run[0].r.From), sensor.Time(run[len(run)-1].r.To)}, Score: best.score, Verdict: v,
		})
	}
	return out, nil
}

// judged is a window that stands above the bar.
type judged struct {
	r     sensor.Range
	score float64
	lead  string
}

func (e *Engine) judgeWindows(ctx context.Context, s Scan) ([]judged, error) {
	g, err := e.readGrid(ctx, s)
	if err != nil {
		return nil, err
	}
	per := int(s.Window / s.Step)
	var out []judged
	for i := 0; i+per <= len(g.ranges); i++ {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		ev := g.evidence(i, per)
		if ev == nil {
			continue
		}
		ev.voc = e.voc
		f := newFacts(ev, Question{})
		ranked := weigh(e.opt.Catalog, f)
		bar := math.Log(float64(len(f.entities)*len(e.opt.Catalog.Faults))) + math.Log(s.Odds)
		if len(ranked) == 0 || ranked[0].score <= bar {
			continue
		}
		// Cleaning weakens findings only, and costs more than the rest.
		f.clean(e.opt.Catalog)
		if ranked = weigh(e.opt.Catalog, f); len(ranked) == 0 {
			continue
		}
		if d := ranked[0].score - bar; d > 0 && len(ranked[0].quadrants()) > 0 {
			out = append(out, judged{ev.window, d, ranked[0].entity.String()})
		}
	}
	return out, nil
}

// runs joins windows that overlap and accuse the same entity, and lets the
// stronger of two overlapping runs win.
func runs(windows []judged) [][]judged {
	var all [][]judged
	last := map[string]int{}
	for _, w := range windows {
		if k, ok := last[w.lead]; ok && w.r.From < all[k][len(all[k])-1].r.To {
			all[k] = append(all[k], w)
			continue
		}
		last[w.lead] = len(all)
		all = append(all, []judged{w})
	}
	strength := func(run []judged) float64 {
		best := 0.0
		for _, w := range run {
			best = max(best, w.score)
		}
		return best
	}
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(strength(all[b]), strength(all[a])) })
	var kept [][]judged
	for _, i := range order {
		run := all[i]
		clash := slices.ContainsFunc(kept, func(k []judged) bool {
			return run[0].r.From < k[len(k)-1].r.To && k[0].r.From < run[len(run)-1].r.To
		})
		if !clash {
			kept = append(kept, run)
		}
	}
	slices.SortFunc(kept, func(a, b []judged) int { return cmp.Compare(a[0].r.From, b[0].r.From) })
	return kept
}
