package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"inquest/api/apitype"
	"inquest/api/client"
)

func newDeadLettersCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "deadletters",
		Aliases: []string{"deadletter"},
		Short:   "Records that could not be stored as they came: list, count, re-drive, discard",
		Long: `A record that is refused is kept whole as a dead letter, with the reason. After
the cause is mended (a schema, a limit), redrive admits it again.`,
	}
	cmd.AddCommand(newLettersCount(), newLettersList(), newLettersRedrive(), newLettersDiscard())
	return cmd
}

// letterOptions are the flags that choose dead letters.
type letterOptions struct {
	ask    askOptions
	times  rangeOptions
	filter client.LetterFilter
}

func (o *letterOptions) register(cmd *cobra.Command) {
	o.ask.register(cmd)
	cmd.Flags().StringVar(&o.times.from, "from", "", "`start` of the time in which they came: "+timeHelp)
	cmd.Flags().StringVar(&o.times.to, "to", "", "`end` of that time, as --from")
	cmd.Flags().StringSliceVar(&o.filter.IDs, "id", nil, "`id`s of letters")
	cmd.Flags().StringVar(&o.filter.Reason, "reason", "", "`reason`, as schema.required")
	cmd.Flags().StringVar(&o.filter.Service, "service", "", "`service` that sent them")
	cmd.Flags().StringVar(&o.filter.Source, "source", "", "`way` that they came, as otlp/grpc")
	cmd.Flags().StringVar(&o.filter.Kind, "kind", "", "`kind` of record: event, log, span or point")
}

func (o *letterOptions) registerAll(cmd *cobra.Command) {
	o.register(cmd)
	cmd.Flags().BoolVar(&o.filter.All, "all", false, "all open letters")
}

func (o *letterOptions) client() (c *client.Client, err error) {
	if o.filter.From, o.filter.To, err = o.times.times(time.Now()); err != nil {
		return nil, err
	}
	return o.ask.client()
}

func newLettersCount() *cobra.Command {
	var opts letterOptions
	cmd := &cobra.Command{
		Use:   "count",
		Short: "Count open dead letters by reason and service",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := opts.client()
			if err != nil {
				return err
			}
			counts, err := c.DeadLetterCounts(cmd.Context(), opts.filter)
			if err != nil {
				return err
			}
			if opts.ask.output == "json" {
				return printJSON(cmd.OutOrStdout(), counts)
			}
			return printCounts(cmd.OutOrStdout(), counts)
		},
	}
	opts.register(cmd)
	return cmd
}

func printCounts(w io.Writer, counts []apitype.DeadLetterCount) error {
	if len(counts) == 0 {
		_, err := fmt.Fprintln(w, "There are no open dead letters.")
		return err
	}
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "REASON\tSERVICE\tLETTERS\tRECORDS\tLAST")
	for _, c := range counts {
		fmt.Fprintf(tab, "%s\t%s\t%d\t%d\t%s\n", clean(c.Reason), clean(c.Service), c.Letters, c.Records, clean(c.Last))
	}
	return tab.Flush()
}

func newLettersList() *cobra.Command {
	var opts letterOptions
	var limit int
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List open dead letters, the newest first",
		Example: "  inquest deadletters list --reason schema.required --output json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := opts.client()
			if err != nil {
				return err
			}
			list, err := c.DeadLetters(cmd.Context(), opts.filter, limit)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if opts.ask.output == "json" {
				return printJSON(out, list)
			}
			for _, l := range list {
				fmt.Fprintf(out, "%s  %s  %s %s  %s\n    %s\n", clean(l.ID), l.Received.UTC().Format(time.RFC3339), clean(l.Service), clean(l.Kind), clean(l.Reason), clean(l.Detail))
			}
			return nil
		},
	}
	opts.register(cmd)
	cmd.Flags().IntVar(&limit, "limit", 100, "largest `number` of letters")
	return cmd
}

func newLettersRedrive() *cobra.Command {
	var opts letterOptions
	cmd := &cobra.Command{
		Use:     "redrive",
		Short:   "Admit dead letters again",
		Example: "  inquest deadletters redrive --reason schema.required",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := opts.client()
			if err != nil {
				return err
			}
			out, err := c.RedriveDeadLetters(cmd.Context(), opts.filter)
			if err != nil {
				return err
			}
			w := cmd.OutOrStdout()
			if opts.ask.output == "json" {
				return printJSON(w, out)
			}
			fmt.Fprintf(w, "%d letters tried, %d done, %d records stored.\n", out.Letters, out.Done, out.Records)
			for _, reason := range slices.Sorted(maps.Keys(out.Refused)) {
				fmt.Fprintf(w, "  still refused: %d %s\n", out.Refused[reason], clean(reason))
			}
			return nil
		},
	}
	opts.registerAll(cmd)
	return cmd
}

func newLettersDiscard() *cobra.Command {
	var opts letterOptions
	var why string
	cmd := &cobra.Command{
		Use:   "discard",
		Short: "Close dead letters without storing their records",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := opts.client()
			if err != nil {
				return err
			}
			out, err := c.DiscardDeadLetters(cmd.Context(), opts.filter, why)
			if err != nil {
				return err
			}
			if opts.ask.output == "json" {
				return printJSON(cmd.OutOrStdout(), out)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d letters discarded.\n", out.Letters)
			return err
		},
	}
	opts.registerAll(cmd)
	cmd.Flags().StringVar(&why, "why", "", "`reason` that is noted with them")
	return cmd
}
