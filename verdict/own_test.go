package verdict

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"inquest/catalog"
	"inquest/record"
	"inquest/sensor"
	"inquest/sensor/kinds"
)

const ownFault = `
id: prompt-flood
title: Flood of prompts
mechanism: More prompts come than the model server can take up.
at: [service]
refines: [queue-buildup]
expect:
  - {quadrant: metrics, kinds: [running], where: self, direction: up, seen: 0.95, essential: true, text: "more requests run at once"}
  - {quadrant: traces, kinds: [self_time], where: self, direction: up, seen: 0.9, text: "each takes longer"}
remedy: Shed load.
check: As few run at once as before.
`

func withOwn(t *testing.T, text string) *catalog.Catalog {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "prompt-flood.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := catalog.WithFolders(dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestUsersFault: a fault of a user's folder is named, where without it its general
// fault is, and inherits what speaks for that.
func TestUsersFault(t *testing.T) {
	e, err := New(build("queue"), Options{Catalog: withOwn(t, ownFault)})
	if err != nil {
		t.Fatal(err)
	}
	v, err := e.Investigate(context.Background(), ask())
	if err != nil {
		t.Fatal(err)
	}
	if v.Cause == nil || v.Cause.Fault != "prompt-flood" || v.Cause.Entity != sensor.Service("model-server") || v.State != StateConfirmed {
		t.Fatalf("%s", show(v))
	}
	if v := judge(t, build("queue"), ask()); v.Cause.Fault != "queue-buildup" {
		t.Errorf("without it, the cause is %s", v.Cause.Fault)
	}
}

// TestRefineInherits: the positive pieces of the general fault count once, those that
// speak against it do not.
func TestRefineInherits(t *testing.T) {
	special := &catalog.Fault{ID: "special", Refines: []string{"general"}, Expect: []catalog.Expectation{
		{Quadrant: record.QuadrantTraces, Kinds: []string{"pause"}, Where: catalog.WhereSelf, Seen: 0.9},
		{Quadrant: record.QuadrantTraces, Kinds: []string{"stall"}, Where: catalog.WhereSelf, Seen: 0.9},
	}}
	general := &catalog.Fault{ID: "general", Expect: []catalog.Expectation{
		{Quadrant: record.QuadrantTraces, Kinds: []string{"pause"}, Where: catalog.WhereSelf, Seen: 0.5},       // has it, too
		{Quadrant: record.QuadrantMetrics, Kinds: []string{"latency"}, Where: catalog.WhereSelf, Seen: 0.5},    // inherited
		{Quadrant: record.QuadrantTraces, Kinds: []string{"self_time"}, Where: catalog.WhereSelf, Seen: 0.95},  // as usual
		{Quadrant: record.QuadrantMetrics, Kinds: []string{"never_seen"}, Where: catalog.WhereSelf, Seen: 0.9}, // not examined
	}}
	self := sensor.Service("s")
	f := &facts{byKind: map[factKey][]int{}, has: map[record.Quadrant]bool{record.QuadrantTraces: true, record.QuadrantMetrics: true}}
	for i, x := range []struct {
		kind string
		quad record.Quadrant
		p    float64
	}{{"pause", record.QuadrantTraces, 1e-5}, {"stall", record.QuadrantTraces, 1e-5}, {"latency", record.QuadrantMetrics, 1e-4}, {"self_time", record.QuadrantTraces, 1}} {
		f.findings = append(f.findings, record.Finding{Quadrant: x.quad, Kind: x.kind, Entity: self, Strength: x.p, Direction: record.DirectionUp})
		f.byKind[factKey{self, x.kind, x.quad}] = []int{i}
	}
	h := test(f, self, special)
	before := h.score
	h.refine(catalogOf(t, special, general), f)
	if got, want := h.score-before, weight(1e-4, 0.5); got < want-1e-9 || got > want+1e-9 {
		t.Errorf("inherits %g, want %g, the weight of the latency alone", got, want)
	}
	if len(h.pieces) != 3 || h.pieces[2].expect.Kinds[0] != "latency" {
		t.Errorf("%d pieces", len(h.pieces))
	}
}

// catalogOf returns a catalogue in which the identifiers lead to the given faults.
func catalogOf(t *testing.T, faults ...*catalog.Fault) *catalog.Catalog {
	t.Helper()
	c, err := catalog.Of(faults...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestKindsAreRegistered: what the sensors find in the world is in the list of kinds.
func TestKindsAreRegistered(t *testing.T) {
	seen := map[string]bool{}
	for _, fault := range []string{"queue", "exception", "memory"} {
		e, err := New(build(fault), Options{})
		if err != nil {
			t.Fatal(err)
		}
		all, err := e.Findings(context.Background(), ask())
		if err != nil {
			t.Fatal(err)
		}
		for i := range all {
			f := &all[i]
			seen[f.Kind] = true
			k, ok := kinds.Get(f.Kind, f.Quadrant)
			if !ok {
				t.Errorf("%s in %s, of %s, is not in sensor/kinds", f.Kind, f.Quadrant, f.Sensor)
			} else if k.Ways != (f.Peer != nil) && f.Peer != nil {
				t.Errorf("%s has a peer, and sensor/kinds does not say so", f.Kind)
			}
		}
	}
	if len(seen) < 30 {
		t.Errorf("%d kinds were seen", len(seen))
	}
}
