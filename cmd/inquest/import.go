package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"inquest/bench/nezha"
	"inquest/bench/replay"
	"inquest/sensor"
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
	var recent bool
	cmd := &cobra.Command{
		Use:   "nezha DIR",
		Short: "Load the public Nezha data set (TrainTicket)",
		Long: `import nezha sends the spans, log records and metrics of the data set over OTLP,
on the way of live data. The recording is of 2023: start the recorder with a
retention that reaches back so far, or move the recording to the present with
--recent.`,
		Example: `  inquest serve --data ./nezha --set extensions::inquest::retention=50000h
  inquest import nezha ./nezha-trainticket`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return importNezha(cmd, args[0], endpoint, recent)
		},
	}
	cmd.Flags().StringVar(&endpoint, "endpoint", "localhost:4317", "OTLP gRPC `address` of the recorder, without TLS")
	cmd.Flags().BoolVar(&recent, "recent", false, "move the times so that the recording ends now")
	return cmd
}

func importNezha(cmd *cobra.Command, dir, endpoint string, recent bool) error {
	ctx := cmd.Context()
	sources, err := nezha.Sources(ctx, dir, nezha.Change{})
	if err != nil {
		return err
	}
	if recent {
		last := time.Time{}
		for _, src := range sources {
			if _, to := src.Bounds(); to.After(last) {
				last = to
			}
		}
		if sources, err = nezha.Sources(ctx, dir, nezha.Change{Shift: time.Since(last).Truncate(time.Minute)}); err != nil {
			return err
		}
	}
	sender, err := replay.Dial(endpoint)
	if err != nil {
		return err
	}
	defer sender.Close()
	start := time.Now()
	for _, date := range slices.Sorted(maps.Keys(sources)) {
		if err := importSource(ctx, sender, sources[date]); err != nil {
			return err
		}
	}
	sent := sender.Sent
	fmt.Fprintf(cmd.OutOrStdout(), "acknowledged %d spans, %d log records, %d points in %.1f s\n", sent.Spans, sent.Logs, sent.Points, time.Since(start).Seconds())
	if sent.Rejected > 0 {
		return fmt.Errorf("%d records were rejected (%s): start the recorder with --set extensions::inquest::retention=50000h, or import with --recent", sent.Rejected, sent.Reason)
	}
	return nil
}

// importSource sends one day: its traces and logs, and its metrics, which
// reach further.
func importSource(ctx context.Context, sender *replay.Sender, src *nezha.Source) error {
	from, to := src.Bounds()
	const margin = 12 * time.Hour
	return sender.Send(ctx, src, sensor.Range{From: from.Add(-margin).UnixNano(), To: to.Add(margin).UnixNano()})
}
