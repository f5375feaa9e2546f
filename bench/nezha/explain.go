package nezha

import (
	"fmt"
	"io"

	"inquest/verdict"
)

// Explain writes what was weighed for each hypothesis of a case.
func Explain(w io.Writer, r Row, v *verdict.Verdict) {
	fmt.Fprintf(w, "== %s: %s confidence %.3f\n", r.Case, v.Summary, v.Confidence)
	text := map[string]string{}
	for _, f := range v.Findings {
		text[f.ID] = fmt.Sprintf("p=%.2g z=%.1f %s", f.Strength, f.Effect, f.Text)
	}
	weights := func(ws []verdict.Weight) {
		for _, x := range ws {
			fmt.Fprintf(w, "      %6.2f p=%.2g %s %s examined=%v\n", x.Nats, x.Strength, x.Quadrant, x.Text, x.Examined)
			for _, id := range x.Findings {
				fmt.Fprintf(w, "             %s %s\n", id, text[id])
			}
		}
	}
	if v.Cause != nil {
		fmt.Fprintf(w, "  CAUSE %s %s\n", v.Cause.Entity, v.Cause.Fault)
		weights(v.Cause.Weights)
	}
	for _, a := range v.Alternatives {
		fmt.Fprintf(w, "  %s %s %.2f\n", a.Entity, a.Fault, a.Score)
		weights(a.Weights)
	}
}
