package replay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	_ "google.golang.org/grpc/encoding/gzip" // senders compress
	"google.golang.org/grpc/status"

	"inquest/sensor"
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

const (
	batchRecords = 1000
	batchSeries  = 50
)

// Send sends all that src holds of a range. It returns when all of it was
// acknowledged or rejected.
func (s *Sender) Send(ctx context.Context, src sensor.Source, r sensor.Range) error {
	if err := batches(func(fn func(sensor.Span) error) error { return src.Spans(ctx, r, fn) }, batchRecords, func(b []sensor.Span) error { return s.sendSpans(ctx, b) }); err != nil {
		return fmt.Errorf("cannot send spans: %w", err)
	}
	if err := batches(func(fn func(sensor.Log) error) error { return src.Logs(ctx, r, fn) }, batchRecords, func(b []sensor.Log) error { return s.sendLogs(ctx, b) }); err != nil {
		return fmt.Errorf("cannot send log records: %w", err)
	}
	if err := batches(func(fn func(sensor.Series) error) error { return src.Samples(ctx, r, fn) }, batchSeries, func(b []sensor.Series) error { return s.sendSeries(ctx, b) }); err != nil {
		return fmt.Errorf("cannot send metrics: %w", err)
	}
	return nil
}

// batches gathers n items each that give yields, and passes them to send.
func batches[T any](give func(func(T) error) error, n int, send func([]T) error) error {
	var batch []T
	err := give(func(item T) error {
		if batch = append(batch, item); len(batch) < n {
			return nil
		}
		full := batch
		batch = nil
		return send(full)
	})
	if err != nil || len(batch) == 0 {
		return err
	}
	return send(batch)
}

func (s *Sender) sendSpans(ctx context.Context, batch []sensor.Span) error {
	return s.export(ctx, func(ctx context.Context) (int64, string, error) {
		resp, err := s.traces.Export(ctx, ptraceotlp.NewExportRequestFromTraces(tracesOf(batch)))
		if err != nil {
			return 0, "", err
		}
		n := resp.PartialSuccess().RejectedSpans()
		s.Sent.Spans += len(batch) - int(n)
		return n, resp.PartialSuccess().ErrorMessage(), nil
	})
}

func (s *Sender) sendLogs(ctx context.Context, batch []sensor.Log) error {
	return s.export(ctx, func(ctx context.Context) (int64, string, error) {
		resp, err := s.logs.Export(ctx, plogotlp.NewExportRequestFromLogs(logsOf(batch)))
		if err != nil {
			return 0, "", err
		}
		n := resp.PartialSuccess().RejectedLogRecords()
		s.Sent.Logs += len(batch) - int(n)
		return n, resp.PartialSuccess().ErrorMessage(), nil
	})
}

func (s *Sender) sendSeries(ctx context.Context, batch []sensor.Series) error {
	return s.export(ctx, func(ctx context.Context) (int64, string, error) {
		md := metricsOf(batch)
		total := md.DataPointCount()
		resp, err := s.metrics.Export(ctx, pmetricotlp.NewExportRequestFromMetrics(md))
		if err != nil {
			return 0, "", err
		}
		n := resp.PartialSuccess().RejectedDataPoints()
		s.Sent.Points += total - int(n)
		return n, resp.PartialSuccess().ErrorMessage(), nil
	})
}

// export repeats a call while the receiver asks for it, as OTLP has it.
func (s *Sender) export(ctx context.Context, call func(context.Context) (rejected int64, message string, err error)) error {
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
			return err
		}
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
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
