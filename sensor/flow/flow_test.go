package flow

import (
	"context"
	"fmt"
	"testing"

	"inquest/sensor"
)

// scene writes requests: front calls back, back logs a, b and c.
type scene struct {
	m  sensor.Memory
	n  int
	at int64
}

type variant struct {
	skip    string // statement of back that is missing, with all after it
	instead string // statement in its place
	severe  string // error that front logs
	noCall  bool   // front does not reach back
}

func (s *scene) request(v variant) {
	s.n++
	s.at += 1e9
	trace := fmt.Sprintf("t%d", s.n)
	span := func(id, parent, service, name string, from, d int64) {
		s.m.AllSpans = append(s.m.AllSpans, sensor.Span{
			TraceID: trace, SpanID: trace + id, Parent: parent, Service: service, Pod: service + "-1", Name: name,
			Start: s.at + from*1e6, Duration: d * 1e6,
		})
	}
	log := func(id, service, body string, from int64, severity int) {
		s.m.AllLogs = append(s.m.AllLogs, sensor.Log{
			TraceID: trace, SpanID: trace + id, Service: service, Body: body, Time: s.at + from*1e6, Severity: severity,
		})
	}
	span("f", "", "front", "GET /", 0, 100)
	log("f", "front", "asked", 1, 9)
	if !v.noCall {
		span("b", trace+"f", "back", "GET /b", 10, 50)
		gone := false
		for i, body := range []string{"step a", "step b", "step c"} {
			if body == v.skip {
				gone = true
				if v.instead != "" {
					log("b", "back", v.instead, 15+int64(i), 17)
				}
			}
			if !gone {
				log("b", "back", body, 15+int64(i), 9)
			}
		}
	}
	if v.severe != "" {
		log("f", "front", v.severe, 80, 17)
		return
	}
	log("f", "front", "answered", 90, 9)
}

// judge compares ten requests of one variant with a usual baseline.
func judge(t *testing.T, v variant) Judgement {
	t.Helper()
	voc := &sensor.Vocabulary{}
	profile := func(v variant) *sensor.Profile {
		s := &scene{}
		for range 10 {
			s.request(v)
		}
		w, err := sensor.Gather(context.Background(), &s.m, sensor.Range{From: 0, To: 1e12}, sensor.DefaultLimits)
		if err != nil {
			t.Fatal(err)
		}
		p := sensor.NewProfile(w.Range)
		voc.Flows(w, p)
		return p
	}
	var base []*sensor.Profile
	for range 8 {
		base = append(base, profile(variant{}))
	}
	base = append(base, profile(variant{skip: "step a"})) // another incident must not spoil it
	return Judge(voc, base, profile(v))
}

func (j Judgement) strength(kind, service string) float64 {
	best := 1.0
	for _, f := range j.Findings {
		if f.Kind == kind && f.Entity == sensor.Service(service) {
			best = min(best, f.Strength)
		}
	}
	return best
}

const strong, weak = 1e-4, 0.05

func TestUsualRequests(t *testing.T) {
	j := judge(t, variant{})
	for _, f := range j.Findings {
		if f.Strength < weak {
			t.Errorf("usual requests show %s at %s, p %v", f.Kind, f.Entity, f.Strength)
		}
	}
}

func TestExceptionIsChargedToTheCallee(t *testing.T) {
	j := judge(t, variant{skip: "step b", severe: "upstream answered 500"})
	if p := j.strength(KindAborts, "back"); p > strong {
		t.Errorf("back: p %v", p)
	}
	if p := j.strength(KindBrokenLogs, "front"); p < weak {
		t.Errorf("front is charged with what broke in back: p %v", p)
	}
	after, before := j.Breaks[0].Region()
	if after != "step a" || before != "step b" {
		t.Errorf("region %q to %q", after, before)
	}
}

func TestOtherBranch(t *testing.T) {
	j := judge(t, variant{skip: "step b", instead: "nothing found"})
	if p := j.strength(KindGoesOn, "back"); p > strong {
		t.Errorf("goes on: p %v", p)
	}
	if p := j.strength(KindAborts, "back"); p < weak {
		t.Errorf("aborts: p %v", p)
	}
	j = judge(t, variant{skip: "step b", instead: "NullPointerException at B.java"})
	if p := j.strength(KindAborts, "back"); p > strong {
		t.Errorf("a reported exception: p %v", p)
	}
}

func TestStartOfTheRegion(t *testing.T) {
	j := judge(t, variant{skip: "step a"})
	if after, before := j.Breaks[0].Region(); after != "GET /b start" || before != "step a" {
		t.Errorf("region %q to %q", after, before)
	}
}

func TestLostCallIsChargedToTheCallee(t *testing.T) {
	for _, v := range []variant{
		{noCall: true, severe: "connection refused"},
		{noCall: true, severe: "connect to http://back:80 failed"},
	} {
		j := judge(t, v)
		if p := j.strength(KindLost, "back"); p > strong {
			t.Errorf("%+v: lost calls to back: p %v", v, p)
		}
		if p := j.strength(KindBrokenLogs, "front"); p < weak {
			t.Errorf("%+v: front is charged: p %v", v, p)
		}
	}
}
