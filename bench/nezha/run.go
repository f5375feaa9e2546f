package nezha

import (
	"context"
	"fmt"
	"time"

	"inquest/record"
	"inquest/verdict"
)

// Options set what Run does.
type Options struct {
	// Cases limits the run to the cases for which it returns true; nil means all.
	Cases func(Case) bool
	// Modes to run; both when neither is set.
	Given, Found bool
	// Change mutates the data.
	Change Change
	// Engine are the engine's options; the zero value is what users get.
	Engine verdict.Options
	// Progress, when set, is called after each case with its verdict.
	Progress func(Row, *verdict.Verdict)
}

// uncertainty of an injection's time, as the data set's known traps say: the
// window of *given* mode begins so much before the minute that is told.
const uncertainty = 90 * time.Second

// length is the time from the minute of the injection to the end of the window:
// a fault lasts about three minutes.
const length = 3 * time.Minute

// Run measures the engine on the data set in dir.
func Run(ctx context.Context, dir string, opt Options) (Result, error) {
	if !opt.Given && !opt.Found {
		opt.Given, opt.Found = true, true
	}
	cases, err := Load(dir)
	if err != nil {
		return Result{}, err
	}
	sources, err := Sources(ctx, dir, opt.Change)
	if err != nil {
		return Result{}, err
	}
	res := Result{}
	for i := range cases {
		c := &cases[i]
		if opt.Cases != nil && !opt.Cases(*c) {
			continue
		}
		res.Rows = append(res.Rows, Row{Case: c.ID(), Service: c.Service, Type: c.Type, truth: c})
	}
	for date, src := range sources {
		if !hasDay(res.Rows, date) {
			delete(sources, date)
		}
		_ = src
	}
	for _, date := range sortedDates(sources) {
		if opt.Given {
			if err := runGiven(ctx, sources[date], date, opt, &res); err != nil {
				return Result{}, err
			}
		}
		if opt.Found {
			if err := runFound(ctx, sources[date], date, opt, &res); err != nil {
				return Result{}, err
			}
		}
		delete(sources, date)
	}
	res.total(opt)
	return res, nil
}

func runGiven(ctx context.Context, src *Source, date string, opt Options, res *Result) error {
	engine, err := verdict.New(src, opt.Engine)
	if err != nil {
		return err
	}
	from, to := src.Bounds()
	for i := range res.Rows {
		r := &res.Rows[i]
		if r.truth.Date != date {
			continue
		}
		told := r.truth.Minute().Add(opt.Change.Shift)
		q := verdict.Question{
			From: told.Add(-uncertainty), To: told.Add(length),
			Baseline: []verdict.Range{{From: from, To: to}},
		}
		start := time.Now()
		v, err := engine.Investigate(ctx, q)
		if err != nil {
			return fmt.Errorf("cannot judge case %s: %w", r.Case, err)
		}
		r.Seconds = time.Since(start).Seconds()
		r.Given = score(v, r.truth, opt.Change)
		if opt.Progress != nil {
			opt.Progress(*r, v)
		}
	}
	return nil
}

// answer lists the distinct services of a verdict, best first.
func answer(v *verdict.Verdict) []string {
	var out []string
	add := func(e record.Entity, instances []record.Entity) {
		name := ""
		switch e.Kind {
		case record.EntityService:
			name = e.Name
		case record.EntityPod:
			name = serviceOf(e.Name)
		default:
			name = e.String() // never the service of a case
		}
		for _, o := range out {
			if o == name {
				return
			}
		}
		out = append(out, name)
	}
	if v.Cause != nil {
		add(v.Cause.Entity, v.Cause.Instances)
	}
	for _, a := range v.Alternatives {
		add(a.Entity, nil)
	}
	return out
}
