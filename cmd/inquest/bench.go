package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"inquest/bench/nezha"
	"inquest/catalog"
	"inquest/verdict"
)

func newBenchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure the engine on a public data set or the laboratory",
	}
	cmd.AddCommand(newBenchNezhaCommand(), newBenchLabCommand())
	return cmd
}

func newBenchNezhaCommand() *cobra.Command {
	var output, mode, text string
	var folders []string
	var explain bool
	cmd := &cobra.Command{
		Use:   "nezha DIR",
		Short: "Judge the 45 cases of Nezha TrainTicket, given and found",
		Long: `bench nezha holds an inquest on each of the 45 injected faults, once given the
minute of the injection and once without (found), and scores strictly: the
named service must be the one that was injected.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			faults, err := catalog.WithFolders(folders...)
			if err != nil {
				return err
			}
			opt := nezha.Options{Engine: verdict.Options{Catalog: faults}}
			switch mode {
			case "both":
			case "given":
				opt.Given = true
			case "found":
				opt.Found = true
			default:
				return fmt.Errorf("--mode is %q: it is given, found or both", mode)
			}
			if output != "json" && output != "text" {
				return fmt.Errorf("--output is %q: it is text or json", output)
			}
			if text != "" {
				opt.Cases = func(c nezha.Case) bool { return strings.Contains(c.ID(), text) }
			}
			if explain {
				opt.Progress = func(r nezha.Row, v *verdict.Verdict) { nezha.Explain(cmd.ErrOrStderr(), r, v) }
			}
			result, err := nezha.Run(cmd.Context(), args[0], opt)
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
	cmd.Flags().StringVarP(&output, "output", "o", "text", "`form` of the result: text or json")
	cmd.Flags().StringVar(&mode, "mode", "both", "given, found or both")
	cmd.Flags().StringVar(&text, "case", "", "only cases whose name holds this `text`")
	cmd.Flags().BoolVar(&explain, "explain", false, "write to stderr what was weighed in each case")
	return cmd
}
