// Package inquesthttp carries the request id over HTTP and measures the phases of
// calls to other services.
//
// [Handler] serves requests: it keeps the header x-request-id, or makes an id
// where there is none, and puts it into the context, the baggage and the answer.
// [NewTransport] calls other services: it sends traceparent, baggage and
// x-request-id, and records name look-up, connecting, TLS handshake and the wait
// for the first byte as child spans. Server and client spans themselves are those
// of otelhttp.
package inquesthttp

import (
	"context"
	"net/http"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	inquest "inquest.dev/sdk/go"
)

// Options of [Handler] and [NewTransport]. All may be left out.
type Options struct {
	// Operation names the server's spans. Default: method and route pattern.
	Operation string
	// Tracer makes the spans. Default: otel's global one.
	Tracer trace.TracerProvider
}

// Handler returns a handler that serves with next, in a server span and with the
// request's id: of the header x-request-id, else of the baggage, else a new one.
// It is never rewritten; one that cannot be carried (blank or control characters,
// over 256 characters) counts as none, and the span says so with
// request.id.refused. The answer has the id in x-request-id.
func Handler(next http.Handler, opts Options) http.Handler {
	inner := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Once more, because otelhttp has put the caller's baggage in place of ours.
		request, _ := inquest.RequestOf(r.Context())
		ctx := inquest.WithRequest(r.Context(), request)
		span := trace.SpanFromContext(ctx)
		span.SetAttributes(attribute.String(inquest.KeyRequestID, request.ID))
		if id := r.Header.Get(inquest.HeaderRequestID); id != "" && id != request.ID {
			span.SetAttributes(attribute.Bool("request.id.refused", true))
		}
		serve(next, w, r, ctx)
	})
	config := []otelhttp.Option{otelhttp.WithPropagators(inquest.Propagator())}
	if opts.Tracer != nil {
		config = append(config, otelhttp.WithTracerProvider(opts.Tracer))
	}
	if opts.Operation != "" {
		config = append(config, otelhttp.WithSpanNameFormatter(func(string, *http.Request) string { return opts.Operation }))
	}
	traced := otelhttp.NewHandler(inner, opts.Operation, config...)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Before the span begins, so that its start can be stamped.
		ctx := inquest.Propagator().Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		ctx = inquest.WithRequest(ctx, inquest.Request{ID: r.Header.Get(inquest.HeaderRequestID)})
		inquest.SetInputHash(ctx, r.Header.Get(inquest.HeaderInputHash))
		w.Header().Set(inquest.HeaderRequestID, inquest.RequestID(ctx))
		serve(traced, w, r, ctx)
	})
}

// serve serves a copy of r with ctx, and brings back what others read from r: the
// pattern for the span's name, and the form whose files net/http removes.
func serve(next http.Handler, w http.ResponseWriter, r *http.Request, ctx context.Context) {
	in := r.WithContext(ctx)
	defer func() { r.Pattern, r.MultipartForm = in.Pattern, in.MultipartForm }()
	next.ServeHTTP(w, in)
}
