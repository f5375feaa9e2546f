package export

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"inquest/lab/scenario"
)

func write(t *testing.T, dir string) {
	t.Helper()
	s, err := scenario.Find("cpu-fallback", 4)
	if err != nil {
		t.Fatal(err)
	}
	if err := Write(s, s.Run(scenario.Options{}), dir); err != nil {
		t.Fatal(err)
	}
}

func TestWrite(t *testing.T) {
	a, b := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
	write(t, a)
	write(t, b)
	for _, name := range []string{"traces.jsonl", "logs.jsonl", "metrics.jsonl", "truth.json"} {
		x, err := os.ReadFile(filepath.Join(a, name))
		if err != nil {
			t.Fatal(err)
		}
		y, err := os.ReadFile(filepath.Join(b, name))
		if err != nil {
			t.Fatal(err)
		}
		if len(x) == 0 || !bytes.Equal(x, y) {
			t.Errorf("%s: %d and %d bytes, want the same from the same seed", name, len(x), len(y))
		}
		n := 0
		for l := range bytes.Lines(x) {
			switch name {
			case "traces.jsonl":
				td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(l)
				if err != nil {
					t.Fatal(err)
				}
				n += td.SpanCount()
			case "logs.jsonl":
				ld, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs(l)
				if err != nil {
					t.Fatal(err)
				}
				n += ld.LogRecordCount()
			case "metrics.jsonl":
				md, err := (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics(l)
				if err != nil {
					t.Fatal(err)
				}
				n += md.DataPointCount()
			default:
				n = 1000
			}
		}
		if n < 1000 {
			t.Errorf("%s has %d records", name, n)
		}
	}
	raw, err := os.ReadFile(filepath.Join(a, "truth.json"))
	if err != nil {
		t.Fatal(err)
	}
	var truth Truth
	if err := json.Unmarshal(raw, &truth); err != nil {
		t.Fatal(err)
	}
	if len(truth.Causes) != 1 || truth.Causes[0].Faults[0] != "cpu-fallback" || !truth.Onset.After(truth.Start) {
		t.Errorf("truth is %+v", truth)
	}
	s, _ := scenario.Find("cpu-fallback", 4)
	if err := Write(s, nil, a); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("a folder in use gave %v", err)
	}
}
