package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"inquest/bench/replay"
	"inquest/catalog"
	"inquest/lab/export"
	"inquest/lab/fault"
	"inquest/lab/scenario"
	"inquest/lab/system"
	"inquest/verdict"
	"inquest/verdict/report"
)

func newLabCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lab",
		Short: "Let a simulated AI service break, and look at what it tells",
		Long: `lab runs a simulated AI-serving system of 20 services in virtual time and breaks
it. docs/laboratory.md says what is simulated.`,
	}
	cmd.AddCommand(newLabListCommand(), newLabRunCommand())
	return cmd
}

// labEntry is a line of lab list.
type labEntry struct {
	Name  string `json:"name"`
	Kind  string `json:"kind"` // fault or healthy
	Title string `json:"title,omitempty"`
}

func newLabListCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List what can be run",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := labEntries()
			if err != nil {
				return err
			}
			switch output {
			case "json":
				return printJSON(cmd.OutOrStdout(), all)
			case "text":
				w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
				for _, e := range all {
					fmt.Fprintf(w, "%s\t%s\n", e.Name, e.Title)
				}
				return w.Flush()
			}
			return fmt.Errorf("--output is %q: it is text or json", output)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "text", "`form` of the list: text or json")
	return cmd
}

func labEntries() ([]labEntry, error) {
	known, err := catalog.Default()
	if err != nil {
		return nil, err
	}
	var out []labEntry
	for _, f := range fault.All() {
		title := ""
		if k, ok := known.Get(f.ID); ok {
			title = k.Title
		}
		for v := range f.Variants {
			out = append(out, labEntry{scenario.Part{Fault: f, Variant: v}.Label(), "fault", title})
		}
	}
	for _, s := range scenario.Healthy(0) {
		out = append(out, labEntry{s.Name, "healthy", "nothing breaks"})
	}
	return out, nil
}

// labRun are the flags of lab run.
type labRun struct {
	seed                      uint64
	workloads, out, to, start string
}

func newLabRunCommand() *cobra.Command {
	var o labRun
	cmd := &cobra.Command{
		Use:   "run NAME",
		Short: "Run a fault and judge it, send it to a recorder, or write it to files",
		Long: `lab run lets the system live for 35 minutes of its own time, the last five of them
with the fault. NAME is FAULT/VARIANT, FAULT (the seed chooses the variant) or the name
of a healthy run; inquest lab list prints them. The same name and seed give the same
telemetry.

Without --to and --out, the embedded engine judges it and the report is printed.`,
		Example: `  inquest lab run cpu-fallback --seed 7
  inquest lab run "vector-pool-exhaustion/leak" --to localhost:4317
  inquest lab run kv-preemption-storm --out ./incident`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return runLab(cmd, args[0], o) },
	}
	f := cmd.Flags()
	f.Uint64Var(&o.seed, "seed", 1, "`number` that the run follows from")
	f.StringVar(&o.workloads, "workloads", "", "`folder` with recorded requests to draw lengths from (see bench lab)")
	f.StringVar(&o.out, "out", "", "new `folder` for traces.jsonl, logs.jsonl, metrics.jsonl (OTLP/JSON) and truth.json")
	f.StringVar(&o.to, "to", "", "OTLP gRPC `address` of a recorder to send to, without TLS")
	f.StringVar(&o.start, "start", "", "`time` at which the run begins, RFC 3339 (default with --to: so that it ends now; else a fixed day)")
	cmd.MarkFlagsMutuallyExclusive("out", "to")
	return cmd
}

func runLab(cmd *cobra.Command, name string, o labRun) error {
	s, err := scenario.Find(name, o.seed)
	if err != nil {
		return err
	}
	var opt scenario.Options
	if o.workloads != "" {
		if opt.Sizes, err = system.LoadSizes(o.workloads); err != nil {
			return err
		}
	}
	start := time.Now().Add(-scenario.Duration - time.Second)
	if o.start != "" {
		if start, err = time.Parse(time.RFC3339, o.start); err != nil {
			return fmt.Errorf("--start is %q: write it as 2026-03-02T09:00:00Z", o.start)
		}
	}
	r := s.Run(opt)
	if o.start != "" || o.to != "" {
		r.MoveTo(start.UTC().Truncate(time.Second))
	}
	w := cmd.OutOrStdout()
	switch {
	case o.out != "":
		if err := export.Write(s, r, o.out); err != nil {
			return err
		}
	case o.to != "":
		if err := sendLab(cmd.Context(), w, r, o.to); err != nil {
			return err
		}
	default:
		if err := judgeLab(cmd.Context(), w, r); err != nil {
			return err
		}
	}
	tellTruth(w, export.TruthOf(s, r), o.to != "")
	return nil
}

func judgeLab(ctx context.Context, w io.Writer, r *scenario.Run) error {
	src, err := r.Source()
	if err != nil {
		return err
	}
	e, err := verdict.New(src, verdict.Options{})
	if err != nil {
		return err
	}
	v, err := e.Investigate(ctx, r.Question)
	if err != nil {
		return err
	}
	return report.Write(w, v, "text")
}

// labSender gives requests to a recorder.
type labSender struct {
	ctx context.Context
	*replay.Sender
}

func (s labSender) Traces(td ptrace.Traces) error    { return s.Sender.Traces(s.ctx, td) }
func (s labSender) Logs(ld plog.Logs) error          { return s.Sender.Logs(s.ctx, ld) }
func (s labSender) Metrics(md pmetric.Metrics) error { return s.Sender.Metrics(s.ctx, md) }

func sendLab(ctx context.Context, w io.Writer, r *scenario.Run, to string) error {
	sender, err := replay.Dial(to)
	if err != nil {
		return err
	}
	defer sender.Close()
	err = export.Send(r, labSender{ctx, sender})
	sent := sender.Sent
	fmt.Fprintf(w, "acknowledged %d spans, %d log records, %d points\n", sent.Spans, sent.Logs, sent.Points)
	if err != nil {
		return fmt.Errorf("the run was not sent whole: %w", err)
	}
	if sent.Rejected > 0 {
		return fmt.Errorf("%d records were rejected: %s", sent.Rejected, sent.Reason)
	}
	return nil
}

// tellTruth says what is true of a run and, when it was sent, how to ask for it.
func tellTruth(w io.Writer, t export.Truth, ask bool) {
	fmt.Fprintf(w, "\nTrue of %s with seed %d, from %s:\n", t.Scenario, t.Seed, t.Onset.Format(time.RFC3339))
	if len(t.Causes) == 0 {
		fmt.Fprintln(w, "  nothing is broken")
	}
	for _, c := range t.Causes {
		entities := slices.Clone(c.Entities)
		slices.Sort(entities)
		fmt.Fprintf(w, "  %s at %s\n", strings.Join(c.Faults, " or "), strings.Join(slices.Compact(entities), " or "))
	}
	if !ask {
		return
	}
	stamp := func(t time.Time) string { return t.Format(time.RFC3339) }
	fmt.Fprintf(w, "\nAsk: inquest investigate --from %s --to %s", stamp(t.From), stamp(t.To))
	for _, b := range t.Baseline {
		fmt.Fprintf(w, " --baseline %s..%s", stamp(b.From), stamp(b.To))
	}
	fmt.Fprintln(w)
}
