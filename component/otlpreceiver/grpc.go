package otlpreceiver

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
)

// rawRequest is a request as it came. It is decoded after the interceptors, so
// that nobody who is not authenticated makes the receiver decode.
type rawRequest struct{ body mem.Buffer }

// codec hands requests on undecoded, whatever subtype the client names.
type codec struct{}

func (codec) Name() string { return "proto" }

func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	r, ok := v.(*rawRequest)
	if !ok {
		return fmt.Errorf("cannot receive a %T", v)
	}
	r.body = data.MaterializeToBuffer(mem.DefaultBufferPool())
	return nil
}

func (codec) Marshal(v any) (mem.BufferSlice, error) {
	r, ok := v.(response)
	if !ok {
		return nil, fmt.Errorf("cannot send a %T", v)
	}
	b, err := r.MarshalProto()
	if err != nil {
		return nil, err
	}
	return mem.BufferSlice{mem.SliceBuffer(b)}, nil
}

func (e *signalEndpoint[T]) registerGRPC(s grpc.ServiceRegistrar) {
	method := "/" + e.service + "/Export"
	s.RegisterService(&grpc.ServiceDesc{
		ServiceName: e.service,
		HandlerType: (*endpoint)(nil),
		Methods: []grpc.MethodDesc{{
			MethodName: "Export",
			Handler: func(_ any, ctx context.Context, dec func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
				in := &rawRequest{}
				if err := dec(in); err != nil {
					return nil, err
				}
				defer in.body.Free()
				if intercept == nil {
					return e.exportGRPC(ctx, in)
				}
				return intercept(ctx, in, &grpc.UnaryServerInfo{Server: e, FullMethod: method}, e.exportGRPC)
			},
		}},
	}, e)
}

func (e *signalEndpoint[T]) exportGRPC(ctx context.Context, req any) (any, error) {
	in, ok := req.(*rawRequest)
	if !ok {
		return nil, fmt.Errorf("an interceptor made the request a %T", req)
	}
	resp, err := e.export(ctx, in.body.ReadOnlyData(), protobuf)
	if err != nil {
		st, _ := answer(err)
		return nil, st.Err()
	}
	return resp, nil
}
