package inquesthttp

import (
	"net/http"
	"net/http/httptrace"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"

	inquest "inquest.dev/sdk/go"
)

// NewTransport returns a transport that calls with base, or with
// http.DefaultTransport when base is nil. Each call has a client span with child
// spans for what base's httptrace tells: http.dns, http.connect, http.tls,
// http.first_byte (from the request written to the answer's first byte). A
// connection that is used again has only the last.
//
// The request gets traceparent, baggage, and x-request-id where ctx has an id and
// the header is not there.
func NewTransport(base http.RoundTripper, opts Options) http.RoundTripper {
	if base == nil {
		base = http.DefaultTransport
	}
	if opts.Tracer == nil {
		opts.Tracer = otel.GetTracerProvider()
	}
	return &transport{otelhttp.NewTransport(
		&phases{base, opts.Tracer.Tracer("inquest.dev/sdk/go/inquesthttp")},
		otelhttp.WithPropagators(inquest.Propagator()),
		otelhttp.WithTracerProvider(opts.Tracer),
	)}
}

// transport writes the request's id on what it sends.
type transport struct{ next http.RoundTripper }

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	set := func(h http.Header, name, value string) {
		if value != "" && h.Get(name) == "" {
			h.Set(name, value)
		}
	}
	r = r.Clone(ctx) // a transport must not change the caller's request
	set(r.Header, inquest.HeaderRequestID, inquest.RequestID(ctx))
	set(r.Header, inquest.HeaderInputHash, inquest.InputHash(ctx))
	return t.next.RoundTrip(r)
}

// CloseIdleConnections closes those of the transport below.
func (t *transport) CloseIdleConnections() { closeIdle(t.next) }

func closeIdle(t http.RoundTripper) {
	if c, ok := t.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

func (p *phases) RoundTrip(r *http.Request) (*http.Response, error) {
	c := newCall(r.Context(), p.tracer)
	resp, err := p.base.RoundTrip(r.WithContext(httptrace.WithClientTrace(r.Context(), c.hooks())))
	c.finish(err)
	return resp, err
}

// CloseIdleConnections closes those of the transport below.
func (p *phases) CloseIdleConnections() { closeIdle(p.base) }
