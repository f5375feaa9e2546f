// Package scenario lets the simulated system live for half an hour, with faults
// from a moment on or without, and keeps what it told of itself and what is true.
package scenario

import (
	"fmt"
	"time"

	"inquest/lab/fault"
	"inquest/lab/source"
	"inquest/lab/system"
	"inquest/lab/telemetry"
	"inquest/record"
	"inquest/sensor"
	"inquest/verdict"
)

// Scenario is one run.
type Scenario struct {
	Name string
	Seed uint64
	// Asked is the number that the scenario was asked for with, from which Seed
	// follows.
	Asked uint64
	// Parts are the faults and which variant of each; none in a healthy run.
	Parts []Part
	// Decoy is what goes on in a healthy run; may be nil.
	Decoy func(*system.System)
}

// Part is a fault in one of its variants.
type Part struct {
	Fault   fault.Fault
	Variant int
}

// Label names a part as FAULT/VARIANT.
func (p Part) Label() string { return p.Fault.ID + "/" + p.Fault.Variants[p.Variant].Name }

// Times of a run: the system comes to rest, then goes on as usual, then breaks.
const (
	WarmUp   = 5 * time.Minute
	usual    = 25 * time.Minute
	incident = 5 * time.Minute
	onset    = WarmUp + usual
	end      = onset + incident
)

// Options are common to all scenarios.
type Options struct {
	// Sizes are recorded lengths of generations; see [system.LoadSizes].
	Sizes []system.Sizes
}

// Run is what came of a scenario.
type Run struct {
	Recorder *telemetry.Recorder
	// Start is when the world began, Onset when the fault did (in a healthy run, what
	// is harmless), End when all was over.
	Start, Onset, End time.Time
	Truths            []fault.Truth
	// Question is what an engineer would ask: the minutes since the alert.
	Question verdict.Question
	checks   []system.Check
}

// Epoch is when all worlds begin, unless they are moved.
var Epoch = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

// NewSystem builds the scenario's world, prepared for what is to happen. The caller
// closes it.
func (s Scenario) NewSystem(o Options) *system.System {
	opt := system.Options{Seed: s.Seed, Sizes: o.Sizes}
	if s.Seed%2 == 1 {
		opt.Sampled = 0.7
	}
	sys := system.New(opt)
	for _, p := range s.Parts {
		if prepare := p.Fault.Variants[p.Variant].Prepare; prepare != nil {
			prepare(sys)
		}
	}
	return sys
}

// Apply lets the faults begin, or what is harmless, at the world's present time.
func (s Scenario) Apply(sys *system.System) {
	for _, p := range s.Parts {
		p.Fault.Variants[p.Variant].Apply(sys)
	}
	if s.Decoy != nil {
		s.Decoy(sys)
	}
}

// Truths are what an inquest should name, one for each fault.
func (s Scenario) Truths(sys *system.System) []fault.Truth {
	var out []fault.Truth
	for _, p := range s.Parts {
		out = append(out, p.Fault.Variants[p.Variant].Resolve(sys, p.Fault.ID))
	}
	return out
}

// Run lets a scenario happen.
func (s Scenario) Run(o Options) *Run {
	sys := s.NewSystem(o)
	defer sys.Close()
	sys.World.Sim.After(onset, func() { s.Apply(sys) })
	sys.World.Run(end)
	// Alerts come late, and people round down.
	from := onset - time.Duration(s.Seed%4)*5*time.Second
	return &Run{
		Recorder: sys.World.Rec, checks: sys.Checks, Truths: s.Truths(sys),
		Start: Epoch, Onset: Epoch.Add(onset), End: Epoch.Add(end),
		Question: verdict.Question{
			From: Epoch.Add(from), To: Epoch.Add(end),
			Baseline: []verdict.Range{{From: Epoch.Add(WarmUp), To: Epoch.Add(from)}},
		},
	}
}

// MoveTo has the run begin at another time; nothing else about it changes.
func (r *Run) MoveTo(start time.Time) {
	d := start.Sub(r.Start)
	move := func(all ...*time.Time) {
		for _, t := range all {
			*t = t.Add(d)
		}
	}
	move(&r.Start, &r.Onset, &r.End, &r.Question.From, &r.Question.To)
	for i := range r.Question.Baseline {
		move(&r.Question.Baseline[i].From, &r.Question.Baseline[i].To)
	}
}

// Duration is how long a run lasts, in its own time.
const Duration = end

// Source gives what was told to the engine.
func (r *Run) Source() (*sensor.Memory, error) {
	m, err := source.Memory(r.Recorder, r.Start)
	if err != nil {
		return nil, err
	}
	m.AllNoted = r.Noted()
	return m, nil
}

// Noted are the findings of the recorder's truth check, which looks at files and
// health addresses by itself: no telemetry brings them.
func (r *Run) Noted() []sensor.Noted {
	var out []sensor.Noted
	for _, c := range r.checks {
		out = append(out, r.noted(c))
	}
	return out
}

// noted is a check's result as the recorder's truth check writes it.
func (r *Run) noted(c system.Check) sensor.Noted {
	at := r.Start.Add(c.Time)
	from := at.Add(-time.Minute)
	middle := from.Add(30 * time.Second)
	f := record.Finding{
		Quadrant: record.QuadrantResources, Sensor: "truth", Kind: "path_symlink",
		Entity:  record.Entity{Kind: record.EntityModelVersion, Of: c.Service, Name: c.Version},
		Subject: "/models/current", From: from, To: at, Onset: &middle, OnsetErrorSeconds: 30,
		Direction: record.DirectionAppeared, Observed: 1, Strength: 1e-3,
		Text: fmt.Sprintf("/models/current of %s leads to %s", c.Service, c.Version),
	}
	if !c.Mismatch {
		f.Direction, f.Observed, f.Expected = record.DirectionVanished, 0, 1
	}
	return sensor.Noted{Finding: f, Service: c.Service}
}
