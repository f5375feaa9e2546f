// Command incident sends the telemetry of a small AI-serving system in which
// something breaks to a recorder. It prints the window of the incident, two
// times in RFC 3339, on its output; what it did on its error output.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"inquest/lab/incident"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "incident:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	names := make([]string, len(incident.Faults))
	for i, f := range incident.Faults {
		names[i] = string(f)
	}
	endpoint := flag.String("endpoint", "localhost:4317", "where OTLP over gRPC is taken")
	fault := flag.String("fault", string(incident.FaultCPU), "what breaks: "+strings.Join(names, ", "))
	seed := flag.Uint64("seed", 1, "seed of all randomness")
	rate := flag.Float64("rate", 0, "questions per second (default 2.5)")
	end := flag.String("end", "", "last moment of the incident, RFC 3339 (default now)")
	flag.Parse()

	opt := incident.Options{End: time.Now().UTC().Truncate(time.Second), Seed: *seed, Rate: *rate}
	var err error
	if opt.Fault, err = incident.ParseFault(*fault); err != nil {
		return err
	}
	if *end != "" {
		if opt.End, err = time.Parse(time.RFC3339, *end); err != nil {
			return fmt.Errorf("cannot read --end, write it like 2026-11-30T10:00:00Z: %w", err)
		}
	}
	t := incident.Generate(opt)
	exporters, err := incident.Dial(ctx, *endpoint)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := t.Send(ctx, exporters); err != nil {
		return err
	}
	points := 0
	for _, s := range t.Scrapes {
		points += len(s)
	}
	fmt.Fprintf(os.Stderr, "sent %d questions (%d failed): %d spans, %d log records, %d readings of metrics in %.1f s\n",
		t.Questions, t.Failed, len(t.Spans), len(t.Logs), points, time.Since(began).Seconds())
	fmt.Println(t.Onset.Format(time.RFC3339), t.End.Format(time.RFC3339))
	return exporters.Close(ctx)
}
