package nezha

import (
	"context"
	"fmt"
	"time"

	"inquest/verdict"
)

// runFound gives the engine one day's recording, from the first to the last
// trace, and nothing else. An incident belongs to a case when it overlaps the
// time of the case's fault; of several, the strongest is the answer.
func runFound(ctx context.Context, src *Source, date string, opt Options, res *Result) error {
	engine, err := verdict.New(src, opt.Engine)
	if err != nil {
		return err
	}
	from, to := src.Bounds()
	incidents, err := engine.Detect(ctx, verdict.Scan{From: from, To: to})
	if err != nil {
		return fmt.Errorf("cannot scan %s: %w", date, err)
	}
	best := map[int]float64{}
	for _, in := range incidents {
		a := Alarm{From: in.Window.From.Format(time.RFC3339), To: in.Window.To.Format(time.RFC3339)}
		if s := answer(in.Verdict); len(s) > 0 {
			a.Service = s[0]
		}
		if in.Verdict.Cause != nil {
			a.Fault = in.Verdict.Cause.Fault
		}
		for i := range res.Rows {
			r := &res.Rows[i]
			if r.truth.Date != date || !overlaps(in.Window, r.truth.At.Add(opt.Change.Shift)) {
				continue
			}
			a.Of = r.Case
			if old, ok := best[i]; !ok || in.Score > old {
				best[i] = in.Score
				r.Found = score(in.Verdict, r.truth, opt.Change)
			}
		}
		for _, u := range unlisted {
			at, err := time.Parse("2006-01-02 15:04", u.at)
			if err == nil && a.Of == "" && overlaps(in.Window, at.Add(opt.Change.Shift)) {
				a.Of = "unlisted " + u.at + " " + u.service
			}
		}
		res.Alarms = append(res.Alarms, a)
	}
	return nil
}

// overlaps reports whether a window touches a fault injected at t: it begins up
// to 90 s earlier (see the data set's known traps) and lasts about three minutes.
func overlaps(w verdict.Range, t time.Time) bool {
	return w.From.Before(t.Add(length)) && w.To.After(t.Add(-uncertainty))
}
