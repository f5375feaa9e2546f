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
	id  component.ID
	rec *recorder.Recorder
}

func newExporter(c component.Config) (*journalExporter, error) {
	cfg, ok := c.(*Config)
	if !ok {
		return nil, fmt.Errorf("configuration is a %T, want *journalexporter.Config", c)
	}
	return &journalExporter{id: cfg.Recorder}, nil
}

func (e *journalExporter) Start(_ context.Context, host component.Host) error {
	ext, ok := host.GetExtensions()[e.id]
	if !ok {
		return fmt.Errorf("there is no extension %q: add it under extensions and under service::extensions, or name another one in the exporter's setting recorder", e.id)
	}
	h, ok := ext.(Host)
	if !ok {
		return fmt.Errorf("extension %q is not a recorder: name one of type %q in the exporter's setting recorder", e.id, Type)
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
	return answer(e.rec.Logs(ctx, ld))
}

func (e *journalExporter) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	return answer(e.rec.Traces(ctx, td))
}

func (e *journalExporter) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	return answer(e.rec.Metrics(ctx, md))
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
