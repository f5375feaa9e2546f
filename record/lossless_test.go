package record

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
)

// TestNoAttributeIsLost puts attributes with names that meet into record,
// resource and scope: each value is found in the row, under a name of its own.
func TestNoAttributeIsLost(t *testing.T) {
	pool := []string{
		"a", "status", "name", "_msg", "", "host.name", "service.name", "journal.seq",
		"attribute.a", "attribute.status", "attribute.attribute.status", "attribute.host.name", "attribute.",
		"resource.a", "resource.status", "resource.resource.a", "resource.host.name", "scope.attribute.a", "attributes_overflow",
	}
	c := new(Converter)
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 3))
		values := map[string]bool{}
		fill := func(m pcommon.Map, prefix string) {
			for range r.IntN(12) {
				m.PutStr(pool[r.IntN(len(pool))], fmt.Sprint(prefix, r.IntN(1000)))
			}
			for _, v := range m.All() {
				values[v.Str()] = true
			}
		}
		ld := plog.NewLogs()
		rl := ld.ResourceLogs().AppendEmpty()
		sl := rl.ScopeLogs().AppendEmpty()
		lr := sl.LogRecords().AppendEmpty()
		fill(lr.Attributes(), "own")
		fill(rl.Resource().Attributes(), "resource")
		fill(sl.Scope().Attributes(), "scope")
		row := c.Logs(ld, 1, received)[0]
		checkRow(t, row)
		got := map[string]bool{}
		for _, v := range fieldMap(t, row) {
			got[v] = true
		}
		for v := range values {
			if !got[v] {
				t.Fatalf("seed %d: the value %s is lost: %v", seed, v, row)
			}
		}
		// The record's own come back under the names that were given.
		l, err := ParseLog(stored(row))
		if err != nil {
			t.Fatal(err)
		}
		for name, v := range lr.Attributes().All() {
			if got := l.Attributes[name]; got != v.Str() && !isStreamField(name) {
				t.Fatalf("seed %d: attribute %q comes back as %q, want %q: %v", seed, name, got, v.Str(), row)
			}
		}
	}
}
