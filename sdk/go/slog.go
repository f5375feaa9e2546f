package inquest

import (
	"context"
	"errors"
	"log/slog"

	"go.opentelemetry.io/contrib/bridges/otelslog"
	"go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/trace"
)

// SlogOptions say where a handler of [NewSlogHandler] sends records. At least one
// of the two should be set.
type SlogOptions struct {
	// Logs takes each record over OpenTelemetry, with the span of its context.
	Logs log.LoggerProvider
	// Next takes each record too, with the attributes trace_id, span_id and
	// request_id: for instance slog.NewJSONHandler(os.Stderr, nil).
	Next slog.Handler
}

// NewSlogHandler returns a handler that puts trace, span and request id on each
// record that is logged with a context. They stand at the top, outside of groups.
func NewSlogHandler(opts SlogOptions) slog.Handler {
	h := &slogHandler{}
	if opts.Logs != nil {
		h.otel = otelslog.NewHandler(scopeName, otelslog.WithLoggerProvider(opts.Logs))
	}
	h.next = opts.Next
	return h
}

// slogHandler keeps what With and WithGroup asked for in steps, because ids have
// to come before the first group.
type slogHandler struct {
	otel, next slog.Handler // either may be nil
	steps      []func(slog.Handler) slog.Handler
	grouped    bool
}

func (h *slogHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.otel != nil && h.otel.Enabled(ctx, level) || h.next != nil && h.next.Enabled(ctx, level)
}

func (h *slogHandler) Handle(ctx context.Context, r slog.Record) error {
	var forOtel, forNext []slog.Attr
	if id := RequestID(ctx); id != "" {
		forOtel = append(forOtel, slog.String(KeyRequestID, id))
		forNext = append(forNext, slog.String("request_id", id))
	}
	if s := trace.SpanContextFromContext(ctx); s.IsValid() { // OpenTelemetry takes it from ctx
		forNext = append(forNext, slog.String("trace_id", s.TraceID().String()), slog.String("span_id", s.SpanID().String()))
	}
	return errors.Join(h.pass(ctx, h.otel, r, forOtel), h.pass(ctx, h.next, r, forNext))
}

// pass hands r to a handler, with ids above all groups.
func (h *slogHandler) pass(ctx context.Context, to slog.Handler, r slog.Record, ids []slog.Attr) error {
	if to == nil || !to.Enabled(ctx, r.Level) {
		return nil
	}
	if len(ids) > 0 && h.grouped {
		to = to.WithAttrs(ids)
	} else if len(ids) > 0 {
		r = r.Clone()
		r.AddAttrs(ids...)
	}
	for _, step := range h.steps {
		to = step(to)
	}
	return to.Handle(ctx, r)
}

func (h *slogHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	if len(attrs) == 0 {
		return h
	}
	return h.with(func(to slog.Handler) slog.Handler { return to.WithAttrs(attrs) }, false)
}

func (h *slogHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return h.with(func(to slog.Handler) slog.Handler { return to.WithGroup(name) }, true)
}

func (h *slogHandler) with(step func(slog.Handler) slog.Handler, group bool) slog.Handler {
	out := *h
	if !h.grouped && !group {
		// No group yet, so nothing has to come before it.
		if out.otel != nil {
			out.otel = step(out.otel)
		}
		if out.next != nil {
			out.next = step(out.next)
		}
		return &out
	}
	out.steps = append(h.steps[:len(h.steps):len(h.steps)], step)
	out.grouped = true
	return &out
}
