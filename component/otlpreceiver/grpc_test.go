package otlpreceiver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/status"

	"inquest/admit"
)

// The clients of pdata, with and without compression.
func TestGRPCClients(t *testing.T) {
	r := start(t, nil)
	ctx := context.Background()
	f := func(opts ...grpc.CallOption) {
		t.Helper()
		if _, err := plogotlp.NewGRPCClient(r.conn).Export(ctx, plogotlp.NewExportRequestFromLogs(sampleLogs()), opts...); err != nil {
			t.Error(err)
		}
		if _, err := ptraceotlp.NewGRPCClient(r.conn).Export(ctx, ptraceotlp.NewExportRequestFromTraces(sampleTraces()), opts...); err != nil {
			t.Error(err)
		}
		if _, err := pmetricotlp.NewGRPCClient(r.conn).Export(ctx, pmetricotlp.NewExportRequestFromMetrics(sampleMetrics()), opts...); err != nil {
			t.Error(err)
		}
		if n := r.records(); n != 26 {
			t.Errorf("%d records kept, want 26", n)
		}
	}
	f()
	f(grpc.UseCompressor(gzip.Name))
	f(grpc.UseCompressor("zstd"))
	f(grpc.UseCompressor("snappy"))
}

func TestGRPC(t *testing.T) {
	r := start(t, nil)
	f := func(service string, body []byte, want codes.Code, wantKept int, wantText string) {
		t.Helper()
		resp, err := r.invoke(service, body)
		text := string(resp) + status.Convert(err).Message()
		if status.Code(err) != want || !strings.Contains(text, wantText) {
			t.Errorf("answer %v %q, want %v with %q", status.Code(err), text, want, wantText)
		}
		if kept := r.records(); kept != wantKept {
			t.Errorf("%d records kept, want %d", kept, wantKept)
		}
	}
	badSpan := msg(2, msg(1, traceID[:4]))
	f(logsSignal.service, nil, codes.OK, 0, "")
	f(logsSignal.service, inScope(goodLog), codes.OK, 1, "")
	f(logsSignal.service, inScope(msg(2, text(3, "\xff"))), codes.OK, 1, "")
	f(logsSignal.service, inScope(goodLog, msg(2, num(1, 1)), goodLog), codes.OK, 2, "1 rejected: log record: timeUnixNano")
	f(tracesSignal.service, inScope(badSpan, goodSpan), codes.OK, 1, "1 rejected: span: traceId")
	f(metricsSignal.service, inScope(goodGage, msg(2, msg(5, msg(1, num(3, 1))))), codes.OK, 1, "1 rejected: data point")
	f(logsSignal.service, []byte("hello"), codes.InvalidArgument, 0, "it breaks at byte")
	f(tracesSignal.service, cut(inScope(goodSpan), 1), codes.InvalidArgument, 0, "it breaks at byte 0")
	f("opentelemetry.proto.collector.none.v1.None", nil, codes.Unimplemented, 0, "")
}

func TestGRPCConsumer(t *testing.T) {
	r := start(t, nil)
	f := func(err error, want codes.Code, wantDelay time.Duration, wantText string) {
		t.Helper()
		r.before = func(context.Context) error { return err }
		_, got := r.invoke(logsSignal.service, inScope(goodLog))
		st := status.Convert(got)
		if st.Code() != want || retryDelay(st) != wantDelay || !strings.Contains(st.Message(), wantText) {
			t.Errorf("answer %v after %s, want %v, %s, %q", got, retryDelay(st), want, wantDelay, wantText)
		}
	}
	f(errors.New("disk gone"), codes.Unavailable, time.Second, "disk gone")
	f(fmt.Errorf("exporter: %w", late(10*time.Second)), codes.Unavailable, 10*time.Second, "exporter: no room")
	f(consumererror.NewPermanent(errors.New("never")), codes.InvalidArgument, 0, "never")
	f(status.Error(codes.Internal, "peer"), codes.Unavailable, time.Second, "peer")
	f(context.DeadlineExceeded, codes.DeadlineExceeded, 0, "deadline")
	f(context.Canceled, codes.Canceled, 0, "canceled")
	f(nil, codes.OK, 0, "")

	r.before = func(context.Context) error { panic("defect") }
	if _, err := r.invoke(logsSignal.service, inScope(goodLog)); status.Code(err) != codes.Internal {
		t.Errorf("after a panic the answer is %v", err)
	}

	r.before = func(ctx context.Context) error {
		admit.ReportFrom(ctx).Reject(1, "too old")
		return nil
	}
	b, err := r.invoke(logsSignal.service, inScope(goodLog, goodLog))
	resp := plogotlp.NewExportResponse()
	if err := errors.Join(err, resp.UnmarshalProto(b)); err != nil {
		t.Fatal(err)
	}
	if p := resp.PartialSuccess(); p.RejectedLogRecords() != 1 || p.ErrorMessage() != "1 rejected: too old" {
		t.Errorf("partial success is %d, %q", p.RejectedLogRecords(), p.ErrorMessage())
	}
}
