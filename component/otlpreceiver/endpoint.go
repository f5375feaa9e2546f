package otlpreceiver

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"google.golang.org/grpc"

	"inquest/admit"
)

// endpoint takes the requests of one signal over one transport.
type endpoint interface {
	// export decodes a request and hands it on. It returns nil only when the
	// next component has taken what the response does not refuse. It does not
	// keep body.
	export(ctx context.Context, body []byte, enc encoding) (response, error)
	path(*HTTPConfig) string
	registerGRPC(grpc.ServiceRegistrar)
}

type signalEndpoint[T any] struct {
	*signal[T]
	consume func(context.Context, T) error
	obs     *receiverhelper.ObsReport
}

func newEndpoint[T any](s *signal[T], consume func(context.Context, T) error, obs *receiverhelper.ObsReport) endpoint {
	return &signalEndpoint[T]{signal: s, consume: consume, obs: obs}
}

func (e *signalEndpoint[T]) path(c *HTTPConfig) string { return string(e.signal.path(c)) }

func (e *signalEndpoint[T]) export(parent context.Context, body []byte, enc encoding) (response, error) {
	ctx, report := admit.WithReport(e.begin(e.obs, parent))
	data, err := e.decode(body, enc, report)
	if err != nil {
		e.end(e.obs, ctx, enc.String(), 0, err) // how many records it holds cannot be told
		return nil, err
	}
	undecoded := report.Rejected()
	n := e.count(data)
	if n > 0 {
		err = e.consume(ctx, data)
	}
	if err != nil {
		e.end(e.obs, ctx, enc.String(), n, err)
		return nil, err
	}
	rejected := report.Rejected()
	e.end(e.obs, ctx, enc.String(), max(0, n-(rejected-undecoded)), nil)
	message := report.Message()
	if rejected > 0 {
		// An operation has one outcome, so the refused part is one of its own.
		refused := consumererror.NewDownstream(fmt.Errorf("%w: %s", errPartly, message))
		e.end(e.obs, e.begin(e.obs, parent), enc.String(), rejected, refused)
	}
	return e.respond(rejected, message), nil
}

var errPartly = errors.New("records refused")
