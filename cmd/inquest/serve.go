package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/envprovider"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
	"go.opentelemetry.io/collector/otelcol"
)

// defaultConfig is what serve runs without --config. A file given with
// --config replaces it as a whole.
const defaultConfig = `
receivers:
  otlp:
extensions:
  inquest:
exporters:
  inquest:
service:
  extensions: [inquest]
  pipelines:
    logs: {receivers: [otlp], exporters: [inquest]}
    traces: {receivers: [otlp], exporters: [inquest]}
    metrics: {receivers: [otlp], exporters: [inquest]}
`

type serveOptions struct {
	configs []string
	sets    []string
	data    string
	scrapes []string
}

func newServeCommand() *cobra.Command {
	var opts serveOptions
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Record telemetry and answer questions about it",
		Long: `serve takes OTLP on localhost:4317 (gRPC) and localhost:4318 (HTTP), keeps it in
the data folder, and answers queries on localhost:4319. It is an OpenTelemetry
Collector: --config takes a Collector configuration, in which the extension and
the exporter named inquest are the recorder.

--scrape reads the /metrics of another process every 15 seconds, of vLLM or
Triton for instance. A name in front of it is its service.name and job.`,
		Example: `  inquest serve
  inquest serve --data /var/lib/inquest
  inquest serve --set extensions::inquest::retention=2160h
  inquest serve --scrape vllm=localhost:8000 --scrape triton=http://gpu-1:8002/metrics
  inquest serve --config inquest.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return serve(cmd.Context(), opts) },
	}
	cmd.Flags().StringSliceVar(&opts.configs, "config", nil, "Collector configuration `file`s, merged in order (default: OTLP on localhost into the recorder)")
	cmd.Flags().StringArrayVar(&opts.sets, "set", nil, "set one `key=value` of the configuration, as extensions::inquest::retention=720h")
	cmd.Flags().StringVar(&opts.data, "data", "", "data `folder`, the same as --set extensions::inquest::path=… (default ./data)")
	cmd.Flags().StringArrayVar(&opts.scrapes, "scrape", nil, "scrape a `target`: host:port or URL, with a name in front if wanted, as vllm=localhost:8000")
	cmd.AddCommand(newValidateCommand())
	return cmd
}

func newValidateCommand() *cobra.Command {
	var opts serveOptions
	cmd := &cobra.Command{
		Use:   "validate",
		Short: "Check a configuration without running it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			col, err := newCollector(opts)
			if err != nil {
				return err
			}
			return col.DryRun(cmd.Context())
		},
	}
	cmd.Flags().StringSliceVar(&opts.configs, "config", nil, "Collector configuration `file`s, merged in order")
	cmd.Flags().StringArrayVar(&opts.sets, "set", nil, "set one `key=value` of the configuration")
	return cmd
}

// gcPercent is how far the heap grows between two collections while serving,
// unless the environment's GOGC says otherwise.
const gcPercent = 200

func serve(ctx context.Context, opts serveOptions) error {
	col, err := newCollector(opts)
	if err != nil {
		return err
	}
	if os.Getenv("GOGC") == "" {
		// Decoded batches are many small objects that live for a moment: at Go's
		// default a tenth of the processor time goes into looking for them.
		debug.SetGCPercent(gcPercent)
	}
	if err := col.Run(ctx); err != nil {
		return fmt.Errorf("cannot run: %w", err)
	}
	return nil
}

func newCollector(opts serveOptions) (*otelcol.Collector, error) {
	uris, err := opts.uris()
	if err != nil {
		return nil, err
	}
	return otelcol.NewCollector(otelcol.CollectorSettings{
		Factories: factories,
		BuildInfo: component.BuildInfo{Command: "inquest", Description: "Flight recorder and coroner for AI services", Version: version},
		ConfigProviderSettings: otelcol.ConfigProviderSettings{
			ResolverSettings: confmap.ResolverSettings{
				URIs:               uris,
				ProviderFactories:  []confmap.ProviderFactory{envprovider.NewFactory(), fileprovider.NewFactory(), yamlprovider.NewFactory()},
				ConverterFactories: []confmap.ConverterFactory{confmap.NewConverterFactory(newAsReceived)},
				DefaultScheme:      "env",
			},
		},
		// The context that ends on a signal stops the Collector.
		DisableGracefulShutdown: true,
	})
}

// uris are the parts of the configuration in the order in which they are merged.
func (o serveOptions) uris() ([]string, error) {
	var uris []string
	for _, path := range o.configs {
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("cannot read the configuration: %w", err)
		}
		uris = append(uris, "file:"+path)
	}
	if len(uris) == 0 {
		uris = append(uris, "yaml:"+defaultConfig)
	}
	if len(o.scrapes) > 0 {
		if len(o.configs) > 0 {
			return nil, errors.New("--scrape adds to the default configuration only: with --config, add a receiver scrape to your file (docs/scraping.md)")
		}
		more, err := scrapeConfig(o.scrapes)
		if err != nil {
			return nil, err
		}
		uris = append(uris, "yaml:"+more)
	}
	sets := o.sets
	if o.data != "" {
		sets = append(sets, "extensions::inquest::path="+o.data)
	}
	for _, set := range sets {
		key, value, ok := strings.Cut(set, "=")
		if !ok || key == "" {
			return nil, errors.New("--set " + set + " is not of the form key=value, as extensions::inquest::retention=720h")
		}
		uris = append(uris, fmt.Sprintf("yaml:%s: %s", strings.TrimSpace(key), value))
	}
	return uris, nil
}
