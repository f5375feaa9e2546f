package main

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"inquest/api/apitype"
	"inquest/api/client"
)

type drilldownOptions struct {
	askOptions
	time   string
	window string
}

func newDrilldownCommand() *cobra.Command {
	var opts drilldownOptions
	cmd := &cobra.Command{
		Use:   "drilldown QUERY",
		Short: "From a metric point to its trace and its logs",
		Long: `drilldown evaluates PromQL at one time, finds a trace that the series' exemplars
name near it, and shows the trace with its logs. Where the series has no
exemplar it takes the slowest span of the series' service, and says so.`,
		Example: `  inquest drilldown 'http_server_request_duration_seconds_bucket{job="checkout"}'
  inquest drilldown 'histogram_quantile(0.99, sum by (le, job) (rate(http_server_request_duration_seconds_bucket[5m])))' --time 20m`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return runDrilldown(cmd, opts, args[0]) },
	}
	opts.register(cmd)
	cmd.Flags().StringVar(&opts.time, "time", "now", "`time` of the point: "+timeHelp)
	cmd.Flags().StringVar(&opts.window, "window", "5m", "`duration` before and after the time in which to look")
	return cmd
}

func runDrilldown(cmd *cobra.Command, opts drilldownOptions, query string) error {
	c, err := opts.client()
	if err != nil {
		return err
	}
	at, err := timeFlag("time", opts.time, time.Now())
	if err != nil {
		return err
	}
	window, err := apitype.ParseDuration(opts.window)
	if err != nil {
		return fmt.Errorf("--window: %w", err)
	}
	d, answer, err := c.Drilldown(cmd.Context(), query, at, window)
	if err != nil {
		return err
	}
	warn(cmd, answer.Warnings)
	if opts.output == "json" {
		return printJSON(cmd.OutOrStdout(), d)
	}
	return printDrilldown(cmd.OutOrStdout(), &d)
}

func printDrilldown(w io.Writer, d *apitype.Drilldown) error {
	fmt.Fprintf(w, "%s at %s\n", clean(d.Query), d.Time.Format(time.RFC3339Nano))
	kind := "vector"
	var p point
	if json.Unmarshal(d.Series, &p) == nil && len(p[0]) > 0 && p[0][0] != '{' {
		kind = "scalar"
	}
	if err := printResult(w, client.QueryResult{ResultType: kind, Result: d.Series}); err != nil {
		return err
	}
	if len(d.Exemplars) > 0 {
		fmt.Fprintln(w, "\nexemplars")
	}
	for _, e := range d.Exemplars {
		fmt.Fprintf(w, "  %s  %g  trace %s\n", e.Time.Format(time.RFC3339Nano), e.Value, clean(e.TraceID))
	}
	fmt.Fprintf(w, "\n%s\n", clean(d.Explanation))
	if d.Trace == nil {
		return nil
	}
	fmt.Fprintln(w)
	printTrace(w, d.Trace, false)
	fmt.Fprintln(w)
	return printTraceLogs(w, d.Trace.TraceID, d.Logs, d.LogsCut)
}
