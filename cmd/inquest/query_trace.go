package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"inquest/admit/bind"
	"inquest/api/apitype"
)

func newTraceCommand() *cobra.Command {
	var opts askOptions
	var attributes, logs bool
	cmd := &cobra.Command{
		Use:   "trace ID",
		Short: "Show a trace as a waterfall",
		Example: `  inquest trace 4bf92f3577b34da6a3ce929d0e0e4736
  inquest trace 4bf92f3577b34da6a3ce929d0e0e4736 --attributes`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := opts.client()
			if err != nil {
				return err
			}
			t, answer, err := c.Trace(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			warn(cmd, answer.Warnings)
			if opts.output == "json" {
				return printJSON(cmd.OutOrStdout(), t)
			}
			printTrace(cmd.OutOrStdout(), &t, attributes)
			if logs {
				fmt.Fprintln(cmd.OutOrStdout())
				return printTraceLogs(cmd.OutOrStdout(), t.TraceID, t.Logs, t.LogsCut)
			}
			if len(t.Logs) > 0 {
				fmt.Fprintf(cmd.OutOrStdout(), "%s: --logs shows them\n", countLogs(t.Logs))
			}
			return nil
		},
	}
	opts.register(cmd)
	cmd.Flags().BoolVar(&attributes, "attributes", false, "show attributes and events of each span")
	cmd.Flags().BoolVar(&logs, "logs", false, "show the trace's log records, also those that only the evidence binds to it")
	return cmd
}

// countLogs says how many log records there are, and how many of them carry no
// trace id.
func countLogs(logs []map[string]string) string {
	bound := 0
	for _, row := range logs {
		if row[bind.Attribute] != "" {
			bound++
		}
	}
	text := plural(len(logs), "log record") + " of the trace"
	if bound > 0 {
		text += fmt.Sprintf(", %d of them bound by evidence", bound)
	}
	return text
}

func printTraceLogs(w io.Writer, traceID string, logs []map[string]string, cut bool) error {
	fmt.Fprintln(w, countLogs(logs))
	for _, row := range logs {
		data, err := json.Marshal(row)
		if err != nil {
			return fmt.Errorf("cannot print a record: %w", err)
		}
		if err := printRecord(w, data); err != nil {
			return err
		}
	}
	if cut {
		fmt.Fprintf(w, "there are more: inquest logs 'trace_id:=%s' --from \"\"\n", traceID)
	}
	return nil
}

const barWidth = 40

// printTrace prints a waterfall: a line for each span with its place in time.
func printTrace(w io.Writer, t *apitype.Trace, attributes bool) {
	fmt.Fprintf(w, "trace %s  %s  %s  %s  %s\n", t.TraceID, t.Start.Format(time.RFC3339Nano),
		time.Duration(t.DurationNS), plural(len(t.Spans), "span"), plural(len(t.Services), "service"))
	width := 0
	heads := make([]string, len(t.Spans))
	for i := range t.Spans {
		heads[i] = spanHead(&t.Spans[i])
		width = max(width, utf8.RuneCountInString(heads[i]))
	}
	width = min(width, 70)
	for i := range t.Spans {
		sp := &t.Spans[i]
		fmt.Fprintf(w, "%s  %s  %s%s\n", pad(heads[i], width), bar(t, sp), time.Duration(sp.DurationNS), spanNotes(sp))
		if attributes {
			printAttributes(w, sp)
		}
	}
	if len(t.MissingParents) > 0 {
		fmt.Fprintf(w, "not stored, but named as parent: %s\n", clean(strings.Join(t.MissingParents, ", ")))
	}
	if t.Cut {
		fmt.Fprintln(w, "the trace has more spans than can be shown")
	}
}

func plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

func spanHead(sp *apitype.Span) string {
	return strings.Repeat("  ", min(sp.Depth, 20)) + clean(sp.Service+" "+strings.ReplaceAll(sp.Name, "\n", " "))
}

// pad makes text exactly width runes long.
func pad(s string, width int) string {
	n := utf8.RuneCountInString(s)
	if n > width {
		return string([]rune(s)[:width-1]) + "…"
	}
	return s + strings.Repeat(" ", width-n)
}

// bar draws where a span lies in its trace. Every span shows, however short.
func bar(t *apitype.Trace, sp *apitype.Span) string {
	total := max(float64(t.DurationNS), 1)
	from := min(int(float64(sp.OffsetNS)/total*barWidth), barWidth-1)
	n := int(float64(max(sp.DurationNS, 0))/total*barWidth + 0.5)
	n = min(max(n, 1), barWidth-from)
	return "|" + strings.Repeat(" ", from) + strings.Repeat("█", n) + strings.Repeat(" ", barWidth-from-n) + "|"
}

func spanNotes(sp *apitype.Span) string {
	var notes []string
	if sp.Status == "error" {
		note := "ERROR"
		if sp.StatusMessage != "" {
			note += ": " + clean(strings.ReplaceAll(sp.StatusMessage, "\n", " "))
		}
		notes = append(notes, note)
	}
	if len(sp.Children) > 0 {
		notes = append(notes, "self "+time.Duration(sp.SelfNS).String())
	}
	if sp.Orphan {
		notes = append(notes, "parent missing")
	}
	if len(notes) == 0 {
		return ""
	}
	return "  " + strings.Join(notes, "  ")
}

func printAttributes(w io.Writer, sp *apitype.Span) {
	indent := strings.Repeat("  ", min(sp.Depth, 20)+2)
	names := make([]string, 0, len(sp.Attributes))
	for name := range sp.Attributes {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(w, "%s%s=%q\n", indent, clean(name), sp.Attributes[name])
	}
	for _, e := range sp.Events {
		fmt.Fprintf(w, "%s+%s event %s\n", indent, time.Unix(0, e.TimeNS).Sub(sp.Start), clean(e.Name))
	}
}
