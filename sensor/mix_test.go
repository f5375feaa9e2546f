package sensor

import (
	"fmt"
	"testing"

	"inquest/record"
)

// versions builds slices in which a service has so many visits each, of which each
// value was chosen so often.
func versions(slices int, visits float64, chosen map[string]int) []*Profile {
	var out []*Profile
	for i := range slices {
		p := NewProfile(Range{int64(i) * 1e9, int64(i+1) * 1e9})
		p.Units[Unit{record.QuadrantTraces, Service("s")}] = visits
		for v, n := range chosen {
			for range n {
				p.Mix(mixKey).Add(v, record.Item{TraceID: v})
			}
		}
		out = append(out, p)
	}
	return out
}

var mixKey = Key{Quadrant: record.QuadrantTraces, Sensor: "test", Kind: "k", Entity: Service("s"), Subject: "version", Unit: "1"}

func compared(t *testing.T, base []*Profile, inc *Profile) map[string]Compared {
	t.Helper()
	out := map[string]Compared{}
	for _, c := range Compare(base, inc) {
		out[c.Subject] = c
	}
	return out
}

func TestMixNewValueAppearsAndOldVanishes(t *testing.T) {
	base := versions(20, 50, map[string]int{"v1": 50})
	got := compared(t, base, versions(1, 50, map[string]int{"v2": 50})[0])
	f := func(subject string, dir record.Direction, observed, expected float64) {
		t.Helper()
		c := got[subject]
		if c.Direction != dir || c.Strength > 1e-6 || c.Observed != observed || c.Expected < expected-0.01 || c.Expected > expected+0.01 {
			t.Errorf("%s: %s, %v, observed %v, expected %v", subject, c.Direction, c.Strength, c.Observed, c.Expected)
		}
	}
	f("version=v2", record.DirectionAppeared, 1, 0)
	f("version=v1", record.DirectionVanished, 0, 1)
	if len(got) != 2 {
		t.Errorf("%d findings, want 2", len(got))
	}
	if items := got["version=v2"].Evidence[0].Items; len(items) != 0 {
		t.Errorf("items without a time are evidence: %v", items)
	}
}

func TestMixUnchangedIsWeak(t *testing.T) {
	base := versions(20, 50, map[string]int{"v1": 40, "v2": 10})
	for s, c := range compared(t, base, versions(1, 50, map[string]int{"v1": 41, "v2": 9})[0]) {
		if c.Strength < 0.1 {
			t.Errorf("%s: %v", s, c.Strength)
		}
	}
}

func TestMixThatIsNotMadeAnyMore(t *testing.T) {
	// An adapter is named before, and in the incident none: requests go to the base model.
	base := versions(20, 50, map[string]int{"v1": 50})
	c := compared(t, base, versions(1, 50, nil)[0])["version=v1"]
	if c.Direction != record.DirectionVanished || c.Strength > 1e-6 {
		t.Errorf("%s %v", c.Direction, c.Strength)
	}
	// Without requests nothing can be said.
	if got := compared(t, base, versions(1, 0, nil)[0]); len(got) != 0 {
		t.Errorf("without visits: %v", got)
	}
}

func TestMixThatIsNew(t *testing.T) {
	base := versions(20, 50, nil)
	c := compared(t, base, versions(1, 50, map[string]int{"v1": 50})[0])["version=v1"]
	if c.Direction != record.DirectionAppeared || c.Strength > 1e-6 {
		t.Errorf("%s %v", c.Direction, c.Strength)
	}
}

func TestMixOfManyValues(t *testing.T) {
	many := map[string]int{}
	for i := range 100 {
		many[fmt.Sprint("v", i)] = 1
	}
	got := compared(t, versions(20, 100, many), versions(1, 100, many)[0])
	if len(got) != valueCap+1 {
		t.Errorf("%d findings, want %d and one for the others", len(got), valueCap)
	}
}

func TestMarkCountsUnitsWithoutIt(t *testing.T) {
	profile := func(hits int) *Profile {
		p := versions(1, 50, nil)[0]
		for range hits {
			p.Mark(mixKey, true, record.Item{})
		}
		return p
	}
	var base []*Profile
	for range 20 {
		base = append(base, profile(0))
	}
	c := compared(t, base, profile(25))["version"]
	if c.Direction != record.DirectionAppeared || c.Observed != 0.5 || c.Strength > 1e-6 {
		t.Errorf("%s %v %v", c.Direction, c.Observed, c.Strength)
	}
}

func TestMergeKeepsMixes(t *testing.T) {
	p := Merge(versions(3, 10, map[string]int{"v1": 4}))
	if m := p.Mixes[mixKey]; m.N != 12 || m.Values["v1"].K != 12 {
		t.Errorf("%+v", m)
	}
	if n := p.Units[Unit{record.QuadrantTraces, Service("s")}]; n != 30 {
		t.Errorf("%v units, want 30", n)
	}
}

func TestAttributeQuery(t *testing.T) {
	f := func(subject, want string) {
		t.Helper()
		if got := attributeQuery(subject); got != want {
			t.Errorf("%s: %s, want %s", subject, got, want)
		}
	}
	f("lora.adapter=a1", `"lora.adapter":"a1"`)
	f("lora.adapter=*", `"lora.adapter":*`)
	f("features.unseen", `("features.unseen":* or "ai.features.unseen":*)`)
}
