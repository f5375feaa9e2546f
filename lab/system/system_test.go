package system

import (
	"crypto/sha256"
	"fmt"
	"testing"
	"time"
)

// digest is of everything that was told.
func digest(s *System) string {
	h := sha256.New()
	for i := range s.World.Rec.Spans {
		x := &s.World.Rec.Spans[i]
		fmt.Fprintln(h, x.Trace, x.ID, x.Parent, x.Name, x.Start, x.End, x.Failed, x.Attributes)
	}
	for i := range s.World.Rec.Logs {
		x := &s.World.Rec.Logs[i]
		fmt.Fprintln(h, x.Time, x.Body, x.Trace)
	}
	for _, x := range s.World.Rec.Series {
		fmt.Fprintln(h, x.Key(), x.Points)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

func TestHealthy(t *testing.T) {
	run := func(seed uint64) (*System, string) {
		s := New(Options{Seed: seed})
		t.Cleanup(s.Close)
		s.World.Run(10 * time.Minute)
		return s, digest(s)
	}
	start := time.Now()
	s, a := run(1)
	t.Logf("%s: %d spans, %d logs, %d series", time.Since(start), len(s.World.Rec.Spans), len(s.World.Rec.Logs), len(s.World.Rec.Series))
	if _, b := run(1); a != b {
		t.Error("two runs of one seed differ")
	}
	if _, b := run(2); a == b {
		t.Error("another seed gives the same run")
	}
	failed, roots := 0, 0
	services := map[string]bool{}
	for i := range s.World.Rec.Spans {
		x := &s.World.Rec.Spans[i]
		services[x.Source.Service()] = true
		if x.Source.Service() == "gateway" && x.Parent == [8]byte{} {
			roots++
			if x.Failed {
				failed++
			}
		}
	}
	t.Logf("%d requests, %d failed, services %v", roots, failed, len(services))
	if roots < 1000 || failed*200 > roots || len(services) < 19 {
		t.Errorf("%d requests, %d failed, services %v", roots, failed, services)
	}
}
