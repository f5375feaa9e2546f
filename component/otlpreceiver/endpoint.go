package otlpreceiver

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

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
	next func(context.Context, T) error
	obs  *receiverhelper.ObsReport
	log  *zap.Logger
}

func newEndpoint[T any](s *signal[T], next func(context.Context, T) error, obs *receiverhelper.ObsReport, log *zap.Logger) endpoint {
	return &signalEndpoint[T]{signal: s, next: next, obs: obs, log: log}
}

func (e *signalEndpoint[T]) path(c *HTTPConfig) string { return string(e.signal.path(c)) }

func (e *signalEndpoint[T]) export(parent context.Context, body []byte, enc encoding) (response, error) {
	ctx, report := admit.WithReport(e.begin(e.obs, parent))
	report.SetSource(source(parent))
	data, err := e.decode(body, enc, report)
	if err != nil {
		e.end(e.obs, ctx, enc.String(), 0, err) // how many records it holds cannot be told
		return nil, err
	}
	undecoded := report.Rejected()
	n := e.count(data)
	if n > 0 || len(report.Letters()) > 0 {
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

// source says which way a request came.
func source(ctx context.Context) string {
	if grpc.ServerTransportStreamFromContext(ctx) != nil {
		return "otlp/grpc"
	}
	return "otlp/http"
}

// consume hands data on. A panic there is a defect that one batch meets; the
// batch is refused for good, since its sender would bring it again and again.
func (e *signalEndpoint[T]) consume(ctx context.Context, data T) (err error) {
	defer func() {
		if p := recover(); p != nil {
			e.log.Error("A component panicked on a batch, which is refused", zap.Any("panic", p), zap.StackSkip("stack", 1))
			err = &refusal{code: codes.Internal, http: http.StatusInternalServerError, text: "internal error, the batch is not stored: see the log of the receiver"}
		}
	}()
	return e.next(ctx, data)
}

var errPartly = errors.New("records refused")
