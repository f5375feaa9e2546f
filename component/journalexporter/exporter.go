// Package journalexporter is the Collector exporter that hands telemetry to
// inquest's recorder. It answers when the journal holds the batch on disk, and
// it neither queues nor retries: the answer goes back through the pipeline to
// the sender, who keeps the batch until it is acknowledged. A processor that
// answers before the exporter does, such as batch, takes that promise away.
package journalexporter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"inquest/admit"
	"inquest/journal"
	"inquest/recorder"
)

// Type is the exporter's name in a Collector configuration.
var Type = component.MustNewType("inquest")

// Config are the exporter's settings.
type Config struct {
	// Recorder names the inquest extension that keeps the data. The default is
	// the one without a name, "inquest".
	Recorder component.ID `mapstructure:"recorder"`
	// AsReceived keeps requests in the bytes that they came in, where the
	// receiver otlp of inquest hands these on, instead of encoding them again.
	// Only for pipelines in which nothing changes data between receiver and
	// exporter: such a change would be undone when the journal is read again
	// after a crash. The command inquest sets it where no pipeline has a
	// processor or connector. Default: false.
	AsReceived bool `mapstructure:"as_received"`
}

// Host is what the exporter needs of the extension that it is configured with.
type Host interface {
	// Recorder returns the running recorder; it is called after the extension
	// was started.
	Recorder() *recorder.Recorder
}

// NewFactory returns the factory of the exporter.
func NewFactory() exporter.Factory {
	return exporter.NewFactory(Type,
		func() component.Config { return &Config{Recorder: component.NewID(Type)} },
		exporter.WithLogs(func(_ context.Context, _ exporter.Settings, c component.Config) (exporter.Logs, error) {
			return newExporter(c)
		}, component.StabilityLevelBeta),
		exporter.WithTraces(func(_ context.Context, _ exporter.Settings, c component.Config) (exporter.Traces, error) {
			return newExporter(c)
		}, component.StabilityLevelBeta),
		exporter.WithMetrics(func(_ context.Context, _ exporter.Settings, c component.Config) (exporter.Metrics, error) {
			return newExporter(c)
		}, component.StabilityLevelBeta),
	)
}

type journalExporter struct {
	cfg Config
	rec *recorder.Recorder
}

func newExporter(c component.Config) (*journalExporter, error) {
	cfg, ok := c.(*Config)
	if !ok {
		return nil, fmt.Errorf("configuration is a %T, want *journalexporter.Config", c)
	}
	return &journalExporter{cfg: *cfg}, nil
}

func (e *journalExporter) Start(_ context.Context, host component.Host) error {
	ext, ok := host.GetExtensions()[e.cfg.Recorder]
	if !ok {
		return fmt.Errorf("there is no extension %q: add it under extensions and under service::extensions, or name another one in the exporter's setting recorder", e.cfg.Recorder)
	}
	h, ok := ext.(Host)
	if !ok {
		return fmt.Errorf("extension %q is not a recorder: name one of type %q in the exporter's setting recorder", e.cfg.Recorder, Type)
	}
	e.rec = h.Recorder()
	return nil
}

func (e *journalExporter) Shutdown(context.Context) error { return nil }

// Capabilities asks for data of its own: the recorder keeps it after the call,
// and admission takes out what cannot be stored.
func (e *journalExporter) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: true}
}

func (e *journalExporter) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	e.begin(ctx)
	return answer(e.rec.Logs(ctx, ld))
}

func (e *journalExporter) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	e.begin(ctx)
	return answer(e.rec.Traces(ctx, td))
}

func (e *journalExporter) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	e.begin(ctx)
	return answer(e.rec.Metrics(ctx, md))
}

// begin takes away the request's own encoding where it may be out of date.
func (e *journalExporter) begin(ctx context.Context) {
	if !e.cfg.AsReceived {
		admit.ReportFrom(ctx).SetBody(nil)
	}
}

// answer marks errors for the receiver: permanent ones must not be retried, a
// full journal needs a while.
func answer(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, journal.ErrTooLarge):
		return consumererror.NewPermanent(fmt.Errorf("%w: send smaller batches", err))
	case errors.Is(err, journal.ErrFull):
		return &retryable{err: err, delay: 10 * time.Second}
	default:
		return &retryable{err: err, delay: time.Second}
	}
}

// retryable is an error after which the same batch may be sent again.
type retryable struct {
	err   error
	delay time.Duration
}

func (r *retryable) Error() string             { return r.err.Error() }
func (r *retryable) Unwrap() error             { return r.err }
func (r *retryable) RetryDelay() time.Duration { return r.delay }
