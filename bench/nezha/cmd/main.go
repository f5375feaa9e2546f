// Command cmd runs the Nezha benchmark alone: go run ./bench/nezha/cmd DIR [given|found] [text in the case's name] [explain].
package main

import (
	"context"
	"fmt"
	"os"
	"runtime/pprof"
	"strings"

	"inquest/bench/nezha"
	"inquest/verdict"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: cmd DIR [given|found|both] [text]")
		os.Exit(2)
	}
	opt := nezha.Options{}
	if len(os.Args) > 2 {
		opt.Given, opt.Found = os.Args[2] == "given", os.Args[2] == "found"
	}
	if len(os.Args) > 3 {
		opt.Cases = func(c nezha.Case) bool { return strings.Contains(c.ID(), os.Args[3]) }
	}
	if len(os.Args) > 4 {
		opt.Progress = explain
	}
	if path := os.Getenv("CPUPROFILE"); path != "" {
		f, err := os.Create(path)
		if err == nil && pprof.StartCPUProfile(f) == nil {
			defer pprof.StopCPUProfile()
		}
	}
	res, err := nezha.Run(context.Background(), os.Args[1], opt)
	if err == nil {
		err = res.WriteText(os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// explain prints what was weighed.
func explain(r nezha.Row, v *verdict.Verdict) {
	fmt.Printf("== %s: %s confidence %.3f\n", r.Case, v.Summary, v.Confidence)
	text := map[string]string{}
	for _, f := range v.Findings {
		text[f.ID] = fmt.Sprintf("p=%.2g z=%.1f %s", f.Strength, f.Effect, f.Text)
	}
	weights := func(ws []verdict.Weight) {
		for _, w := range ws {
			fmt.Printf("      %6.2f p=%.2g %s %s examined=%v\n", w.Nats, w.Strength, w.Quadrant, w.Text, w.Examined)
			for _, id := range w.Findings {
				fmt.Printf("             %s %s\n", id, text[id])
			}
		}
	}
	if v.Cause != nil {
		fmt.Printf("  CAUSE %s %s\n", v.Cause.Entity, v.Cause.Fault)
		weights(v.Cause.Weights)
	}
	for _, a := range v.Alternatives {
		fmt.Printf("  %s %s %.2f\n", a.Entity, a.Fault, a.Score)
		weights(a.Weights)
	}
}
