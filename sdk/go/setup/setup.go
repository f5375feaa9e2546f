// Package setup wires an application for inquest in one call: spans and log
// records over OTLP/HTTP, the request id on all of them, slog, and the event
// logger with its spool and the process that ships it.
package setup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/log/global"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	inquest "inquest.dev/sdk/go"
	"inquest.dev/sdk/go/spool"
)

// Options of [Start]. Only Service is required.
type Options struct {
	// Service is the service's name.
	Service string
	// Endpoint is the OTLP/HTTP server's base URL. Default:
	// OTEL_EXPORTER_OTLP_ENDPOINT, else http://localhost:4318.
	Endpoint string
	// Headers are added to each request to it.
	Headers map[string]string
	// SpoolDir is the folder for events that wait for the server. It should
	// outlive the container. Default: inquest-spool/SERVICE in the user's cache
	// folder, which has to exist.
	SpoolDir string
	// InProcess ships the spool from a goroutine instead of a process of its own:
	// what the application leaves when it is killed then waits for its next start.
	// Without it main has to begin with spool.RunIfWatchdog.
	InProcess bool
	// Slog takes log records too, with their ids. Default: JSON on standard error.
	Slog slog.Handler
	// System and CaptureInput are those of [inquest.Config].
	System       func() inquest.System
	CaptureInput bool
	// OnError is told what goes wrong in the background. Default: the Slog handler.
	OnError func(error)
}

// SDK is a wired application.
type SDK struct {
	Events *inquest.Logger // AI events, durable
	Log    *slog.Logger    // is slog's default too
	Spool  *spool.Writer
	Traces *sdktrace.TracerProvider // is otel's global one too
	Logs   *sdklog.LoggerProvider   // is otel's global one too

	stop []func(context.Context) error // in reverse order
}

// Start wires the application and makes it the default of otel and slog. Call
// [SDK.Shutdown] at the end.
func Start(ctx context.Context, o Options) (_ *SDK, err error) {
	if o.Service == "" {
		return nil, errors.New("cannot start the SDK: Options.Service is empty")
	}
	if o.Slog == nil {
		o.Slog = slog.NewJSONHandler(os.Stderr, nil)
	}
	if o.OnError == nil {
		o.OnError = func(err error) { slog.New(o.Slog).Warn("inquest: " + err.Error()) }
	}
	if o.SpoolDir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("cannot choose a folder for the spool, set Options.SpoolDir: %w", err)
		}
		o.SpoolDir = filepath.Join(cache, "inquest-spool", strings.ReplaceAll(o.Service, string(filepath.Separator), "_"))
	}
	s := &SDK{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Shutdown(ctx))
		}
	}()
	if err := s.providers(ctx, o); err != nil {
		return nil, err
	}
	if err := s.events(o); err != nil {
		return nil, err
	}
	s.Log = slog.New(inquest.NewSlogHandler(inquest.SlogOptions{Logs: s.Logs, Next: o.Slog}))
	slog.SetDefault(s.Log)
	otel.SetTracerProvider(s.Traces)
	otel.SetTextMapPropagator(inquest.Propagator())
	otel.SetErrorHandler(otel.ErrorHandlerFunc(o.OnError))
	global.SetLoggerProvider(s.Logs)
	return s, nil
}

// Shutdown sends what is left and ends what Start has started. When ctx ends
// first, spans and log records that were not sent are lost; events stay in the
// spool, and the watchdog goes on with them.
func (s *SDK) Shutdown(ctx context.Context) error {
	var err error
	for i := len(s.stop) - 1; i >= 0; i-- {
		err = errors.Join(err, s.stop[i](ctx))
	}
	s.stop = nil
	return err
}

// providers makes the providers of spans and log records.
func (s *SDK) providers(ctx context.Context, o Options) error {
	host, _ := os.Hostname() // without one the attribute is empty
	res, err := resource.Merge(resource.Default(), resource.NewSchemaless(
		attribute.String("service.name", o.Service), attribute.String("host.name", host), attribute.Int("process.pid", os.Getpid()),
	))
	if err != nil {
		return fmt.Errorf("cannot describe the service: %w", err)
	}
	traceOpts := []otlptracehttp.Option{otlptracehttp.WithHeaders(o.Headers)}
	logOpts := []otlploghttp.Option{otlploghttp.WithHeaders(o.Headers)}
	if o.Endpoint != "" {
		base := strings.TrimSuffix(o.Endpoint, "/")
		traceOpts = append(traceOpts, otlptracehttp.WithEndpointURL(base+"/v1/traces"))
		logOpts = append(logOpts, otlploghttp.WithEndpointURL(base+"/v1/logs"))
	} else if os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" {
		// The exporters' own default is https.
		traceOpts = append(traceOpts, otlptracehttp.WithEndpointURL("http://localhost:4318/v1/traces"))
		logOpts = append(logOpts, otlploghttp.WithEndpointURL("http://localhost:4318/v1/logs"))
	}
	traces, err := otlptracehttp.New(ctx, traceOpts...)
	if err != nil {
		return fmt.Errorf("cannot export spans: %w", err)
	}
	s.Traces = sdktrace.NewTracerProvider(
		sdktrace.WithResource(res), sdktrace.WithSpanProcessor(inquest.NewSpanProcessor()), sdktrace.WithBatcher(traces))
	s.stop = append(s.stop, s.Traces.Shutdown)
	logs, err := otlploghttp.New(ctx, logOpts...)
	if err != nil {
		return fmt.Errorf("cannot export log records: %w", err)
	}
	s.Logs = sdklog.NewLoggerProvider(
		sdklog.WithResource(res), sdklog.WithProcessor(inquest.NewLogProcessor()), sdklog.WithProcessor(sdklog.NewBatchProcessor(logs)))
	s.stop = append(s.stop, s.Logs.Shutdown)
	return nil
}

// events makes the event logger, its spool, and what ships it.
func (s *SDK) events(o Options) (err error) {
	if err := s.ship(o); err != nil {
		return err
	}
	host, _ := os.Hostname()
	s.Spool, err = spool.Open(o.SpoolDir, spool.Options{
		Resource: inquest.Resource(o.Service, map[string]string{"host.name": host, "process.pid": fmt.Sprint(os.Getpid())}),
		Scope:    []byte(`{"name":"inquest.dev/sdk/go"}`),
		OnError:  o.OnError,
	})
	if err != nil {
		return err
	}
	s.stop = append(s.stop, func(context.Context) error { return s.Spool.Close() })
	s.Events, err = inquest.NewLogger(inquest.Config{
		Service: o.Service, Spool: s.Spool, Logs: s.Logs, System: o.System, CaptureInput: o.CaptureInput, Tracer: s.Traces,
	})
	return err
}

// ship starts what ships the spool. Its end comes after the spool is closed.
func (s *SDK) ship(o Options) error {
	if !o.InProcess {
		w, err := spool.StartWatchdog(o.SpoolDir, spool.WatchdogOptions{Endpoint: o.Endpoint, Headers: o.Headers, OnError: o.OnError})
		if err != nil {
			return err
		}
		s.stop = append(s.stop, w.Close)
		return nil
	}
	shipper, err := spool.NewShipper(o.SpoolDir, spool.ShipOptions{Endpoint: o.Endpoint, Headers: o.Headers, OnError: o.OnError})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := shipper.Run(ctx); err != nil && ctx.Err() == nil {
			o.OnError(err)
		}
	}()
	s.stop = append(s.stop, func(ctx context.Context) error {
		cancel()
		<-ended
		return shipper.Drain(ctx)
	})
	return nil
}
