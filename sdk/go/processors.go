package inquest

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// NewSpanProcessor returns a processor that stamps each span, as it starts, with
// the request of its context: request.id, user.id, biz.type. An attribute that is
// there stays.
func NewSpanProcessor() sdktrace.SpanProcessor { return spanProcessor{} }

// NewLogProcessor returns a processor that stamps each log record with the
// request of its context. An attribute that is there stays. Register it before
// the processor that exports.
func NewLogProcessor() sdklog.Processor { return logProcessor{} }

type spanProcessor struct{}

func (spanProcessor) OnStart(ctx context.Context, s sdktrace.ReadWriteSpan) {
	r, ok := RequestOf(ctx)
	if !ok {
		return
	}
	present := map[attribute.Key]bool{}
	for _, kv := range s.Attributes() {
		present[kv.Key] = true
	}
	for _, kv := range r.attributes() {
		if !present[kv.Key] {
			s.SetAttributes(kv)
		}
	}
}

func (spanProcessor) OnEnd(sdktrace.ReadOnlySpan)      {}
func (spanProcessor) Shutdown(context.Context) error   { return nil }
func (spanProcessor) ForceFlush(context.Context) error { return nil }

type logProcessor struct{}

func (logProcessor) Enabled(context.Context, sdklog.EnabledParameters) bool { return true }

func (logProcessor) OnEmit(ctx context.Context, record *sdklog.Record) error {
	r, ok := RequestOf(ctx)
	if !ok {
		return nil
	}
	present := map[attribute.Key]bool{}
	record.WalkAttributes(func(kv attribute.KeyValue) bool {
		present[kv.Key] = true
		return true
	})
	for _, kv := range r.attributes() {
		if !present[kv.Key] {
			record.AddAttributes(kv)
		}
	}
	return nil
}

func (logProcessor) Shutdown(context.Context) error   { return nil }
func (logProcessor) ForceFlush(context.Context) error { return nil }
