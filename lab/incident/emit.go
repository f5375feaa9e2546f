package incident

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploggrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/log"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Exporters are where telemetry goes: those of the SDK, to a recorder or to memory.
type Exporters struct {
	Spans   sdktrace.SpanExporter
	Logs    sdklog.Exporter
	Metrics sdkmetric.Exporter
}

// Dial makes exporters that send OTLP over gRPC, without TLS, to an address like
// localhost:4317.
func Dial(ctx context.Context, address string) (Exporters, error) {
	const patience = 30 * time.Second
	var e Exporters
	var errs [3]error
	e.Spans, errs[0] = otlptracegrpc.New(ctx, otlptracegrpc.WithEndpoint(address), otlptracegrpc.WithInsecure(), otlptracegrpc.WithTimeout(patience))
	e.Logs, errs[1] = otlploggrpc.New(ctx, otlploggrpc.WithEndpoint(address), otlploggrpc.WithInsecure(), otlploggrpc.WithTimeout(patience))
	e.Metrics, errs[2] = otlpmetricgrpc.New(ctx, otlpmetricgrpc.WithEndpoint(address), otlpmetricgrpc.WithInsecure(), otlpmetricgrpc.WithTimeout(patience))
	if err := errors.Join(errs[:]...); err != nil {
		return Exporters{}, fmt.Errorf("cannot make an exporter to %s: %w", address, err)
	}
	return e, nil
}

// Close ends the exporters.
func (e Exporters) Close(ctx context.Context) error {
	return errors.Join(e.Spans.Shutdown(ctx), e.Logs.Shutdown(ctx), e.Metrics.Shutdown(ctx))
}

// Send sends everything and returns when all of it was acknowledged. An error
// means that some of it was not.
func (t *Telemetry) Send(ctx context.Context, e Exporters) error {
	var wg sync.WaitGroup
	var errs [3]error
	wg.Go(func() { errs[0] = t.sendSpans(ctx, e.Spans) })
	wg.Go(func() { errs[1] = t.sendLogs(ctx, e.Logs) })
	wg.Go(func() { errs[2] = t.sendMetrics(ctx, e.Metrics) })
	wg.Wait()
	return errors.Join(errs[:]...)
}

// batch is how many spans or log records go in one request.
const batch = 512

// planned gives spans the identifiers that were planned for them. It is used by
// one goroutine.
type planned struct{ next *Span }

var _ sdktrace.IDGenerator = (*planned)(nil)

func (p *planned) NewIDs(context.Context) (trace.TraceID, trace.SpanID) {
	return p.next.TraceID, p.next.ID
}

func (p *planned) NewSpanID(context.Context, trace.TraceID) trace.SpanID { return p.next.ID }

// spanSink keeps an exporter open beyond the end of one provider and keeps its
// errors, which a provider would only log.
type spanSink struct {
	sdktrace.SpanExporter
	mu  sync.Mutex
	err error
}

func (s *spanSink) Shutdown(context.Context) error { return nil }

func (s *spanSink) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := s.SpanExporter.ExportSpans(ctx, spans)
	s.mu.Lock()
	s.err = errors.Join(s.err, err)
	s.mu.Unlock()
	return err
}

func (t *Telemetry) sendSpans(ctx context.Context, exporter sdktrace.SpanExporter) error {
	plan := &planned{}
	sink := &spanSink{SpanExporter: exporter}
	providers := map[*Pod]*sdktrace.TracerProvider{}
	for i := range t.Spans {
		x := &t.Spans[i]
		p := providers[x.Pod]
		if p == nil {
			p = sdktrace.NewTracerProvider(sdktrace.WithResource(x.Pod.Resource()), sdktrace.WithIDGenerator(plan),
				sdktrace.WithSampler(sdktrace.AlwaysSample()),
				sdktrace.WithBatcher(sink, sdktrace.WithBlocking(), sdktrace.WithMaxExportBatchSize(batch)))
			providers[x.Pod] = p
		}
		plan.next = x
		record(ctx, p.Tracer(x.Pod.Service), x)
	}
	var errs []error
	for _, p := range providers {
		errs = append(errs, p.Shutdown(ctx))
	}
	if err := errors.Join(append(errs, sink.err)...); err != nil {
		return fmt.Errorf("cannot send spans: %w", err)
	}
	return nil
}

