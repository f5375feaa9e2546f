// Package lab measures the engine's verdicts on the laboratory's scenarios: single
// faults, pairs, healthy runs, and single faults with one quadrant withheld.
package lab

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"inquest/catalog"
	"inquest/lab/fault"
	"inquest/lab/scenario"
	"inquest/lab/system"
	"inquest/record"
	"inquest/sensor"
	"inquest/verdict"
)

// Options say what is measured.
type Options struct {
	// From is the first seed, Seeds how many.
	From, Seeds uint64
	// Sizes are recorded lengths of requests; nil for the laboratory's own.
	Sizes []system.Sizes
	// Catalog is nil for the one that comes with inquest.
	Catalog *catalog.Catalog
	// Only leaves the scenarios for which it returns true; nil leaves all.
	Only func(scenario.Scenario) bool
	// Kinds leaves some of single, pairs, healthy and withheld; empty leaves all.
	Kinds []string
	// Progress is called after each verdict, one at a time; may be nil.
	Progress func(Row, *verdict.Verdict)
	// Findings is called with all findings of each scenario; may be nil.
	Findings func(Row, []record.Finding)
	// Workers is how many scenarios run at once; as many as processors when zero.
	Workers int
}

// Row is one verdict.
type Row struct {
	Kind     string `json:"kind"` // single, pair, healthy, withheld
	Scenario string `json:"scenario"`
	Seed     uint64 `json:"seed"`
	Withheld string `json:"withheld,omitempty"`
	State    string `json:"state"`
	Fault    string `json:"fault,omitempty"`
	Entity   string `json:"entity,omitempty"`
	// Rank is the place of the right cause among cause and alternatives, from 1; 0
	// when it is not there.
	Rank    int  `json:"rank"`
	Located bool `json:"located"` // the entity is right, whatever the fault
	// Also are further causes that were named, AlsoWrong how many of them are none.
	Also      []string `json:"also,omitempty"`
	AlsoWrong int      `json:"also_wrong,omitempty"`
	// Found is how many of the faults the causes name.
	Found     int     `json:"found"`
	Both      bool    `json:"both,omitempty"`
	Quadrants int     `json:"quadrants"`
	Told      bool    `json:"told,omitempty"` // that the withheld quadrant is missing
	Seconds   float64 `json:"seconds"`
}

