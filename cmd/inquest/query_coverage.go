package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"inquest/sensor/coverage"
)

func newCoverageCommand() *cobra.Command {
	var ask askOptions
	var span rangeOptions
	cmd := &cobra.Command{
		Use:     "coverage",
		Short:   "Show how much can be joined to its requests, and where the chain tears",
		Example: "  inquest coverage --from 1h",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			from, to, err := span.times(time.Now())
			if err != nil {
				return err
			}
			c, err := ask.client()
			if err != nil {
				return err
			}
			data, err := c.Coverage(cmd.Context(), from, to)
			if err != nil {
				return err
			}
			if ask.output == "json" {
				return printJSON(cmd.OutOrStdout(), data)
			}
			var report coverage.Report
			if err := json.Unmarshal(data, &report); err != nil {
				return fmt.Errorf("cannot read the server's answer: %w", err)
			}
			return printCoverage(cmd.OutOrStdout(), &report)
		},
	}
	ask.register(cmd)
	span.register(cmd, "15m")
	return cmd
}

func printCoverage(w io.Writer, r *coverage.Report) error {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tab, "SERVICE\tRECORDS\tTRACE ID\tSPAN ID\tREQUEST ID\tWITH BINDING\t")
	for _, s := range r.Services {
		name := clean(s.Name)
		if name == "" {
			name = "(none)"
		}
		fmt.Fprintf(tab, "%s\t%d\t%.1f %%\t%.1f %%\t%.1f %%\t%.1f %%\t\n", name, s.Records,
			100*s.TraceID.OwnShare, 100*s.SpanID.OwnShare, 100*s.RequestID.OwnShare, 100*s.TraceID.WithShare)
	}
	if err := tab.Flush(); err != nil {
		return err
	}
	if len(r.Tears) == 0 {
		_, err := fmt.Fprintln(w, "\nThe chain tears nowhere.")
		return err
	}
	fmt.Fprintln(w, "\nWhere the chain tears:")
	for _, t := range r.Tears {
		fmt.Fprintf(w, "* %s\n", clean(t.Text))
	}
	return nil
}