// record starts and ends one span with the SDK.
func record(ctx context.Context, tracer trace.Tracer, x *Span) {
	parent := trace.SpanContext{}
	if x.Parent.IsValid() {
		parent = trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: x.TraceID, SpanID: x.Parent, TraceFlags: trace.FlagsSampled, Remote: x.Kind == trace.SpanKindServer,
		})
	}
	_, s := tracer.Start(trace.ContextWithSpanContext(ctx, parent), x.Name, trace.WithSpanKind(x.Kind),
		trace.WithTimestamp(x.Start), trace.WithAttributes(x.Attributes...))
	if e := x.Exception; e != nil {
		s.AddEvent("exception", trace.WithTimestamp(x.End), trace.WithAttributes(
			attribute.String("exception.type", e.Type), attribute.String("exception.message", e.Message),
			attribute.String("exception.stacktrace", e.Stack)))
	}
	if x.failed() {
		s.SetStatus(codes.Error, x.Error)
	}
	s.End(trace.WithTimestamp(x.End))
}

// failed reports whether the span carries an error.
func (x *Span) failed() bool {
	for _, a := range x.Attributes {
		if a.Key == "error.type" {
			return true
		}
	}
	return false
}

// logSink is what spanSink is, for log records.
type logSink struct {
	sdklog.Exporter
	mu  sync.Mutex
	err error
}

func (s *logSink) Shutdown(context.Context) error { return nil }

func (s *logSink) Export(ctx context.Context, records []sdklog.Record) error {
	err := s.Exporter.Export(ctx, records)
	s.mu.Lock()
	s.err = errors.Join(s.err, err)
	s.mu.Unlock()
	return err
}

func (t *Telemetry) sendLogs(ctx context.Context, exporter sdklog.Exporter) error {
	count := map[*Pod]int{}
	for i := range t.Logs {
		count[t.Logs[i].Pod]++
	}
	sink := &logSink{Exporter: exporter}
	providers := map[*Pod]*sdklog.LoggerProvider{}
	for i := range t.Logs {
		x := &t.Logs[i]
		p := providers[x.Pod]
		if p == nil {
			// A full queue would overwrite its oldest record: it holds them all.
			p = sdklog.NewLoggerProvider(sdklog.WithResource(x.Pod.Resource()), sdklog.WithProcessor(
				sdklog.NewBatchProcessor(sink, sdklog.WithMaxQueueSize(count[x.Pod]+batch), sdklog.WithExportMaxBatchSize(batch))))
			providers[x.Pod] = p
		}
		var r log.Record
		r.SetTimestamp(x.Time)
		r.SetObservedTimestamp(x.Time)
		r.SetSeverity(x.Severity)
		r.SetSeverityText(x.Severity.String())
		r.SetBody(attribute.StringValue(x.Body))
		r.AddAttributes(x.Attributes...)
		c := trace.NewSpanContext(trace.SpanContextConfig{TraceID: x.TraceID, SpanID: x.SpanID, TraceFlags: trace.FlagsSampled})
		p.Logger(x.Pod.Service).Emit(trace.ContextWithSpanContext(ctx, c), r)
	}
	var errs []error
	for _, p := range providers {
		errs = append(errs, p.Shutdown(ctx))
	}
	if err := errors.Join(append(errs, sink.err)...); err != nil {
		return fmt.Errorf("cannot send log records: %w", err)
	}
	return nil
}

// sendMetrics sends what was read at one moment before what was read at the next.
func (t *Telemetry) sendMetrics(ctx context.Context, exporter sdkmetric.Exporter) error {
	for _, readings := range t.Scrapes {
		errs := make([]error, len(readings))
		var wg sync.WaitGroup
		for i, rm := range readings {
			wg.Go(func() { errs[i] = exporter.Export(ctx, rm) })
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			return fmt.Errorf("cannot send metrics: %w", err)
		}
	}
	return nil
}
