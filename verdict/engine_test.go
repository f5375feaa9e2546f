package verdict

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"inquest/record"
	"inquest/sensor"
)

func ask() Question {
	return Question{From: start.Add(quiet), To: start.Add(quiet + incident)}
}

func judge(t *testing.T, src sensor.Source, q Question) *Verdict {
	t.Helper()
	v, err := Investigate(context.Background(), src, q)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func show(v *Verdict) string {
	raw, _ := json.MarshalIndent(v, "", " ")
	return string(raw)
}

func TestFaults(t *testing.T) {
	f := func(fault string, wantEntity record.Entity, wantState State, wantFault ...string) {
		t.Helper()
		v := judge(t, build(fault), ask())
		if v.Cause == nil {
			t.Errorf("%s: no cause: %s", fault, show(v))
			return
		}
		if v.Cause.Entity != wantEntity || !slices.Contains(wantFault, v.Cause.Fault) || v.State != wantState {
			t.Errorf("%s: %s %s at %s, want %s %v at %s\n%s", fault, v.State, v.Cause.Fault, v.Cause.Entity,
				wantState, wantFault, wantEntity, show(v))
		}
	}
	service := sensor.Service
	f("slow vector store", sensor.Dependency("vector search"), StateSuspected, "slow-dependency")
	f("queue", service("model-server"), StateConfirmed, "queue-buildup")
	f("bad model", service("model-server"), StateSuspected, "bad-model-version")
	f("cpu", service("retriever"), StateConfirmed, "cpu-contention")
	f("network", service("retriever"), StateSuspected, "network-delay")
	f("exception", service("chat-api"), StateConfirmed, "code-exception")
	f("memory", service("chat-api"), StateConfirmed, "memory-pressure", "oom-kill")
	f("node", sensor.NodeEntity("n1"), StateConfirmed, "node-contention")
	f("surge", service("gateway"), StateConfirmed, "traffic-surge")
}

func TestExceptionTellsTheRegion(t *testing.T) {
	v := judge(t, build("exception"), ask())
	if v.Cause == nil || v.Cause.Code == nil {
		t.Fatalf("no region: %s", show(v))
	}
	if !strings.HasPrefix(v.Cause.Code.After, "question received") || v.Cause.Code.Before != "prompt assembled from documents" {
		t.Errorf("region %+v", v.Cause.Code)
	}
	if want := []string{"prompt assembled from documents", "answer sent"}; !slices.Equal(v.Cause.Code.Missing, want) {
		t.Errorf("missing %q, want %q", v.Cause.Code.Missing, want)
	}
	if v.Onset == nil || v.Onset.Time.Sub(start.Add(quiet)).Abs() > 30*time.Second {
		t.Errorf("onset %+v, want about %v", v.Onset, start.Add(quiet))
	}
	if len(v.Chain) < 2 || v.Chain[1].Entity != sensor.Service("gateway") {
		t.Errorf("chain %+v, want one that reaches the gateway", v.Chain)
	}
}

func TestAbstains(t *testing.T) {
	v := judge(t, build(""), ask())
	if v.State != StateInconclusive || v.Cause != nil {
		t.Errorf("a quiet time has a cause: %s", show(v))
	}
	if len(v.Examined) != 4 || len(v.NotExamined) != 0 {
		t.Errorf("examined %+v, not examined %+v", v.Examined, v.NotExamined)
	}
}

func TestUnavailableIsNotNothing(t *testing.T) {
	src := build("exception")
	src.Errors = map[record.Quadrant]error{record.QuadrantLogs: errors.New("connection refused")}
	v := judge(t, src, ask())
	if v.State == StateConfirmed {
		t.Errorf("confirmed without logs: %s", show(v))
	}
	if !slices.ContainsFunc(v.NotExamined, func(m Missing) bool {
		return m.Quadrant == record.QuadrantLogs && strings.Contains(m.Reason, "connection refused")
	}) {
		t.Errorf("not examined: %+v", v.NotExamined)
	}
	if slices.ContainsFunc(v.Examined, func(e Examined) bool { return e.Quadrant == record.QuadrantLogs }) {
		t.Error("logs count as examined")
	}
	for _, w := range v.allWeights() {
		if w.Quadrant == record.QuadrantLogs && (w.Examined || w.Nats != 0) {
			t.Errorf("logs weigh %+v though they were not there", w)
		}
	}
	empty := judge(t, &sensor.Memory{}, ask())
	if empty.State != StateInconclusive || len(empty.Examined) != 0 || len(empty.NotExamined) != 4 {
		t.Errorf("an empty source: %s", show(empty))
	}
}

func (v *Verdict) allWeights() []Weight {
	var out []Weight
	if v.Cause != nil {
		out = append(out, v.Cause.Weights...)
	}
	for _, a := range v.Alternatives {
		out = append(out, a.Weights...)
	}
	return out
}

func TestSameInputSameVerdict(t *testing.T) {
	for _, fault := range []string{"exception", "queue", ""} {
		src := build(fault)
		want, err := json.Marshal(judge(t, src, ask()))
		if err != nil {
			t.Fatal(err)
		}
		for seed := range uint64(3) {
			r := rand.New(rand.NewPCG(seed, 1))
			r.Shuffle(len(src.AllSpans), func(i, j int) { src.AllSpans[i], src.AllSpans[j] = src.AllSpans[j], src.AllSpans[i] })
			r.Shuffle(len(src.AllLogs), func(i, j int) { src.AllLogs[i], src.AllLogs[j] = src.AllLogs[j], src.AllLogs[i] })
			r.Shuffle(len(src.AllSeries), func(i, j int) { src.AllSeries[i], src.AllSeries[j] = src.AllSeries[j], src.AllSeries[i] })
			got, err := json.Marshal(judge(t, src, ask()))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Fatalf("%s: another order of the input gives another verdict:\n%s\n%s", fault, want, got)
			}
		}
	}
}

