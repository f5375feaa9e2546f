package logs

import (
	"context"
	"strings"
	"testing"
	"unicode/utf8"

	"inquest/sensor"
)

func measure(t *testing.T, logs ...sensor.Log) *sensor.Profile {
	t.Helper()
	w, err := sensor.Gather(context.Background(), &sensor.Memory{AllLogs: logs}, sensor.Range{From: 0, To: 1e12}, sensor.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	p := sensor.NewProfile(w.Range)
	Templates{}.Measure(w, p)
	return p
}

func TestTemplates(t *testing.T) {
	p := measure(
		t,
		sensor.Log{Time: 1e9, Service: "s", Body: "took 5 ms", Severity: 9},
		sensor.Log{Time: 2e9, Service: "s", Body: "took 7 ms", Severity: 9}, // same burst
		sensor.Log{Time: 30e9, Service: "s", Body: "took 9 ms", Severity: 9},
		sensor.Log{Time: 30e9, Service: "s", Body: "disk full", Severity: 17},
		sensor.Log{Time: 31e9, Node: "n1", Body: "kernel: oom-kill", Severity: 13},
	)
	got := map[string]float64{}
	for k, h := range p.Rates {
		got[k.Entity.String()+" "+k.Kind+" "+k.Subject] = h.K
	}
	for k, want := range map[string]float64{
		"service:s log_rate took <*> ms": 2, "service:s error_logs disk full": 1,
		"node:n1 log_rate kernel: oom-kill": 1,
	} {
		if got[k] != want {
			t.Errorf("%s: %v, want %v (all: %v)", k, got[k], want, got)
		}
	}
	if len(got) != 3 {
		t.Errorf("%d templates, want 3: %v", len(got), got)
	}
}

func TestItemIsCutBetweenCharacters(t *testing.T) {
	i := Item(&sensor.Log{Body: strings.Repeat("ü", 400)})
	if len(i.Text) > 300 || !utf8.ValidString(i.Text) || len(i.Text) < 290 {
		t.Errorf("text of %d bytes, valid %v", len(i.Text), utf8.ValidString(i.Text))
	}
}
