package inquesthttp

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/http/httptrace"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// phases records the phases of calls that go through base.
type phases struct {
	base   http.RoundTripper
	tracer trace.Tracer
}

// call is one round trip. Its hooks come from several goroutines, and some after
// the round trip has ended, when a connection is made that nobody needs any more.
type call struct {
	ctx    context.Context
	tracer trace.Tracer

	mu    sync.Mutex
	ended bool
	open  map[string]trace.Span
}

func newCall(ctx context.Context, tracer trace.Tracer) *call {
	return &call{ctx: ctx, tracer: tracer, open: map[string]trace.Span{}}
}

// begin starts a phase. key tells apart phases that run at once.
func (c *call) begin(name, key string, attrs ...attribute.KeyValue) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended || c.open[name+key] != nil {
		return
	}
	_, span := c.tracer.Start(c.ctx, name, trace.WithAttributes(attrs...))
	c.open[name+key] = span
}

// end ends a phase that has begun.
func (c *call) end(name, key string, err error, attrs ...attribute.KeyValue) {
	c.mu.Lock()
	defer c.mu.Unlock()
	span := c.open[name+key]
	if span == nil {
		return
	}
	delete(c.open, name+key)
	span.SetAttributes(attrs...)
	endSpan(span, err)
}

// finish ends what is under way: it is what the call failed in, or what it no
// longer waited for.
func (c *call) finish(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	for key, span := range c.open {
		span.SetAttributes(attribute.Bool("http.phase.abandoned", true))
		endSpan(span, err)
		delete(c.open, key)
	}
}

func endSpan(span trace.Span, err error) {
	if err != nil {
		span.RecordError(err)
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}

const (
	phaseDNS       = "http.dns"
	phaseConnect   = "http.connect"
	phaseTLS       = "http.tls"
	phaseFirstByte = "http.first_byte"
)

func (c *call) hooks() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		DNSStart: func(i httptrace.DNSStartInfo) {
			c.begin(phaseDNS, "", attribute.String("dns.question.name", i.Host))
		},
		DNSDone: func(i httptrace.DNSDoneInfo) {
			answers := make([]string, 0, len(i.Addrs))
			for _, a := range i.Addrs {
				answers = append(answers, a.String())
			}
			c.end(phaseDNS, "", i.Err, attribute.StringSlice("dns.answers", answers))
		},
		ConnectStart: func(network, addr string) {
			c.begin(phaseConnect, addr, attribute.String("network.transport", network), attribute.String("network.peer.address", addr))
		},
		ConnectDone:       func(_, addr string, err error) { c.end(phaseConnect, addr, err) },
		TLSHandshakeStart: func() { c.begin(phaseTLS, "") },
		TLSHandshakeDone: func(s tls.ConnectionState, err error) {
			c.end(phaseTLS, "", err,
				attribute.String("tls.protocol.version", tls.VersionName(s.Version)),
				attribute.String("tls.cipher", tls.CipherSuiteName(s.CipherSuite)),
				attribute.Bool("tls.resumed", s.DidResume),
				attribute.String("tls.next_protocol", s.NegotiatedProtocol))
		},
		GotConn: func(i httptrace.GotConnInfo) {
			trace.SpanFromContext(c.ctx).SetAttributes(
				attribute.Bool("http.connection.reused", i.Reused),
				attribute.Float64("http.connection.idle_ms", float64(i.IdleTime.Microseconds())/1000))
		},
		WroteRequest: func(i httptrace.WroteRequestInfo) {
			if i.Err == nil {
				c.begin(phaseFirstByte, "")
			}
		},
		GotFirstResponseByte: func() { c.end(phaseFirstByte, "", nil) },
	}
}
