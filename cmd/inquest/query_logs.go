package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"inquest/api/client"
	"inquest/record"
)

type logsOptions struct {
	askOptions
	rangeOptions
	limit int
	order string
}

func newLogsCommand() *cobra.Command {
	var opts logsOptions
	cmd := &cobra.Command{
		Use:   "logs QUERY",
		Short: "Search records with LogsQL",
		Long: `logs searches records: log records, spans, exemplars, findings and verdicts. The
query is LogsQL (https://docs.victoriametrics.com/victorialogs/logsql/). Fields
are named as the sender wrote them, with record.type, trace_id, span_id,
severity, name, status and duration_ns from inquest.`,
		Example: `  inquest logs error
  inquest logs '{"service.name"="checkout"} severity:ERROR' --from 30m
  inquest logs '{"record.type"="span"} status:=error | stats by ("service.name") count() n'
  inquest logs 'trace_id:=4bf92f3577b34da6a3ce929d0e0e4736' --from "" --output json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return runLogs(cmd, opts, args[0]) },
	}
	opts.askOptions.register(cmd)
	opts.rangeOptions.register(cmd, "1h")
	cmd.Flags().IntVarP(&opts.limit, "limit", "n", 100, "largest `number` of records")
	cmd.Flags().StringVar(&opts.order, "order", "auto", "which records when there are more than --limit: newest, oldest, or none for the query's own order; auto is newest unless the query has pipes")
	return cmd
}

func runLogs(cmd *cobra.Command, opts logsOptions, query string) error {
	c, err := opts.client()
	if err != nil {
		return err
	}
	from, to, err := opts.times(time.Now())
	if err != nil {
		return err
	}
	if opts.limit < 1 {
		return fmt.Errorf("--limit is %d: it must be at least 1", opts.limit)
	}
	q := client.RecordQuery{LogsQL: query, From: from, To: to, Limit: opts.limit}
	switch opts.order {
	case "newest", "oldest":
		q.Order = opts.order
	case "auto":
		if !hasPipe(query) {
			q.Order = "newest"
		}
	case "none":
	default:
		return fmt.Errorf("--order is %q: it is auto, newest, oldest or none", opts.order)
	}
	var rows []json.RawMessage
	out := cmd.OutOrStdout()
	print := printRecord
	if opts.output == "json" {
		print = func(w io.Writer, row json.RawMessage) error {
			_, err := fmt.Fprintf(w, "%s\n", row)
			return err
		}
	}
	info, err := c.Records(cmd.Context(), q, func(row json.RawMessage) error {
		if q.Order == "newest" { // they come newest first and read better the other way
			rows = append(rows, slices.Clone(row))
			return nil
		}
		return print(out, row)
	})
	for _, row := range slices.Backward(rows) {
		if err := print(out, row); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	if info.Lag != "" {
		warn(cmd, []string{info.Lag})
	}
	if info.Cut {
		warn(cmd, []string{fmt.Sprintf("there are more than %d records: raise --limit, or narrow the query or the range", opts.limit)})
	}
	return nil
}

// hasPipe tells whether a LogsQL query has pipes of its own: a | outside of
// quotes and parentheses.
func hasPipe(query string) bool {
	depth := 0
	for i := 0; i < len(query); i++ {
		switch c := query[i]; c {
		case '"', '\'', '`':
			for i++; i < len(query) && query[i] != c; i++ {
				if query[i] == '\\' && c != '`' {
					i++
				}
			}
		case '(':
			depth++
		case ')':
			depth--
		case '|':
			if depth <= 0 {
				return true
			}
		}
	}
	return false
}

// shownInHead are the fields that a record's line begins with, and those that
// only say how it was stored.
var shownInHead = map[string]bool{
	record.FieldTime: true, record.FieldBody: true, record.FieldType: true, "service.name": true,
	record.FieldSeverity: true, record.FieldSeverityNumber: true,
	record.FieldSeq: true, "_stream": true, "_stream_id": true,
}

// printRecord prints one record on one line. What is not a record, as the row
// of an aggregation, is printed as name=value.
func printRecord(w io.Writer, data json.RawMessage) error {
	var row map[string]string
	if err := json.Unmarshal(data, &row); err != nil {
		return fmt.Errorf("cannot read a record: %w", err)
	}
	var parts []string
	add := func(s string) {
		if s != "" {
			parts = append(parts, clean(strings.ReplaceAll(s, "\n", "⏎")))
		}
	}
	add(row[record.FieldTime])
	add(row["service.name"])
	if t := row[record.FieldType]; t != string(record.TypeLog) {
		add(t)
	}
	add(row[record.FieldSeverity])
	add(row[record.FieldBody])
	names := make([]string, 0, len(row))
	for name := range row {
		if !shownInHead[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		v := row[name]
		if strings.ContainsAny(v, " \t\n\"") || v == "" {
			v = fmt.Sprintf("%q", v)
		}
		add(name + "=" + v)
	}
	_, err := fmt.Fprintln(w, strings.Join(parts, " "))
	return err
}
