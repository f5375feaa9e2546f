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
expect: [{quadrant: logs, kinds: [error_logs], where: self, direction: up, seen: 0.5, text: t}]
remedy: r
check: c
`

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
