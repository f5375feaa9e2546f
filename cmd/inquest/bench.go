package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"inquest/bench/nezha"
)

func newBenchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure the engine on a public data set",
	}
	cmd.AddCommand(newBenchNezhaCommand())
	return cmd
}

func newBenchNezhaCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "nezha DIR",
		Short: "Judge the 45 cases of Nezha TrainTicket, given and found",
		Long: `bench nezha holds an inquest on each of the 45 injected faults, once given the
minute of the injection and once without (found), and scores strictly: the
named service must be the one that was injected.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			result, err := nezha.Run(cmd.Context(), args[0], nezha.Options{})
			if err != nil {
				return err
			}
			switch output {
			case "json":
				return printJSON(cmd.OutOrStdout(), result)
			case "text":
				return result.WriteText(cmd.OutOrStdout())
			default:
				return fmt.Errorf("--output is %q: it is text or json", output)
			}
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "text", "`form` of the result: text or json")
	return cmd
}
