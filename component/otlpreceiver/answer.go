package otlpreceiver

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

// RetryDelayer is what an error of a consumer may implement to say how long the
// sender should wait before it sends the same request again.
type RetryDelayer interface {
	error
	RetryDelay() time.Duration
}

// defaultRetryDelay is what a sender is told to wait when the error does not say.
const defaultRetryDelay = time.Second

// maxErrorText bounds the text of an error answer, in bytes.
const maxErrorText = 1024

// answer returns what a sender is told about an error, as a gRPC status and as
// an HTTP status code. OTLP says which of them make the sender repeat the
// request: everything here but what is permanent.
func answer(err error) (*status.Status, int) {
	text := shorten(err.Error())
	var r *refusal
	switch {
	case errors.As(err, &r):
		return status.New(r.code, text), r.http
	case consumererror.IsPermanent(err):
		return status.New(codes.InvalidArgument, text), http.StatusBadRequest
	case errors.Is(err, context.DeadlineExceeded):
		return status.New(codes.DeadlineExceeded, text), http.StatusGatewayTimeout
	case errors.Is(err, context.Canceled):
		return status.New(codes.Canceled, text), http.StatusServiceUnavailable
	}
	delay := defaultRetryDelay
	var d RetryDelayer
	if errors.As(err, &d) && d.RetryDelay() > 0 {
		delay = d.RetryDelay()
	}
	st := status.New(codes.Unavailable, text)
	if detailed, err := st.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(delay)}); err == nil {
		st = detailed
	}
	return st, http.StatusServiceUnavailable
}

// retryDelay returns the delay that a status asks for, or 0.
func retryDelay(st *status.Status) time.Duration {
	for _, d := range st.Details() {
		if info, ok := d.(*errdetails.RetryInfo); ok {
			return info.GetRetryDelay().AsDuration()
		}
	}
	return 0
}

// shorten makes text fit for an answer: valid UTF-8 and bounded.
func shorten(text string) string {
	if len(text) > maxErrorText {
		text = text[:maxErrorText-3] + "..."
	}
	return strings.ToValidUTF8(text, "�")
}
