// Package replay sends telemetry over OTLP as an SDK does, so that recordings
// reach a recorder on the way of live data.
package replay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	_ "google.golang.org/grpc/encoding/gzip" // senders compress
	"google.golang.org/grpc/status"
)

// Sent counts what a recorder acknowledged and what it refused for good.
type Sent struct {
	Spans, Logs, Points int
	Rejected            int
	// Reason is a receiver's message about rejected records.
	Reason string
}

// Sender sends over OTLP gRPC, one request at a time.
type Sender struct {
	conn    *grpc.ClientConn
	traces  ptraceotlp.GRPCClient
	logs    plogotlp.GRPCClient
	metrics pmetricotlp.GRPCClient
	Sent    Sent
}

// Dial prepares a sender to host:port, without TLS.
func Dial(endpoint string) (*Sender, error) {
	conn, err := grpc.NewClient(endpoint,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.UseCompressor("gzip")))
	if err != nil {
		return nil, fmt.Errorf("cannot reach %s: %w", endpoint, err)
	}
	return &Sender{
		conn: conn, traces: ptraceotlp.NewGRPCClient(conn),
		logs: plogotlp.NewGRPCClient(conn), metrics: pmetricotlp.NewGRPCClient(conn),
	}, nil
}

// Close ends the connection.
func (s *Sender) Close() error { return s.conn.Close() }

// Traces sends a batch of spans. Like [Sender.Logs] and [Sender.Metrics] it
// returns when each record of the batch was acknowledged or rejected.
func (s *Sender) Traces(ctx context.Context, td ptrace.Traces) error {
	return s.export(ctx, "spans", func(ctx context.Context) (int64, string, error) {
		resp, err := s.traces.Export(ctx, ptraceotlp.NewExportRequestFromTraces(td))
		if err != nil {
			return 0, "", err
		}
		n := resp.PartialSuccess().RejectedSpans()
		s.Sent.Spans += td.SpanCount() - int(n)
		return n, resp.PartialSuccess().ErrorMessage(), nil
	})
}

// Logs sends a batch of log records.
func (s *Sender) Logs(ctx context.Context, ld plog.Logs) error {
	return s.export(ctx, "log records", func(ctx context.Context) (int64, string, error) {
		resp, err := s.logs.Export(ctx, plogotlp.NewExportRequestFromLogs(ld))
		if err != nil {
			return 0, "", err
		}
		n := resp.PartialSuccess().RejectedLogRecords()
		s.Sent.Logs += ld.LogRecordCount() - int(n)
		return n, resp.PartialSuccess().ErrorMessage(), nil
	})
}

// Metrics sends a batch of points.
func (s *Sender) Metrics(ctx context.Context, md pmetric.Metrics) error {
	return s.export(ctx, "metrics", func(ctx context.Context) (int64, string, error) {
		resp, err := s.metrics.Export(ctx, pmetricotlp.NewExportRequestFromMetrics(md))
		if err != nil {
			return 0, "", err
		}
		n := resp.PartialSuccess().RejectedDataPoints()
		s.Sent.Points += md.DataPointCount() - int(n)
		return n, resp.PartialSuccess().ErrorMessage(), nil
	})
}

// export repeats a call while the receiver asks for it, as OTLP has it.
func (s *Sender) export(ctx context.Context, what string, call func(context.Context) (rejected int64, message string, err error)) error {
	for delay := 100 * time.Millisecond; ; delay = min(2*delay, 5*time.Second) {
		rejected, message, err := call(ctx)
		if err == nil {
			s.Sent.Rejected += int(rejected)
			if rejected > 0 {
				s.Sent.Reason = message
			}
			return nil
		}
		if !retryable(err) {
			return fmt.Errorf("cannot send %s: %w", what, err)
		}
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return fmt.Errorf("cannot send %s: %w", what, errors.Join(ctx.Err(), err))
		}
	}
}

func retryable(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.ResourceExhausted, codes.Aborted, codes.DeadlineExceeded:
		return true
	}
	return false
}
