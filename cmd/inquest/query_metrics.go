package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/spf13/cobra"

	"inquest/api/apitype"
	"inquest/api/client"
)

type metricsOptions struct {
	askOptions
	rangeOptions
	step string
}

func newMetricsCommand() *cobra.Command {
	var opts metricsOptions
	cmd := &cobra.Command{
		Use:   "metrics QUERY",
		Short: "Evaluate PromQL",
		Long: `metrics evaluates PromQL: at one time (--to, now by default), or over a range when
--from is given. Metrics from OpenTelemetry have Prometheus' names, as
http_server_request_duration_seconds_bucket.`,
		Example: `  inquest metrics 'sum by (job) (rate(http_server_request_duration_seconds_count[5m]))'
  inquest metrics up --from 1h --step 1m
  inquest metrics up --from 2026-01-02T15:00:00Z --to 2026-01-02T16:00:00Z --output json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return runMetrics(cmd, opts, args[0]) },
	}
	opts.askOptions.register(cmd)
	opts.rangeOptions.register(cmd, "")
	cmd.Flags().StringVar(&opts.step, "step", "", "`duration` between two points of a range (default: 60 points)")
	return cmd
}

func runMetrics(cmd *cobra.Command, opts metricsOptions, query string) error {
	c, err := opts.client()
	if err != nil {
		return err
	}
	from, to, err := opts.times(time.Now())
	if err != nil {
		return err
	}
	var res client.QueryResult
	var answer client.Answer
	if from.IsZero() {
		if opts.step != "" {
			return fmt.Errorf("--step needs a range: give --from too")
		}
		res, answer, err = c.QueryInstant(cmd.Context(), query, to)
	} else {
		if to.IsZero() {
			to = time.Now()
		}
		var step time.Duration
		if step, err = rangeStep(opts.step, to.Sub(from)); err != nil {
			return err
		}
		res, answer, err = c.QueryRange(cmd.Context(), query, from, to, step)
	}
	if err != nil {
		return err
	}
	warn(cmd, answer.Warnings)
	if opts.output == "json" {
		return printJSON(cmd.OutOrStdout(), res)
	}
	return printResult(cmd.OutOrStdout(), res)
}

func rangeStep(flag string, span time.Duration) (time.Duration, error) {
	if flag == "" {
		return max((span / 60).Truncate(time.Second), time.Second), nil
	}
	step, err := apitype.ParseDuration(flag)
	if err != nil {
		return 0, fmt.Errorf("--step: %w", err)
	}
	if step < time.Millisecond {
		return 0, fmt.Errorf("--step is %s: it must be at least 1ms", flag)
	}
	return step, nil
}

// point is [seconds, value] of Prometheus' encoding.
type point [2]json.RawMessage

func (p point) String() string {
	var seconds float64
	if err := json.Unmarshal(p[0], &seconds); err != nil {
		return "?"
	}
	return time.UnixMilli(int64(seconds*1000)).UTC().Format("2006-01-02T15:04:05.999Z") + " " + pointValue(p[1])
}

// pointValue is a float as it came, or a histogram in short.
func pointValue(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var h struct{ Count, Sum string }
	if json.Unmarshal(raw, &h) == nil {
		return "histogram count=" + h.Count + " sum=" + h.Sum
	}
	return string(raw)
}

type metricSeries struct {
	Metric     map[string]string `json:"metric"`
	Value      *point            `json:"value"`
	Histogram  *point            `json:"histogram"`
	Values     []point           `json:"values"`
	Histograms []point           `json:"histograms"`
}

func printResult(w io.Writer, res client.QueryResult) error {
	if res.ResultType == "scalar" || res.ResultType == "string" {
		var p point
		if err := json.Unmarshal(res.Result, &p); err != nil {
			return fmt.Errorf("cannot read the result: %w", err)
		}
		fmt.Fprintln(w, clean(pointValue(p[1])))
		return nil
	}
	var series []metricSeries
	if err := json.Unmarshal(res.Result, &series); err != nil {
		return fmt.Errorf("cannot read the result: %w", err)
	}
	if len(series) == 0 {
		fmt.Fprintln(w, "no series")
	}
	for _, s := range series {
		name := clean(metricText(s.Metric))
		for _, p := range []*point{s.Value, s.Histogram} {
			if p != nil {
				fmt.Fprintln(w, name, clean(pointValue(p[1])))
			}
		}
		if points := append(s.Values, s.Histograms...); len(points) > 0 {
			fmt.Fprintln(w, name)
			for _, p := range points {
				fmt.Fprintln(w, "  "+clean(p.String()))
			}
		}
	}
	return nil
}

// metricText writes labels as PromQL does.
func metricText(ls map[string]string) string {
	pairs := make([]string, 0, len(ls))
	for k, v := range ls {
		if k != model.MetricNameLabel {
			pairs = append(pairs, k+"="+strconv.Quote(v))
		}
	}
	slices.Sort(pairs)
	name := ls[model.MetricNameLabel]
	if len(pairs) == 0 && name != "" {
		return name
	}
	return name + "{" + strings.Join(pairs, ", ") + "}"
}
