package nezha

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"inquest/verdict"
)

// Result is what a run measured. Counts are of cases.
type Result struct {
	Cases int   `json:"cases"`
	Given Score `json:"given"`
	Found Score `json:"found"`
	// SecondsPerCase is the mean time of a verdict in given mode, reading included.
	SecondsPerCase float64 `json:"seconds_per_case"`
	SecondsMax     float64 `json:"seconds_max"`
	PeakRSSMB      float64 `json:"peak_rss_mb"`
	Alarms         []Alarm `json:"alarms"`
	Rows           []Row   `json:"rows"`
}

// Score is the counts of one mode.
type Score struct {
	AS1    int `json:"as1"`
	AS3    int `json:"as3"`
	AS5    int `json:"as5"`
	Kind   int `json:"kind"`
	Region int `json:"region"`
	// RegionOf is the number of cases that have a region: the code faults.
	RegionOf     int         `json:"region_of"`
	Confirmed    int         `json:"confirmed"`
	Suspected    int         `json:"suspected"`
	Inconclusive int         `json:"inconclusive"`
	Quadrants    map[int]int `json:"quadrants"` // verdicts by number of strong quadrants
	Detected     int         `json:"detected,omitempty"`
	FalseAlarms  int         `json:"false_alarms"`
}

// Row is one case.
type Row struct {
	Case    string  `json:"case"`
	Service string  `json:"service"`
	Type    string  `json:"type"`
	Given   *Answer `json:"given,omitempty"`
	Found   *Answer `json:"found,omitempty"`
	Seconds float64 `json:"seconds,omitempty"`
	truth   *Case
}

// Answer is a verdict against the truth.
type Answer struct {
	State verdict.State `json:"state"`
	// Rank of the true service among the distinct services of the answer, from 1;
	// 0 when it is not there.
	Rank              int      `json:"rank"`
	Services          []string `json:"services"` // the first five
	Fault             string   `json:"fault"`
	KindOK            bool     `json:"kind_ok"`
	Region            string   `json:"region,omitempty"`
	RegionOK          bool     `json:"region_ok,omitempty"`
	Quadrants         []string `json:"quadrants"`
	Summary           string   `json:"summary"`
	OnsetErrorSeconds float64  `json:"onset_error_seconds"` // estimate minus the list's time
}

// Alarm is an incident that was found.
type Alarm struct {
	From    string `json:"from"`
	To      string `json:"to"`
	Service string `json:"service"`
	Fault   string `json:"fault"`
	// Of is the case or unlisted injection that it belongs to, empty for a false
	// alarm.
	Of string `json:"of,omitempty"`
}

// kinds says which catalogue entries name an injection.
var kinds = map[string]string{
	"return": "early-return", "exception": "code-exception",
	"cpu_contention": "cpu-contention", "network_delay": "network-delay",
}

// score compares a verdict with the truth. Kind and region count only when the
// service is right at the first place.
func score(v *verdict.Verdict, c *Case, change Change) *Answer {
	services := answer(v)
	a := &Answer{State: v.State, Services: services[:min(5, len(services))], Summary: v.Summary, Quadrants: []string{}}
	a.Rank = slices.Index(services, change.rename(c.Service)) + 1
	for _, q := range v.Quadrants {
		a.Quadrants = append(a.Quadrants, string(q))
	}
	var code *verdict.CodeRegion
	switch {
	case v.Cause != nil:
		a.Fault, code = v.Cause.Fault, v.Cause.Code
	case len(v.Alternatives) > 0:
		a.Fault = v.Alternatives[0].Fault
	}
	a.KindOK = a.Rank == 1 && a.Fault == kinds[c.Type]
	if code != nil {
		a.Region = code.After + " → " + code.Before
		a.RegionOK = a.Rank == 1 && c.After != "" && sameStatement(code.After, c.After) && sameStatement(code.Before, c.Before)
	}
	if v.Onset != nil {
		a.OnsetErrorSeconds = v.Onset.Time.Sub(c.At.Add(change.Shift)).Seconds()
	}
	return a
}

// sameStatement compares a statement with the truth's, which shortens packages
// as the log does and writes "X start" for the begin of an operation.
func sameStatement(got, want string) bool { return got == want }

