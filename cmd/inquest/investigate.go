package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"inquest/api/apitype"
	"inquest/api/client"
	"inquest/verdict"
	"inquest/verdict/report"
)

// Exit statuses of investigate. Errors are 1, as everywhere.
const (
	exitSuspected    = 3
	exitInconclusive = 4
)

func newInvestigateCommand() *cobra.Command {
	var ask askOptions
	var span rangeOptions
	var baselines []string
	req := apitype.InvestigationRequest{}
	cmd := &cobra.Command{
		Use:   "investigate",
		Short: "Say what broke, with the evidence",
		Long: `investigate holds an inquest on what the recorder keeps of a stretch of time,
prints the report and stores the verdict.

The exit status is 0 for a confirmed verdict, 3 for a suspected one, 4 for an
inconclusive one, and 1 when the inquest could not be held.`,
		Example: `  inquest investigate --from 30m
  inquest investigate --from 2026-11-30T10:00:00Z --to 2026-11-30T10:20:00Z --symptom "chat answers time out"
  inquest investigate --from 20m --baseline 26h..25h --baseline 2h..1h
  inquest investigate --from 1h --service gateway -o markdown > report.md`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			format := ask.output
			if !slices.Contains(report.Formats, format) {
				return fmt.Errorf("--output is %q: it is one of %s", format, strings.Join(report.Formats, ", "))
			}
			c, err := client.New(ask.server, nil)
			if err != nil {
				return err
			}
			from, to, err := span.times(time.Now())
			if err != nil {
				return err
			}
			req.From, req.To = from.Format(time.RFC3339Nano), to.Format(time.RFC3339Nano)
			for _, b := range baselines {
				from, to, ok := strings.Cut(b, "..")
				if !ok {
					return fmt.Errorf("--baseline is %q: write it as FROM..TO, for example 3h..2h", b)
				}
				req.Baseline = append(req.Baseline, apitype.Stretch{From: from, To: to})
			}
			inv, answer, err := c.Investigate(cmd.Context(), req)
			if err != nil {
				return err
			}
			warn(cmd, answer.Warnings)
			if err := report.WriteEncoded(cmd.OutOrStdout(), inv.Verdict, format); err != nil {
				return err
			}
			if format == "text" {
				fmt.Fprintf(cmd.OutOrStdout(), "\nStored as %s: %s/api/v1/investigations/%s?format=html\n", inv.ID, c.Server(), inv.ID)
			}
			return exitOf(verdict.State(inv.State))
		},
	}
	ask.register(cmd)
	cmd.Flags().Lookup("output").Usage = "`form` of the report: " + strings.Join(report.Formats, ", ")
	span.register(cmd, "1h")
	cmd.Flags().StringVar(&req.Symptom, "symptom", "", "what was noticed, in words")
	cmd.Flags().StringVar(&req.Service, "service", "", "service at which it was noticed")
	cmd.Flags().StringVar(&req.Operation, "operation", "", "operation at which it was noticed")
	cmd.Flags().StringVar(&req.Onset, "onset", "", "`time` at which it began, where that is known")
	cmd.Flags().StringArrayVar(&baselines, "baseline", nil, "stretch of normal operation as `FROM..TO`, to compare with; may be given more than once (default: the hour before)")
	cmd.Flags().StringVar(&req.Metric, "metric", "", "metric in which it was noticed")
	return cmd
}

func exitOf(s verdict.State) error {
	switch s {
	case verdict.StateConfirmed:
		return nil
	case verdict.StateSuspected:
		return &exitError{code: exitSuspected}
	default:
		return &exitError{code: exitInconclusive}
	}
}
