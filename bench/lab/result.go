package lab

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
)

// Result is what was measured.
type Result struct {
	Single   Single   `json:"single"`
	Healthy  Healthy  `json:"healthy"`
	Pairs    Pairs    `json:"pairs"`
	Withheld Withheld `json:"withheld"`
	Faults   []Fault  `json:"faults"`
	Rows     []Row    `json:"rows"`
}

// Single counts verdicts on single faults: the right cause first, among the first
// three, and confirmed verdicts that are wrong.
type Single struct {
	N              int `json:"n"`
	First          int `json:"first"`
	Top3           int `json:"top3"`
	Confirmed      int `json:"confirmed"`
	WrongConfirmed int `json:"wrong_confirmed"`
	Located        int `json:"located"`
	// Also are runs in which a further cause was named, though there is one fault.
	Also int `json:"also"`
}

// Healthy counts verdicts on runs without a fault.
type Healthy struct {
	N         int `json:"n"`
	Confirmed int `json:"confirmed"`
	Suspected int `json:"suspected"`
}

// Pairs counts verdicts that name both of two faults.
type Pairs struct {
	N    int `json:"n"`
	Both int `json:"both"`
	One  int `json:"one"`
}

// Withheld counts verdicts that lacked one quadrant.
type Withheld struct {
	N     int `json:"n"`
	First int `json:"first"`
	// Confirmed on a single quadrant, which must not be.
	Confirmed int `json:"confirmed"`
	Told      int `json:"told"`
}

// Fault is the row of one fault: how often it came first, with the 95 % confidence
// interval of that share (Wilson).
type Fault struct {
	ID    string  `json:"id"`
	N     int     `json:"n"`
	First int     `json:"first"`
	Top3  int     `json:"top3"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	// Instead is what was named most often when it was not right.
	Instead string `json:"instead,omitempty"`
}

func summarise(rows []Row) *Result {
	out := &Result{Rows: rows}
	by := map[string]*Fault{}
	instead := map[string]map[string]int{}
	for _, r := range rows {
		confirmed := r.State == "confirmed"
		switch r.Kind {
		case "single":
			out.Single.add(r, confirmed)
			id, _, _ := strings.Cut(r.Scenario, "/")
			f := by[id]
			if f == nil {
				f = &Fault{ID: id}
				by[id], instead[id] = f, map[string]int{}
			}
			f.N++
			if first(r) {
				f.First++
			} else {
				name := r.Fault + " at " + r.Entity
				if r.Fault == "" {
					name = "nothing"
				}
				instead[id][name]++
			}
			if r.Rank > 0 && r.Rank <= 3 {
				f.Top3++
			}
		case "healthy":
			out.Healthy.N++
			if confirmed {
				out.Healthy.Confirmed++
			} else if r.State == "suspected" {
				out.Healthy.Suspected++
			}
		case "pair":
			out.Pairs.N++
			if r.Both {
				out.Pairs.Both++
			}
			if r.Found > 0 {
				out.Pairs.One++
			}
		case "withheld":
			out.Withheld.N++
			if first(r) {
				out.Withheld.First++
			}
			if confirmed && r.Quadrants < 2 {
				out.Withheld.Confirmed++
			}
			if r.Told {
				out.Withheld.Told++
			}
		}
	}
	for id, f := range by {
		f.Low, f.High = wilson(f.First, f.N)
		most := 0
		for _, name := range sorted(instead[id]) {
			if n := instead[id][name]; n > most {
				most, f.Instead = n, name
			}
		}
		out.Faults = append(out.Faults, *f)
	}
	slices.SortFunc(out.Faults, func(a, b Fault) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// first reports whether the leading cause is right and stands as the verdict's.
func first(r Row) bool { return r.Rank == 1 }

func (s *Single) add(r Row, confirmed bool) {
	s.N++
	if first(r) {
		s.First++
	}
	if r.Rank > 0 && r.Rank <= 3 {
		s.Top3++
	}
	if r.Located {
		s.Located++
	}
	if r.AlsoWrong > 0 {
		s.Also++
	}
	if confirmed {
		s.Confirmed++
		if r.Rank != 1 {
			s.WrongConfirmed++
		}
	}
}

func sorted(m map[string]int) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// wilson is the 95 % confidence interval of a share.
func wilson(k, n int) (low, high float64) {
	if n == 0 {
		return 0, 1
	}
	const z = 1.959963984540054
	p, f := float64(k)/float64(n), float64(n)
	mid := (p + z*z/(2*f)) / (1 + z*z/f)
	half := z / (1 + z*z/f) * math.Sqrt(p*(1-p)/f+z*z/(4*f*f))
	return math.Max(0, mid-half), math.Min(1, mid+half)
}

// WriteText writes the result for people.
func (r *Result) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "fault\tfirst\ttop 3\t95 % interval\tinstead")
	for _, f := range r.Faults {
		fmt.Fprintf(t, "%s\t%d/%d\t%d/%d\t%.0f–%.0f %%\t%s\n", f.ID, f.First, f.N, f.Top3, f.N, 100*f.Low, 100*f.High, f.Instead)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	line := func(name string, k, n int) {
		if n > 0 {
			lo, hi := wilson(k, n)
			fmt.Fprintf(w, "%-44s %d/%d = %.1f %% (%.1f–%.1f)\n", name, k, n, 100*float64(k)/float64(n), 100*lo, 100*hi)
		}
	}
	fmt.Fprintln(w)
	line("single faults: right cause first", r.Single.First, r.Single.N)
	line("  among the first three", r.Single.Top3, r.Single.N)
	line("  right entity first", r.Single.Located, r.Single.N)
	line("  confirmed", r.Single.Confirmed, r.Single.N)
	line("  confirmed and wrong", r.Single.WrongConfirmed, r.Single.N)
	line("  a further cause named that is none", r.Single.Also, r.Single.N)
	line("healthy runs: confirmed", r.Healthy.Confirmed, r.Healthy.N)
	line("  suspected", r.Healthy.Suspected, r.Healthy.N)
	line("pairs: both found", r.Pairs.Both, r.Pairs.N)
	line("  at least one", r.Pairs.One, r.Pairs.N)
	line("one quadrant withheld: right cause first", r.Withheld.First, r.Withheld.N)
	line("  confirmed on a single quadrant", r.Withheld.Confirmed, r.Withheld.N)
	line("  the report says what is missing", r.Withheld.Told, r.Withheld.N)
	return nil
}
