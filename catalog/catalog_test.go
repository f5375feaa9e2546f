package catalog

import (
	"strings"
	"testing"
	"testing/fstest"
)

func TestDefaultIsSound(t *testing.T) {
	c, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{
		"cpu-contention", "network-delay", "code-exception", "early-return", "slow-code",
		"memory-pressure", "dependency-down", "error-burst", "traffic-surge", "unknown",
	} {
		if _, ok := c.Get(id); !ok {
			t.Errorf("fault %s is missing", id)
		}
	}
}

const good = `
id: x
title: X
mechanism: m
at: [service]
expect: [{quadrant: logs, kinds: [k], where: self, direction: up, seen: 0.5, text: t}]
remedy: r
check: c
`

func TestParse(t *testing.T) {
	f := func(old, with, want string) {
		t.Helper()
		_, err := Parse([]byte(strings.Replace(good, old, with, 1)))
		if want == "" && err != nil {
			t.Errorf("%q: %v", with, err)
		}
		if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: error %v, want %q", with, err, want)
		}
	}
	f("", "", "")
	f("id: x", "id: X Y", "small letters")
	f("title: X", "title: ''", "title is empty")
	f("[service]", "[]", "at is empty")
	f("quadrant: logs", "quadrant: smell", "unknown quadrant")
	f("kinds: [k]", "kinds: []", "kinds is empty")
	f("where: self", "where: there", "unknown where")
	f("direction: up", "direction: sideways", "direction")
	f("seen: 0.5", "seen: 1", "not between 0 and 1")
	f("seen: 0.5", "seen: 0.5, symptom: true", "all evidence is symptoms")
	f("remedy: r", "remedies: r", "not found in type")
	f(good, "", "not a fault")
}

func TestLoad(t *testing.T) {
	own := fstest.MapFS{"x.yaml": {Data: []byte(good)}}
	c, err := Load(own)
	if err != nil || len(c.Faults) != 1 {
		t.Fatalf("Load: %v, %v", c, err)
	}
	other := fstest.MapFS{"x.yaml": {Data: []byte(strings.Replace(good, "title: X", "title: Y", 1))}}
	if c, err = Load(own, other); err != nil || c.Faults[0].Title != "Y" {
		t.Errorf("a later file does not replace: %v %v", c, err)
	}
	if _, err := Load(fstest.MapFS{"y.yaml": {Data: []byte(good)}}); err == nil {
		t.Error("a file with another name than its id is taken")
	}
	if _, err := Load(fstest.MapFS{}); err == nil {
		t.Error("an empty catalogue is taken")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(good))
	f.Fuzz(func(_ *testing.T, raw []byte) { _, _ = Parse(raw) })
}
