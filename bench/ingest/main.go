// Command ingest measures how fast inquest records logs and spans, next to
// VictoriaLogs on the same machine in the same run. Both servers are real
// processes that get the same bytes over OTLP; inquest answers when a batch is
// synced to disk, VictoriaLogs before that.
//
//	go run ./bench/ingest -inquest bin/inquest -victorialogs build/victoria-logs
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"time"
)

type options struct {
	inquest, victoriaLogs string
	work, jsonPath        string
	rounds, batches       int
	batchSize, senders    int
	sample                string
	signals               []string
}

func main() {
	var o options
	only := flag.String("signal", "", "measure `logs` or spans only")
	flag.StringVar(&o.inquest, "inquest", "bin/inquest", "`path` of inquest's binary")
	flag.StringVar(&o.victoriaLogs, "victorialogs", "build/victoria-logs", "`path` of VictoriaLogs' binary")
	flag.StringVar(&o.work, "work", os.TempDir(), "`folder` on the disk to measure on; a folder is made in it and removed at the end")
	flag.StringVar(&o.jsonPath, "json", "", "write the results to this `file` too")
	flag.StringVar(&o.sample, "data", os.Getenv("INQUEST_DATA"), "`folder` of the public data sets; with it, bodies are real log lines")
	flag.IntVar(&o.rounds, "rounds", 5, "how often each is measured")
	flag.IntVar(&o.batches, "batches", 600, "batches of one measurement")
	flag.IntVar(&o.batchSize, "batch", 500, "records of a batch")
	flag.IntVar(&o.senders, "senders", 8, "senders at once")
	flag.Parse()
	o.signals = []string{"logs", "spans"}
	if *only != "" {
		o.signals = []string{*only}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "ingest:", err)
		os.Exit(1)
	}
}

func (o options) validate() error {
	if o.rounds < 1 || o.batches < 1 || o.batchSize < 1 || o.senders < 1 {
		return errors.New("rounds, batches, batch and senders must be at least 1")
	}
	for _, s := range o.signals {
		if s != "logs" && s != "spans" {
			return fmt.Errorf("signal is %q: it is logs or spans", s)
		}
	}
	for _, path := range []string{o.inquest, o.victoriaLogs} {
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("cannot find a server to measure, see bench/README.md for how to build it: %w", err)
		}
	}
	return nil
}

// contender is one row of a table: a server, the protocol, and what is sent.
type contender struct {
	name   string
	launch func(ctx context.Context, o options, dir string) (*server, error)
	grpc   bool
	load   *workload
}

func run(ctx context.Context, o options) error {
	if err := o.validate(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(o.work, "inquest-bench-ingest-")
	if err != nil {
		return fmt.Errorf("cannot make a folder to measure in: %w", err)
	}
	defer os.RemoveAll(dir)
	lines, err := sampleLines(o.sample)
	if err != nil {
		return err
	}
	res := result{
		Time: time.Now().UTC(), CPUs: runtime.NumCPU(), Rounds: o.rounds,
		BatchSize: o.batchSize, Batches: o.batches, Senders: o.senders, RealBodies: len(lines) > 0,
	}
	for _, sig := range o.signals {
		s, err := measureSignal(ctx, o, sig, dir, lines)
		if err != nil {
			return fmt.Errorf("cannot measure %s: %w", sig, err)
		}
		res.Signals = append(res.Signals, s)
	}
	res.print(os.Stdout)
	if o.jsonPath == "" {
		return nil
	}
	data, err := json.MarshalIndent(res, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(o.jsonPath, append(data, '\n'), 0o644)
}

// measureSignal runs all contenders o.rounds times, each time in the opposite
// order, so that what the machine does over time favours none.
func measureSignal(ctx context.Context, o options, sig, dir string, lines []string) (signalResult, error) {
	g := newGenerator(lines, o.batchSize)
	own := g.logs(o.batches)
	peer := own
	if sig == "spans" {
		g = newGenerator(lines, o.batchSize)
		own, peer = g.spans(o.batches)
	}
	contenders := []contender{
		{name: peerName, launch: startVictoriaLogs, load: peer},
		{name: "inquest http", launch: startInquest, load: own},
		{name: "inquest grpc", launch: startInquest, load: own, grpc: true},
	}
	out := signalResult{Signal: sig, Records: own.records, BytesPerRecord: own.bytesPerRecord(), PeerBytesPerRecord: peer.bytesPerRecord()}
	runs := map[string][]measurement{}
	for round := range o.rounds {
		for _, c := range contenders {
			fmt.Fprintf(os.Stderr, "%s, round %d of %d: %s\n", sig, round+1, o.rounds, c.name)
			m, err := measure(ctx, o, c, filepath.Join(dir, "data"), round == o.rounds-1)
			if err != nil {
				return out, fmt.Errorf("%s: %w", c.name, err)
			}
			runs[c.name] = append(runs[c.name], m)
		}
		slices.Reverse(contenders)
	}
	for _, name := range []string{peerName, "inquest http", "inquest grpc"} {
		out.Rows = append(out.Rows, summarize(name, runs[name]))
	}
	out.compare()
	return out, nil
}
