package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"inquest/bench/lab"
	"inquest/bench/nezha"
	"inquest/catalog"
	"inquest/lab/scenario"
	"inquest/lab/system"
	"inquest/record"
	"inquest/verdict"
)

func newBenchLabCommand() *cobra.Command {
	var output, only, workloads string
	var kinds, folders []string
	var from, seeds uint64
	var explain bool
	var findings float64
	cmd := &cobra.Command{
		Use:   "lab",
		Short: "Judge the faults of the laboratory",
		Long: `bench lab lets the simulated system break in every way that the laboratory knows,
and holds an inquest on each: single faults, pairs of faults, healthy runs in which
something harmless happens, and single faults with one quadrant withheld. The right
cause is the fault by its identifier and the entity.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "json" && output != "text" {
				return fmt.Errorf("--output is %q: it is text or json", output)
			}
			faults, err := catalog.WithFolders(folders...)
			if err != nil {
				return err
			}
			opt := lab.Options{From: from, Seeds: seeds, Kinds: kinds, Catalog: faults}
			if only != "" {
				opt.Only = func(s scenario.Scenario) bool { return strings.Contains(s.Name, only) }
			}
			if workloads != "" {
				if opt.Sizes, err = system.LoadSizes(workloads); err != nil {
					return err
				}
			}
			if explain {
				opt.Progress = func(r lab.Row, v *verdict.Verdict) { explainLab(cmd.ErrOrStderr(), r, v) }
			}
			if findings > 0 {
				opt.Workers = 1
				opt.Findings = func(r lab.Row, all []record.Finding) {
					fmt.Fprintf(cmd.ErrOrStderr(), "#### %s %s seed %d\n", r.Kind, r.Scenario, r.Seed)
					listFindings(cmd.ErrOrStderr(), all, findings)
				}
			}
			result, err := lab.Run(cmd.Context(), opt)
			if err != nil {
				return err
			}
			if output == "json" {
				return printJSON(cmd.OutOrStdout(), result)
			}
			return result.WriteText(cmd.OutOrStdout())
		},
	}
	registerCatalog(cmd, &folders)
	f := cmd.Flags()
	f.StringVarP(&output, "output", "o", "text", "`form` of the result: text or json")
	f.Uint64Var(&from, "seed-from", 1, "the first `seed`")
	f.Uint64Var(&seeds, "seeds", 1, "how many `seeds`")
	f.StringVar(&only, "case", "", "only scenarios whose name holds this `text`")
	f.StringSliceVar(&kinds, "kind", nil, "only these `kinds`: single, pairs, healthy, withheld")
	f.StringVar(&workloads, "workloads", "", "`folder` with recorded requests (azure-llm-2023-conv.csv, mooncake-conversation.jsonl) to draw lengths from")
	f.BoolVar(&explain, "explain", false, "write to stderr what was weighed in each case")
	f.Float64Var(&findings, "findings", 0, "write to stderr all findings up to this `strength` (p-value)")
	return cmd
}

func listFindings(w io.Writer, all []record.Finding, most float64) {
	slices.SortStableFunc(all, func(a, b record.Finding) int { return cmp.Compare(a.Strength, b.Strength) })
	for _, f := range all {
		if f.Strength > most {
			break
		}
		peer := ""
		if f.Peer != nil {
			peer = " peer " + f.Peer.String()
		}
		fmt.Fprintf(w, "  %-9.2g %-9s %-22s %-8s %s%s | %s | %.4g (%.4g) z %.1f\n", f.Strength, f.Quadrant, f.Kind, f.Direction, f.Entity, peer, f.Subject, f.Observed, f.Expected, f.Effect)
	}
}

func explainLab(w io.Writer, r lab.Row, v *verdict.Verdict) {
	fmt.Fprintf(w, "\n#### %s %s seed %d: rank %d, %.2f s\n", r.Kind, r.Scenario, r.Seed, r.Rank, r.Seconds)
	nezha.Explain(w, nezha.Row{Case: r.Scenario}, v)
}