func TestSymptomPointsDown(t *testing.T) {
	q := ask()
	gateway := sensor.Service("gateway")
	q.Symptom = &Symptom{Entity: &gateway}
	if v := judge(t, build("exception"), q); v.Cause == nil || v.Cause.Entity != sensor.Service("chat-api") {
		t.Errorf("with the symptom at the gateway: %s", show(v))
	}
	// A symptom at a callee that the cause does not lie behind weakens it.
	score := func(s *Symptom) float64 {
		q.Symptom = s
		return judge(t, build("exception"), q).Confidence
	}
	if a, b := score(&Symptom{Operation: "POST /answer"}), score(&Symptom{Operation: "llm_request"}); a < b {
		t.Errorf("confidence %v with the symptom above the cause, %v below it", a, b)
	}
}

func TestDependencyWithMetrics(t *testing.T) {
	src := build("slow vector store")
	for i := range src.AllSpans {
		if s := &src.AllSpans[i]; s.Name == "vector search" {
			s.Attributes = map[string]string{"server.address": "milvus.prod:19530"}
		}
	}
	s := sensor.Series{Name: "milvus_proxy_queue_length", Labels: map[string]string{"service": "milvus"}}
	for at := start; at.Before(start.Add(quiet + incident)); at = at.Add(15 * time.Second) {
		v := float64(at.Unix() / 15 % 3)
		if at.After(start.Add(quiet)) {
			v += 80
		}
		s.Points = append(s.Points, sensor.Point{Time: at.UnixNano(), Value: v})
	}
	src.AllSeries = append(src.AllSeries, s)
	v := judge(t, src, ask())
	if v.State != StateConfirmed || v.Cause.Entity != sensor.Dependency("milvus.prod:19530") {
		t.Errorf("a slow store with a queue: %s", show(v))
	}
}

func TestQuestions(t *testing.T) {
	f := func(q Question) {
		t.Helper()
		if _, err := Investigate(context.Background(), &sensor.Memory{}, q); !errors.Is(err, ErrQuestion) {
			t.Errorf("%+v: error %v, want ErrQuestion", q, err)
		}
	}
	early := start.Add(-time.Hour)
	f(Question{})
	f(Question{From: start, To: start})
	f(Question{From: start, To: start.Add(time.Minute), Onset: &early})
	f(Question{From: start, To: start.Add(time.Minute), Baseline: []Range{{start, early}}})

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Investigate(ctx, build(""), ask()); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestDetect(t *testing.T) {
	f := func(fault string, want ...record.Entity) {
		t.Helper()
		e, err := New(build(fault), Options{})
		if err != nil {
			t.Fatal(err)
		}
		found, err := e.Detect(context.Background(), Scan{From: start, To: start.Add(quiet + incident)})
		if err != nil {
			t.Fatal(err)
		}
		var got []record.Entity
		for _, in := range found {
			got = append(got, in.Verdict.Cause.Entity)
			if in.Window.To.Before(start.Add(quiet)) {
				t.Errorf("%s: alarm at %v", fault, in.Window)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: found %v, want %v", fault, got, want)
		}
	}
	f("")
	f("exception", sensor.Service("chat-api"))
	f("queue", sensor.Service("model-server"))
}

// What a check noted while recording is evidence next to what was measured.
func TestNoted(t *testing.T) {
	onset := start.Add(quiet)
	noted := func(kind string, at time.Time) sensor.Noted {
		return sensor.Noted{Service: "model-server", Finding: record.Finding{
			Quadrant: record.QuadrantResources, Sensor: "truth", Kind: kind, Subject: "/models/m1/current",
			Entity: record.Entity{Kind: record.EntityModelVersion, Of: "m1", Name: "v2"}, Direction: record.DirectionAppeared,
			From: at.Add(-10 * time.Second), To: at.Add(10 * time.Second), Onset: &at, OnsetErrorSeconds: 10,
			Observed: 1, Strength: 1e-3, Text: "the configured path is a link to another version",
		}}
	}
	f := func(world string, want string, noted ...sensor.Noted) {
		t.Helper()
		src := build(world)
		src.AllNoted = noted
		v := judge(t, src, ask())
		got := string(v.State)
		if v.Cause != nil {
			got += " " + v.Cause.Fault + " " + v.Cause.Entity.String()
		}
		if got != want {
			t.Errorf("%s, %d noted: %s, want %s\n%s", world, len(noted), got, want, show(v))
		}
	}
	f("bad model", "confirmed wrong-model-version model_version:m1/v2", noted("path_symlink", onset))
	f("bad model", "confirmed wrong-model-version model_version:m1/v2", noted("file_changed", onset.Add(-time.Minute)))
	// What stood before explains no change, nor does what has no part in it.
	f("bad model", "suspected bad-model-version service:model-server", noted("path_symlink", start.Add(quiet/2)))
	f("queue", "confirmed queue-buildup service:model-server", noted("path_unreadable", onset))
	f("none", "inconclusive")
}
