package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"inquest/bench/nezha"
	"inquest/bench/replay"
)

func newImportCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import",
		Short: "Load a recording into a running recorder",
	}
	cmd.AddCommand(newImportNezhaCommand())
	return cmd
}

func newImportNezhaCommand() *cobra.Command {
	var endpoint string
	cmd := &cobra.Command{
		Use:   "nezha DIR",
		Short: "Load the public Nezha data set (TrainTicket)",
		Long: `import nezha sends the spans, log records and metrics of the data set over OTLP,
on the way of live data. The recording is of 2023: start the recorder with a
retention that reaches back so far.`,
		Example: `  inquest serve --data ./nezha --set extensions::inquest::retention=50000h
  inquest import nezha ./nezha-trainticket`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return importNezha(cmd, args[0], endpoint)
		},
	}
	cmd.Flags().StringVar(&endpoint, "endpoint", "localhost:4317", "OTLP gRPC `address` of the recorder, without TLS")
	return cmd
}

func importNezha(cmd *cobra.Command, dir, endpoint string) error {
	sender, err := replay.Dial(endpoint)
	if err != nil {
		return err
	}
	defer sender.Close()
	start := time.Now()
	err = nezha.Requests(cmd.Context(), dir, func(ctx context.Context, r nezha.Request) error {
		switch {
		case r.Traces != nil:
			return sender.Traces(ctx, *r.Traces)
		case r.Logs != nil:
			return sender.Logs(ctx, *r.Logs)
		default:
			return sender.Metrics(ctx, *r.Metrics)
		}
	})
	sent := sender.Sent
	fmt.Fprintf(cmd.OutOrStdout(), "acknowledged %d spans, %d log records, %d points in %.1f s\n", sent.Spans, sent.Logs, sent.Points, time.Since(start).Seconds())
	if err != nil {
		return err
	}
	if sent.Rejected > 0 {
		return fmt.Errorf("%d records were rejected (%s): start the recorder with --set extensions::inquest::retention=50000h", sent.Rejected, sent.Reason)
	}
	return nil
}
