// Command inquest records the telemetry of AI services and says what broke.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// version is set at build time.
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, newRootCommand())
	stop()
	os.Exit(code)
}

// exitError is an error that asks for an exit status other than 1. A command
// that printed what it had to say leaves err nil.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

func run(ctx context.Context, root *cobra.Command) int {
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	var exit *exitError
	if errors.As(err, &exit) {
		if exit.err != nil {
			fmt.Fprintln(os.Stderr, "inquest:", exit.err)
		}
		return exit.code
	}
	fmt.Fprintln(os.Stderr, "inquest:", err)
	return 1
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "inquest",
		Short:         "Flight recorder and coroner for AI services",
		Long:          "inquest records the logs, metrics, traces and resource signals of AI services\nwithout losing an acknowledged record, and names the root cause when one breaks.",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(newServeCommand())
	root.AddCommand(newQueryCommands()...)
	root.AddCommand(newDeadLettersCommand(), newCoverageCommand(), newPayloadsCommand(), newInvestigateCommand(), newCatalogCommand(), newImportCommand(), newBenchCommand(), newLabCommand())
	return root
}