// total fills in the sums.
func (r *Result) total(opt Options) {
	r.Cases = len(r.Rows)
	sum := 0.0
	for i := range r.Rows {
		row := &r.Rows[i]
		sum += row.Seconds
		r.SecondsMax = max(r.SecondsMax, row.Seconds)
		if opt.Given {
			r.Given.add(row.Given, row.truth)
		}
		if opt.Found {
			r.Found.add(row.Found, row.truth)
		}
	}
	for _, a := range r.Alarms {
		if a.Of == "" {
			r.Found.FalseAlarms++
		}
	}
	if r.Cases > 0 {
		r.SecondsPerCase = sum / float64(r.Cases)
	}
	r.PeakRSSMB = peakRSS()
}

func (s *Score) add(a *Answer, c *Case) {
	if c.After != "" {
		s.RegionOf++
	}
	if a == nil {
		return
	}
	s.Detected++
	if s.Quadrants == nil {
		s.Quadrants = map[int]int{}
	}
	s.Quadrants[len(a.Quadrants)]++
	count := func(n *int, ok bool) {
		if ok {
			*n++
		}
	}
	count(&s.AS1, a.Rank == 1)
	count(&s.AS3, a.Rank >= 1 && a.Rank <= 3)
	count(&s.AS5, a.Rank >= 1 && a.Rank <= 5)
	count(&s.Kind, a.KindOK)
	count(&s.Region, a.RegionOK)
	count(&s.Confirmed, a.State == verdict.StateConfirmed)
	count(&s.Suspected, a.State == verdict.StateSuspected)
	count(&s.Inconclusive, a.State == verdict.StateInconclusive)
}

// WriteText writes the result for people.
func (r Result) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Nezha TrainTicket, %d cases, strict\n\n", r.Cases)
	for _, m := range []struct {
		name string
		s    Score
	}{{"given", r.Given}, {"found", r.Found}} {
		if m.s.Detected == 0 {
			continue
		}
		fmt.Fprintf(&b, "%s  AS@1 %d/%d  AS@3 %d/%d  AS@5 %d/%d  kind %d/%d  region %d/%d\n",
			m.name, m.s.AS1, r.Cases, m.s.AS3, r.Cases, m.s.AS5, r.Cases, m.s.Kind, r.Cases, m.s.Region, m.s.RegionOf)
		fmt.Fprintf(&b, "       confirmed %d, suspected %d, inconclusive %d; strong quadrants:", m.s.Confirmed, m.s.Suspected, m.s.Inconclusive)
		for n := 0; n <= 4; n++ {
			fmt.Fprintf(&b, " %d in %d", n, m.s.Quadrants[n])
			if n < 4 {
				b.WriteByte(',')
			}
		}
		b.WriteByte('\n')
		if m.name == "found" {
			fmt.Fprintf(&b, "       detected %d/%d, alarms outside any fault %d of %d\n", m.s.Detected, r.Cases, m.s.FalseAlarms, len(r.Alarms))
		}
	}
	fmt.Fprintf(&b, "\n%.2f s a case (at most %.2f), peak memory %.0f MB\n\n", r.SecondsPerCase, r.SecondsMax, r.PeakRSSMB)
	for i := range r.Rows {
		row := &r.Rows[i]
		fmt.Fprintf(&b, "%s\n", row.Case)
		for _, m := range []struct {
			name string
			a    *Answer
		}{{"given", row.Given}, {"found", row.Found}} {
			if m.a == nil {
				if m.name == "found" && r.Found.Detected > 0 {
					fmt.Fprintf(&b, "  found  not detected\n")
				}
				continue
			}
			fmt.Fprintf(&b, "  %s  %s rank %d  %s%s  %s %s\n", m.name, m.a.State, m.a.Rank, m.a.Fault, mark(m.a.KindOK),
				strings.Join(m.a.Services[:min(3, len(m.a.Services))], " > "), regionText(m.a))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func mark(ok bool) string {
	if ok {
		return " ✓"
	}
	return " ✗"
}

func regionText(a *Answer) string {
	if a.Region == "" {
		return ""
	}
	return "[" + a.Region + "]" + mark(a.RegionOK)
}
