package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"inquest/record"
	"inquest/verdict"
)

func testVerdict() *verdict.Verdict {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	chat := record.Entity{Kind: record.EntityService, Name: "chat"}
	value := 12.5
	return &verdict.Verdict{
		State: verdict.StateConfirmed, Summary: "Confirmed: slow code at service chat.",
		Window:    verdict.Range{From: at, To: at.Add(time.Minute)},
		Cause:     &verdict.Cause{Entity: chat, Fault: "slow-code", Title: "Slow code", Findings: []string{"f1", "f2"}},
		Onset:     &verdict.Onset{Time: at, ErrorSeconds: 5},
		Quadrants: []record.Quadrant{record.QuadrantLogs, record.QuadrantTraces}, Confidence: 0.97,
		Findings: []record.Finding{
			{
				ID: "f1", Quadrant: record.QuadrantTraces, Kind: "self_time", Text: "self time rose", Observed: 2e9, Expected: 1e8, Unit: "ns", Effect: 9, Strength: 1e-6,
				Evidence: []record.Reference{{Language: record.LanguageLogsQL, Query: `name:="POST /chat"`, From: at, To: at, Items: []record.Item{{Time: at, TraceID: "abc", Value: &value}}}},
			},
			{ID: "f2", Quadrant: record.QuadrantLogs, Kind: "new_template", Text: "new: <script>alert(1)</script> \x1b[2J | `x` ```", Strength: 0.001},
			{ID: "f3", Quadrant: record.QuadrantMetrics, Kind: "traffic", Text: "an innocent peak", Strength: 0.04},
		},
		Chain:        []verdict.Effect{{Entity: chat, Text: "answers late", Findings: []string{"f1"}}},
		Alternatives: []verdict.Hypothesis{{Entity: chat, Fault: "network-delay", Title: "Network", Probability: 0.02, Against: "no gap"}},
		Examined:     []verdict.Examined{{Source: "records", Quadrant: record.QuadrantLogs, Items: 7}},
		NotExamined:  []verdict.Missing{{Source: "samples", Quadrant: record.QuadrantResources, Reason: "no series"}},
		Clocks: []verdict.Clock{
			{Entity: record.Entity{Kind: record.EntityNode, Name: "n2"}, OffsetMs: -1500.25, ErrorMs: 0.5},
			{Entity: record.Entity{Kind: record.EntityNode, Name: "n3"}, Note: "not corrected: alone"},
		},
		NextChecks: []string{"Look at the profile."},
	}
}

func write(t *testing.T, v *verdict.Verdict, format string) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, v, format); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestWriteHoldsAll(t *testing.T) {
	for _, format := range []string{"text", "markdown", "html"} {
		got := strings.NewReplacer("\\", "", "&#34;", `"`, "&#43;", "+").Replace(write(t, testVerdict(), format))
		for _, want := range []string{
			"confirmed", "Slow code", "service chat", "97 %", "± 5 s", "self time rose", "2s instead of 100ms", "trace=abc", `name:="POST /chat"`,
			"an innocent peak", "Also seen", "answers late", "no gap", "NOT examined: resources of samples: no series", "7 items", "node n2: -1500.2 ms ± 0.5 ms", "node n3: not corrected: alone", "Look at the profile.", "None was found",
		} {
			if !strings.Contains(got, want) && !strings.Contains(strings.ToLower(got), want) {
				t.Errorf("%s lacks %q", format, want)
			}
		}
		if i, j := strings.Index(got, "self time rose"), strings.Index(got, "an innocent peak"); i > j {
			t.Errorf("%s: what is no evidence stands before the evidence", format)
		}
	}
}

// Text of senders must not reach a terminal or a browser as more than text.
func TestWriteIsSafe(t *testing.T) {
	if got := write(t, testVerdict(), "text"); strings.Contains(got, "\x1b") {
		t.Error("text holds an escape sequence")
	}
	if got := write(t, testVerdict(), "html"); strings.Contains(got, "<script>") {
		t.Error("html holds a script")
	}
	if got := write(t, testVerdict(), "markdown"); strings.Contains(got, "<script>") || strings.Contains(got, "\x1b") {
		t.Error("markdown holds markup of a sender")
	}
}

func TestWriteJSON(t *testing.T) {
	var back verdict.Verdict
	if err := json.Unmarshal([]byte(write(t, testVerdict(), "json")), &back); err != nil {
		t.Fatal(err)
	}
	if back.State != verdict.StateConfirmed || len(back.Findings) != 3 {
		t.Errorf("read back %+v", back)
	}
}

func TestWriteOtherStates(t *testing.T) {
	v := testVerdict()
	v.State, v.Quadrants = verdict.StateSuspected, v.Quadrants[:1]
	if got := write(t, v, "text"); !strings.Contains(got, "second quadrant") {
		t.Error("a suspected verdict does not say what is missing")
	}
	empty := &verdict.Verdict{State: verdict.StateInconclusive}
	for _, format := range Formats {
		write(t, empty, format)
	}
	if err := Write(&bytes.Buffer{}, empty, "pdf"); err == nil {
		t.Error("an unknown form was taken")
	}
}

func TestQuantity(t *testing.T) {
	f := func(v float64, unit, want string) {
		t.Helper()
		if got := quantity(v, unit); got != want {
			t.Errorf("%v %s: got %s, want %s", v, unit, got, want)
		}
	}
	f(1.5e6, "ns", "1.5ms")
	f(3<<20, "By", "3 MiB")
	f(-2048, "By", "-2 KiB")
	f(0.25, "1", "0.25")
	f(12.34567, "s", "12.35 s")
	f(7, "{request}/s", "7 {request}/s")
}
