package kinds

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"inquest/admit/truth"
	"inquest/record"
	"inquest/sensor/logs"
	"inquest/sensor/resources"
)

// TestEachIsSound also sees that each says something.
func TestEachIsSound(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range All() {
		id := k.Name + " " + string(k.Quadrant)
		if seen[id] {
			t.Errorf("%s is there twice", id)
		}
		seen[id] = true
		if !slices.Contains(record.Quadrants, k.Quadrant) || len(k.Text) < 8 || len(k.Needs) < 4 || !strings.HasSuffix(k.Text, ".") || !strings.HasSuffix(k.Needs, ".") {
			t.Errorf("%+v", k)
		}
	}
	if len(seen) < 150 {
		t.Errorf("%d kinds", len(seen))
	}
	for _, r := range truth.Reasons() {
		if len(checked[r].quads) == 0 {
			t.Errorf("reason %s of the truth check is not in checked (tables.go)", r)
		}
	}
}

// TestAllConstants reads the sources of the sensors: each constant named Kind… is in
// the list, so that a new sensor's kind cannot be left out.
func TestAllConstants(t *testing.T) {
	parts := []string{resources.KindAtLimit, resources.KindTrend, resources.KindSawtooth, logs.KindMessage}
	found := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		// Package coverage makes a report of its own, no findings.
		if d.IsDir() && (d.Name() == "coverage" || d.Name() == "kinds") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			for name, value := range named(n) {
				found++
				if len(Quadrants(value)) == 0 && !slices.Contains(parts, value) {
					t.Errorf("%s: %s (%q) is not in sensor/kinds: add it to plain.go", path, name, value)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 40 {
		t.Errorf("%d constants were found", found)
	}
}

// named returns what a node gives to names that begin with Kind, or to fields of that
// name, as a literal.
func named(n ast.Node) map[string]string {
	out := map[string]string{}
	add := func(name string, e ast.Expr) {
		if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING && strings.HasPrefix(name, "Kind") {
			out[name], _ = strconv.Unquote(lit.Value)
		}
	}
	switch n := n.(type) {
	case *ast.ValueSpec:
		for i, id := range n.Names {
			if i < len(n.Values) {
				add(id.Name, n.Values[i])
			}
		}
	case *ast.KeyValueExpr:
		if id, ok := n.Key.(*ast.Ident); ok {
			add(id.Name, n.Value)
		}
	}
	return out
}

func TestLookUp(t *testing.T) {
	f := func(name string, want ...record.Quadrant) {
		t.Helper()
		if got := Quadrants(name); !slices.Equal(got, want) {
			t.Errorf("%s is made in %v, want %v", name, got, want)
		}
	}
	f("self_time", record.QuadrantTraces)
	f("cpu", record.QuadrantResources)
	f("cpu_at_limit", record.QuadrantResources)
	f("cache_usage_at_limit", record.QuadrantResources)
	f("latency_sawtooth", record.QuadrantMetrics)
	f("gpu_memory_trend", record.QuadrantResources)
	f("latency_trend")
	f("message_gpu_oom", record.QuadrantLogs)
	f("message_change/rollout")
	f("input_tokens", record.QuadrantLogs, record.QuadrantMetrics, record.QuadrantTraces)
	f("change", record.QuadrantLogs, record.QuadrantMetrics, record.QuadrantTraces)
	f("version_mismatch", record.QuadrantLogs, record.QuadrantResources)
	f("limit")
	if k, ok := Get("gap", record.QuadrantTraces); !ok || !k.Ways {
		t.Errorf("%+v", k)
	}
	if _, ok := Get("gap", record.QuadrantLogs); ok {
		t.Error("gap is no kind of logs")
	}
}

func TestNear(t *testing.T) {
	f := func(name string, q record.Quadrant, want ...string) {
		t.Helper()
		if got := Near(name, q); !slices.Equal(got, want) {
			t.Errorf("near %s: %q, want %q", name, got, want)
		}
	}
	f("self_tim", record.QuadrantTraces, "self_time")
	f("messages_oom_kill", record.QuadrantLogs, "message_oom_kill")
	f("nothing_like_it_at_all", record.QuadrantLogs)
	f("oom", record.QuadrantResources, "oom_kill")
	f("throttling", record.QuadrantResources, "cpu_throttling", "gpu_throttling")
}
