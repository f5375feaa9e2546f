package inquestgrpc

import (
	"context"
	"net"
	"testing"

	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"

	inquest "inquest.dev/sdk/go"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// health remembers the context of the last call.
type health struct {
	grpc_health_v1.UnimplementedHealthServer
	ctx chan context.Context
}

func (h *health) Check(ctx context.Context, _ *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	h.ctx <- ctx
	return &grpc_health_v1.HealthCheckResponse{}, nil
}

func (h *health) Watch(_ *grpc_health_v1.HealthCheckRequest, s grpc.ServerStreamingServer[grpc_health_v1.HealthCheckResponse]) error {
	h.ctx <- s.Context()
	return nil
}

// TestCalls follows the request id through real calls, unary and streaming.
func TestCalls(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := grpc.NewServer(grpc.UnaryInterceptor(UnaryServerInterceptor()), grpc.StreamInterceptor(StreamServerInterceptor()))
	h := &health{ctx: make(chan context.Context, 1)}
	grpc_health_v1.RegisterHealthServer(srv, h)
	ended := make(chan error)
	go func() { ended <- srv.Serve(l) }()
	defer func() {
		srv.Stop()
		<-ended
	}()
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUnaryInterceptor(UnaryClientInterceptor()), grpc.WithStreamInterceptor(StreamClientInterceptor()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	c := grpc_health_v1.NewHealthClient(conn)

	f := func(ctx context.Context, want string) {
		t.Helper()
		if _, err := c.Check(ctx, &grpc_health_v1.HealthCheckRequest{}); err != nil {
			t.Fatal(err)
		}
		unary := <-h.ctx
		s, err := c.Watch(ctx, &grpc_health_v1.HealthCheckRequest{})
		if err != nil {
			t.Fatal(err)
		}
		s.Recv()
		stream := <-h.ctx
		for name, got := range map[string]context.Context{"unary": unary, "stream": stream} {
			id := inquest.RequestID(got)
			if id == "" || want != "" && id != want {
				t.Errorf("%s: request id %q, want %q", name, id, want)
			}
			if trace.SpanContextFromContext(got).TraceID() != trace.SpanContextFromContext(ctx).TraceID() || inquest.InputHash(got) != inquest.InputHash(ctx) {
				t.Errorf("%s: trace or input hash is lost", name)
			}
		}
	}
	sc := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}})
	ctx := inquest.WithRequest(trace.ContextWithSpanContext(t.Context(), sc), inquest.Request{ID: "r-1", UserID: "u"})
	inquest.SetInput(ctx, "hello")
	f(ctx, "r-1")
	f(metadata.AppendToOutgoingContext(t.Context(), "x-request-id", "mine"), "mine")
	f(t.Context(), "")
}
