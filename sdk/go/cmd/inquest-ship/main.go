// Command inquest-ship ships a spool folder to an OTLP/HTTP server: for
// applications whose service manager ends all their processes together, and for
// what a crashed application left.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"inquest.dev/sdk/go/spool"
)

func main() {
	if err := run(os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "inquest-ship:", err)
		os.Exit(1)
	}
}

// headers collects -header flags.
type headers map[string]string

func (h headers) String() string { return "" }

func (h headers) Set(s string) error {
	k, v, ok := strings.Cut(s, "=")
	if !ok || k == "" {
		return errors.New("want NAME=VALUE")
	}
	h[k] = v
	return nil
}

func run(args []string) error {
	h := headers{}
	f := flag.NewFlagSet("inquest-ship", flag.ContinueOnError)
	dir := f.String("dir", "", "spool `folder` (required)")
	endpoint := f.String("endpoint", "", "OTLP/HTTP server (default OTEL_EXPORTER_OTLP_ENDPOINT, else http://localhost:4318)")
	once := f.Bool("once", false, "end when all is shipped")
	keep := f.Duration("keep", 7*24*time.Hour, "how long shipped files are kept")
	f.Var(h, "header", "`NAME=VALUE` for each request; may be repeated")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *dir == "" || f.NArg() > 0 {
		return errors.New("want -dir FOLDER and no further arguments")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s, err := spool.NewShipper(*dir, spool.ShipOptions{
		Endpoint: *endpoint, Headers: h, Keep: *keep,
		OnError: func(err error) { slog.Warn(err.Error()) },
	})
	if err != nil {
		return err
	}
	if *once {
		err = s.Drain(ctx)
	} else {
		err = s.Run(ctx)
	}
	n := s.Stats()
	slog.Info("shipped", "records", n.Shipped, "rejected", n.Rejected, "retries", n.Retries, "torn", n.Torn)
	return err
}
