// Package inquestgrpc carries the request id over gRPC, as metadata x-request-id
// and baggage. It makes no spans: use it together with otelgrpc's handlers.
package inquestgrpc

import (
	"context"

	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	inquest "inquest.dev/sdk/go"
)

// carrier makes metadata a carrier of OpenTelemetry's propagators.
type carrier metadata.MD

func (c carrier) Get(key string) string {
	if v := metadata.MD(c).Get(key); len(v) > 0 {
		return v[0]
	}
	return ""
}

func (c carrier) Set(key, value string) { metadata.MD(c).Set(key, value) }

func (c carrier) Keys() []string {
	out := make([]string, 0, len(c))
	for k := range c {
		out = append(out, k)
	}
	return out
}

// incoming returns ctx with the request of the call: the id of x-request-id, else
// of the baggage, else a new one.
func incoming(ctx context.Context) context.Context {
	md, _ := metadata.FromIncomingContext(ctx)
	c := carrier(md)
	switch {
	case !trace.SpanContextFromContext(ctx).IsValid():
		ctx = inquest.Propagator().Extract(ctx, c)
	case baggage.FromContext(ctx).Len() == 0: // the span is otelgrpc's, and stays
		ctx = propagation.Baggage{}.Extract(ctx, c)
	}
	ctx = inquest.WithRequest(ctx, inquest.Request{ID: c.Get(inquest.HeaderRequestID)})
	inquest.SetInputHash(ctx, c.Get(inquest.HeaderInputHash))
	return ctx
}

// outgoing returns ctx with the request in its metadata. What is there stays.
func outgoing(ctx context.Context) context.Context {
	md, _ := metadata.FromOutgoingContext(ctx)
	md = md.Copy()
	if md == nil {
		md = metadata.MD{}
	}
	inquest.Propagator().Inject(ctx, carrier(md))
	set := func(key, value string) {
		if value != "" && len(md.Get(key)) == 0 {
			md.Set(key, value)
		}
	}
	set(inquest.HeaderRequestID, inquest.RequestID(ctx))
	set(inquest.HeaderInputHash, inquest.InputHash(ctx))
	return metadata.NewOutgoingContext(ctx, md)
}

// UnaryServerInterceptor serves each call with its request in the context.
func UnaryServerInterceptor() grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		return next(incoming(ctx), req)
	}
}

// StreamServerInterceptor serves each stream with its request in the context.
func StreamServerInterceptor() grpc.StreamServerInterceptor {
	return func(srv any, s grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
		return next(srv, &serverStream{s, incoming(s.Context())})
	}
}

type serverStream struct {
	grpc.ServerStream
	ctx context.Context
}

// Context returns the context with the request.
func (s *serverStream) Context() context.Context { return s.ctx }

// UnaryClientInterceptor sends the request of the context with each call.
func UnaryClientInterceptor() grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, next grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		return next(outgoing(ctx), method, req, reply, cc, opts...)
	}
}

// StreamClientInterceptor sends the request of the context with each stream.
func StreamClientInterceptor() grpc.StreamClientInterceptor {
	return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, next grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		return next(outgoing(ctx), desc, cc, method, opts...)
	}
}
