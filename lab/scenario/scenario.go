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
	warmUp   = 5 * time.Minute
	usual    = 25 * time.Minute
	incident = 5 * time.Minute
	onset    = warmUp + usual
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
	Start    time.Time // of the world
	Truths   []fault.Truth
	// Question is what an engineer would ask: the minutes since the alert.
	Question verdict.Question
	checks   []system.Check
}

// epoch is when all worlds begin.
var epoch = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

// Run lets a scenario happen.
func (s Scenario) Run(o Options) *Run {
	opt := system.Options{Seed: s.Seed, Sizes: o.Sizes}
	if s.Seed%2 == 1 {
		opt.Sampled = 0.7
	}
	sys := system.New(opt)
	defer sys.Close()
	for _, p := range s.Parts {
		if prepare := p.Fault.Variants[p.Variant].Prepare; prepare != nil {
			prepare(sys)
		}
	}
	sys.World.Sim.After(onset, func() {
		for _, p := range s.Parts {
			p.Fault.Variants[p.Variant].Apply(sys)
		}
		if s.Decoy != nil {
			s.Decoy(sys)
		}
	})
	sys.World.Run(end)
	r := &Run{Recorder: sys.World.Rec, Start: epoch, checks: sys.Checks}
	for _, p := range s.Parts {
		r.Truths = append(r.Truths, p.Fault.Variants[p.Variant].Resolve(sys, p.Fault.ID))
	}
	// Alerts come late, and people round down.
	from := onset - time.Duration(s.Seed%4)*5*time.Second
	r.Question = verdict.Question{
		From: epoch.Add(from), To: epoch.Add(end),
		Baseline: []verdict.Range{{From: epoch.Add(warmUp), To: epoch.Add(from)}},
	}
	return r
}

// Source gives what was told to the engine.
func (r *Run) Source() (*sensor.Memory, error) {
	m, err := source.Memory(r.Recorder, r.Start)
	if err != nil {
		return nil, err
	}
	for _, c := range r.checks {
		m.AllNoted = append(m.AllNoted, r.noted(c))
	}
	return m, nil
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
