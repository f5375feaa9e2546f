package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"inquest/api/apitype"
	"inquest/api/client"
)

// newQueryCommands are the commands that ask a running server.
func newQueryCommands() []*cobra.Command {
	return []*cobra.Command{
		newLogsCommand(),
		newMetricsCommand(),
		newTraceCommand(),
		newDrilldownCommand(),
		newStatusCommand(),
	}
}

// askOptions are the flags that all commands that ask a server have.
type askOptions struct {
	server string
	output string
}

// serverEnv names the server when --server does not.
const serverEnv = "INQUEST_SERVER"

func (o *askOptions) register(cmd *cobra.Command) {
	server := os.Getenv(serverEnv)
	if server == "" {
		server = client.DefaultServer
	}
	cmd.Flags().StringVar(&o.server, "server", server, "`URL` of the server to ask; the environment variable "+serverEnv+" sets the default")
	cmd.Flags().StringVarP(&o.output, "output", "o", "text", "`form` of the answer: text or json")
}

func (o *askOptions) client() (*client.Client, error) {
	if o.output != "text" && o.output != "json" {
		return nil, fmt.Errorf("--output is %q: it is text or json", o.output)
	}
	return client.New(o.server, nil)
}

// rangeOptions are the flags of commands that ask about a range of time.
type rangeOptions struct {
	from, to string
}

const timeHelp = "2026-01-02T15:04:05Z, a Unix time, now, or 15m for 15 minutes ago"

func (o *rangeOptions) register(cmd *cobra.Command, from string) {
	cmd.Flags().StringVar(&o.from, "from", from, "`start` of the range: "+timeHelp)
	cmd.Flags().StringVar(&o.to, "to", "now", "`end` of the range, as --from")
}

// times reads the range. An empty flag leaves its side open (the zero time).
func (o *rangeOptions) times(now time.Time) (from, to time.Time, err error) {
	if from, err = timeFlag("from", o.from, now); err != nil {
		return from, to, err
	}
	if to, err = timeFlag("to", o.to, now); err != nil {
		return from, to, err
	}
	if !from.IsZero() && !to.IsZero() && !from.Before(to) {
		return from, to, fmt.Errorf("--from %s is not before --to %s", from.Format(time.RFC3339), to.Format(time.RFC3339))
	}
	return from, to, nil
}

func timeFlag(name, value string, now time.Time) (time.Time, error) {
	if value == "" {
		return time.Time{}, nil
	}
	t, err := apitype.ParseTime(value, now)
	if err != nil {
		return t, fmt.Errorf("--%s: %w", name, err)
	}
	return t, nil
}

// printJSON prints a value for programs.
func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// warn tells what a person should know and a program reading the output need not.
func warn(cmd *cobra.Command, warnings []string) {
	for _, w := range warnings {
		fmt.Fprintln(cmd.ErrOrStderr(), "warning:", clean(w))
	}
}

// clean makes text that senders wrote safe for a terminal: control characters
// could move the cursor or rename the window.
func clean(s string) string {
	safe := true
	for _, r := range s {
		if control(r) {
			safe = false
			break
		}
	}
	if safe {
		return s
	}
	out := make([]rune, 0, len(s))
	for _, r := range s {
		if control(r) {
			r = '\uFFFD'
		}
		out = append(out, r)
	}
	return string(out)
}

func control(r rune) bool {
	return r < ' ' && r != '\t' || r >= 0x7f && r < 0xa0
}