// Run measures. The order of the rows does not depend on how many workers there are.
func Run(ctx context.Context, o Options) (*Result, error) {
	var all []job
	want := func(kind string) bool { return len(o.Kinds) == 0 || slices.Contains(o.Kinds, kind) }
	for i := range o.Seeds {
		seed := o.From + i
		for k, sc := range scenario.Singles(seed) {
			if want("single") || want("withheld") {
				all = append(all, job{kind: "single", sc: sc, single: want("single"), withhold: want("withheld"), turn: int(seed) + k})
			}
		}
		if want("pairs") {
			for _, sc := range scenario.Pairs(seed) {
				all = append(all, job{kind: "pair", sc: sc})
			}
		}
		if want("healthy") {
			for _, sc := range scenario.Healthy(seed) {
				all = append(all, job{kind: "healthy", sc: sc})
			}
		}
	}
	if o.Only != nil {
		all = slices.DeleteFunc(all, func(j job) bool { return !o.Only(j.sc) })
	}
	if len(all) == 0 {
		return nil, errors.New("no scenario is left: see inquest lab list")
	}
	rows := make([][]Row, len(all))
	errs := make([]error, len(all))
	var mu sync.Mutex
	var wg sync.WaitGroup
	next := make(chan int)
	workers := o.Workers
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	for range workers {
		wg.Go(func() {
			for i := range next {
				rows[i], errs[i] = all[i].judge(ctx, o, func(r Row, v *verdict.Verdict) {
					if o.Progress != nil {
						mu.Lock()
						defer mu.Unlock()
						o.Progress(r, v)
					}
				})
			}
		})
	}
	for i := range all {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	wg.Wait()
	if err := errors.Join(append(errs, context.Cause(ctx))...); err != nil {
		return nil, err
	}
	return summarise(slices.Concat(rows...)), nil
}

type job struct {
	kind             string
	sc               scenario.Scenario
	single, withhold bool
	turn             int
}

func (j job) judge(ctx context.Context, o Options, done func(Row, *verdict.Verdict)) ([]Row, error) {
	run := j.sc.Run(scenario.Options{Sizes: o.Sizes})
	src, err := run.Source()
	if err != nil {
		return nil, err
	}
	var out []Row
	judge := func(kind string, src *sensor.Memory, withheld record.Quadrant) error {
		start := time.Now()
		e, err := verdict.New(src, verdict.Options{Catalog: o.Catalog})
		if err != nil {
			return err
		}
		v, err := e.Investigate(ctx, run.Question)
		if err != nil {
			return fmt.Errorf("%s with seed %d: %w", j.sc.Name, j.sc.Seed, err)
		}
		r := score(kind, j.sc, run.Truths, v)
		r.Seconds = time.Since(start).Seconds()
		if withheld != "" {
			r.Withheld = string(withheld)
			r.Told = slices.ContainsFunc(v.NotExamined, func(m verdict.Missing) bool { return m.Quadrant == withheld })
		}
		out = append(out, r)
		done(r, v)
		if o.Findings != nil {
			all, err := e.Findings(ctx, run.Question)
			if err != nil {
				return err
			}
			o.Findings(r, all)
		}
		return nil
	}
	if j.kind != "single" || j.single {
		if err := judge(j.kind, src, ""); err != nil {
			return nil, err
		}
	}
	if j.withhold {
		q := record.Quadrants[j.turn%len(record.Quadrants)]
		if err := judge("withheld", withhold(src, q), q); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// withhold is the source without one quadrant.
func withhold(m *sensor.Memory, q record.Quadrant) *sensor.Memory {
	out := *m
	out.Errors = map[record.Quadrant]error{}
	away := errors.New("withheld")
	switch q {
	case record.QuadrantMetrics, record.QuadrantResources:
		// Both are series: those of the one go.
		out.AllSeries = nil
		for _, s := range m.AllSeries {
			base := s
			class := base.About().Class
			if class.Quadrant() != q {
				out.AllSeries = append(out.AllSeries, s)
			}
		}
		if q == record.QuadrantResources {
			out.AllNoted = nil
		}
	default:
		out.Errors[q] = away
	}
	return &out
}

func score(kind string, sc scenario.Scenario, truths []fault.Truth, v *verdict.Verdict) Row {
	r := Row{Kind: kind, Scenario: sc.Name, Seed: sc.Seed, State: string(v.State), Quadrants: len(v.Quadrants)}
	type named struct {
		fault string
		at    record.Entity
	}
	var all []named
	if v.Cause != nil {
		r.Fault, r.Entity = v.Cause.Fault, v.Cause.Entity.String()
		all = append(all, named{v.Cause.Fault, v.Cause.Entity})
	}
	for i := range v.Also {
		c := &v.Also[i]
		all = append(all, named{c.Fault, c.Entity})
		r.Also = append(r.Also, c.Fault+" at "+c.Entity.String())
	}
	causes := len(all)
	for _, a := range v.Alternatives {
		all = append(all, named{a.Fault, a.Entity})
	}
	right := func(n named) bool {
		return slices.ContainsFunc(truths, func(t fault.Truth) bool { return t.Names(n.fault, n.at) })
	}
	for i, n := range all {
		if right(n) && r.Rank == 0 {
			r.Rank = i + 1
		}
		if 0 < i && i < causes && !right(n) {
			r.AlsoWrong++
		}
	}
	for _, t := range truths {
		if slices.ContainsFunc(all[:causes], func(n named) bool { return t.Names(n.fault, n.at) }) {
			r.Found++
		}
		r.Located = r.Located || len(all) > 0 && t.At(all[0].at)
	}
	r.Both = len(truths) > 1 && r.Found == len(truths)
	return r
}
