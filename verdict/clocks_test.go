package verdict

import (
	"encoding/json"
	"math"
	"slices"
	"testing"
	"time"

	"inquest/record"
	"inquest/sensor"
)

// apart puts each service of a world on a host with a clock of its own. With
// nodes the host is a node, else nothing but the pod is told.
func apart(src *sensor.Memory, nodes bool, skew func(service string, at time.Time) time.Duration) {
	host := func(service string) string {
		if nodes {
			return "host-of-" + service
		}
		return ""
	}
	for i := range src.AllSpans {
		s := &src.AllSpans[i]
		s.Node = host(s.Service)
		s.Start += int64(skew(s.Service, sensor.Time(s.Start)))
	}
	for i := range src.AllLogs {
		l := &src.AllLogs[i]
		l.Node = host(l.Service)
		l.Time += int64(skew(l.Service, sensor.Time(l.Time)))
	}
}

var skews = map[string]time.Duration{
	"gateway": -1900 * time.Millisecond, "chat-api": 1400 * time.Millisecond,
	"retriever": -300 * time.Millisecond, "model-server": 1990 * time.Millisecond,
}

func constant(service string, _ time.Time) time.Duration { return skews[service] }

// A skew of seconds changes no verdict.
func TestSkewedClocksSameVerdict(t *testing.T) {
	for _, fault := range []string{"slow vector store", "queue", "bad model", "cpu", "network", "exception", "memory", "node", "surge", ""} {
		for _, nodes := range []bool{true, false} {
			plain, skewed := build(fault), build(fault)
			apart(plain, nodes, func(string, time.Time) time.Duration { return 0 })
			apart(skewed, nodes, constant)
			want, got := judge(t, plain, ask()), judge(t, skewed, ask())
			if got.State != want.State {
				t.Errorf("%q with nodes %v: %s with skewed clocks, %s without", fault, nodes, got.Summary, want.Summary)
			}
			if (got.Cause == nil) != (want.Cause == nil) {
				t.Fatalf("%q with nodes %v: %s with skewed clocks, %s without", fault, nodes, got.Summary, want.Summary)
			}
			if got.Cause != nil && (got.Cause.Entity != want.Cause.Entity || got.Cause.Fault != want.Cause.Fault) {
				t.Errorf("%q with nodes %v: %s with skewed clocks, %s without", fault, nodes, got.Summary, want.Summary)
			}
			if got.Onset != nil && got.Onset.Time.Sub(want.Onset.Time).Abs() > 5*time.Second {
				t.Errorf("%q: onset %v with skewed clocks, %v without", fault, got.Onset.Time, want.Onset.Time)
			}
			if len(want.Clocks) != 0 {
				t.Errorf("%q: clocks that agree are told as %+v", fault, want.Clocks)
			}
			checkClocks(t, got.Clocks, nodes)
		}
	}
}

// checkClocks compares the offsets told with the skews, all against one of them.
func checkClocks(t *testing.T, got []Clock, nodes bool) {
	t.Helper()
	if len(got) != 3 {
		t.Errorf("clocks %+v, want all but the reference", got)
		return
	}
	for _, service := range []string{"gateway", "chat-api", "model-server"} {
		e := sensor.Pod(service + "-7d9f4-x2k8p")
		if nodes {
			e = sensor.NodeEntity("host-of-" + service)
		}
		// The two in the middle are retriever and chat-api.
		ref := "retriever"
		if service == "chat-api" || !slices.ContainsFunc(got, func(c Clock) bool { return c.Entity == e }) {
			continue
		}
		if slices.ContainsFunc(got, func(c Clock) bool {
			return c.Entity == sensor.NodeEntity("host-of-retriever") || c.Entity == sensor.Pod("retriever-7d9f4-x2k8p")
		}) {
			ref = "chat-api"
		}
		want := (skews[service] - skews[ref]).Seconds() * 1000
		for _, c := range got {
			if c.Entity == e && (math.Abs(c.OffsetMs-want) > 10 || math.Abs(c.OffsetMs-want) > c.ErrorMs) {
				t.Errorf("%s is off by %v ± %v ms, want %v", e, c.OffsetMs, c.ErrorMs, want)
			}
		}
	}
}

// What is on the way is what is on the way, not what two clocks make of it.
func TestNegativeGapsVanish(t *testing.T) {
	src := build("")
	apart(src, true, constant)
	w, err := sensor.Gather(t.Context(), src, rangeOf(start, start.Add(quiet)), sensor.DefaultLimits, record.QuadrantTraces, record.QuadrantLogs)
	if err != nil {
		t.Fatal(err)
	}
	crossing := 0
	for _, tr := range w.Traces {
		for _, n := range tr.Nodes {
			if n.Above == nil || n.Above.Service == n.Service {
				continue
			}
			crossing++
			if n.Start < n.Above.Start || n.End() > n.Above.End() {
				t.Fatalf("%s lies outside of its caller %s by %v and %v", n.Name, n.Above.Name,
					time.Duration(n.Above.Start-n.Start), time.Duration(n.End()-n.Above.End()))
			}
		}
		for _, v := range tr.Visits {
			for _, l := range v.Logs {
				// What the world logs last it may log a little late.
				if l.Time < v.Entry.Start || l.Time > v.Entry.End()+int64(10*time.Millisecond) {
					t.Fatalf("%q was written outside of its visit", l.Body)
				}
			}
		}
	}
	if crossing < 1000 {
		t.Errorf("only %d calls cross hosts", crossing)
	}
}

func TestClockStepIsFound(t *testing.T) {
	src := build("")
	apart(src, true, func(service string, at time.Time) time.Duration {
		if service == "retriever" && !at.Before(start.Add(quiet)) {
			return -1500 * time.Millisecond
		}
		return 0
	})
	e, err := New(src, Options{})
	if err != nil {
		t.Fatal(err)
	}
	ev, err := e.gather(t.Context(), ask())
	if err != nil {
		t.Fatal(err)
	}
	f := newFacts(ev, ask())
	found := map[record.Entity]record.Finding{}
	for _, x := range f.findings {
		if x.Kind == "clock_offset" {
			found[x.Entity] = x
		}
	}
	if len(found) != 4 {
		t.Errorf("%d clocks were compared, want 4", len(found))
	}
	for e, x := range found {
		moved := e == sensor.NodeEntity("host-of-retriever")
		if moved != (x.Strength < 0.001) || moved != (math.Abs(x.Observed+1500) < 20) {
			t.Errorf("%s: %v ms with p = %v", e, x.Observed, x.Strength)
		}
	}
}

// Hosts that no call ties to another keep their times, and the verdict says so.
func TestUntiedClocks(t *testing.T) {
	src := build("exception")
	apart(src, true, constant)
	for i := range src.AllSpans { // a batch job with a clock of its own
		if s := src.AllSpans[i]; s.Service == "gateway" && s.Parent == "" {
			s.Service, s.Pod, s.Node, s.Name = "nightly", "nightly-1", "host-of-nightly", "sweep"
			s.TraceID, s.SpanID = "f"+s.TraceID[1:], "f"+s.SpanID[1:]
			src.AllSpans = append(src.AllSpans, s)
		}
	}
	v := judge(t, src, ask())
	i := slices.IndexFunc(v.Clocks, func(c Clock) bool { return c.Entity == sensor.NodeEntity("host-of-nightly") })
	if i < 0 || v.Clocks[i].Note != noteUntied || v.Clocks[i].OffsetMs != 0 {
		raw, _ := json.Marshal(v.Clocks)
		t.Errorf("clocks %s", raw)
	}
}
