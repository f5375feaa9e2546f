package otlpreceiver

import (
	"context"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"go.opentelemetry.io/collector/receiver/receiverhelper"

	"inquest/admit"
)

// signal is what differs between logs, traces and metrics.
type signal[T any] struct {
	service string // its gRPC service
	kind    admit.LetterKind
	path    func(*HTTPConfig) URLPath
	schema  *message

	proto   func(body []byte) (T, error)
	json    func(body []byte) (T, error)
	marshal func(T) ([]byte, error) // to protobuf
	count   func(T) int             // records or data points
	respond func(rejected int, message string) response

	begin func(*receiverhelper.ObsReport, context.Context) context.Context
	end   func(o *receiverhelper.ObsReport, ctx context.Context, format string, n int, err error)
}

// response is OTLP's answer to a request that was taken, at least in part.
type response interface {
	MarshalProto() ([]byte, error)
	MarshalJSON() ([]byte, error)
}

var logsSignal = &signal[plog.Logs]{
	service: "opentelemetry.proto.collector.logs.v1.LogsService",
	kind:    admit.LetterLog,
	path:    func(c *HTTPConfig) URLPath { return c.LogsURLPath },
	schema:  logsSchema,
	proto: func(body []byte) (plog.Logs, error) {
		r := plogotlp.NewExportRequest()
		err := r.UnmarshalProto(body)
		return r.Logs(), err
	},
	json: func(body []byte) (plog.Logs, error) {
		r := plogotlp.NewExportRequest()
		err := r.UnmarshalJSON(body)
		return r.Logs(), err
	},
	marshal: func(ld plog.Logs) ([]byte, error) { return plogotlp.NewExportRequestFromLogs(ld).MarshalProto() },
	count:   plog.Logs.LogRecordCount,
	respond: func(rejected int, message string) response {
		r := plogotlp.NewExportResponse()
		r.PartialSuccess().SetRejectedLogRecords(int64(rejected))
		r.PartialSuccess().SetErrorMessage(message)
		return r
	},
	begin: (*receiverhelper.ObsReport).StartLogsOp,
	end:   (*receiverhelper.ObsReport).EndLogsOp,
}

var tracesSignal = &signal[ptrace.Traces]{
	service: "opentelemetry.proto.collector.trace.v1.TraceService",
	kind:    admit.LetterSpan,
	path:    func(c *HTTPConfig) URLPath { return c.TracesURLPath },
	schema:  tracesSchema,
	proto: func(body []byte) (ptrace.Traces, error) {
		r := ptraceotlp.NewExportRequest()
		err := r.UnmarshalProto(body)
		return r.Traces(), err
	},
	json: func(body []byte) (ptrace.Traces, error) {
		r := ptraceotlp.NewExportRequest()
		err := r.UnmarshalJSON(body)
		return r.Traces(), err
	},
	marshal: func(td ptrace.Traces) ([]byte, error) {
		return ptraceotlp.NewExportRequestFromTraces(td).MarshalProto()
	},
	count: ptrace.Traces.SpanCount,
	respond: func(rejected int, message string) response {
		r := ptraceotlp.NewExportResponse()
		r.PartialSuccess().SetRejectedSpans(int64(rejected))
		r.PartialSuccess().SetErrorMessage(message)
		return r
	},
	begin: (*receiverhelper.ObsReport).StartTracesOp,
	end:   (*receiverhelper.ObsReport).EndTracesOp,
}

var metricsSignal = &signal[pmetric.Metrics]{
	service: "opentelemetry.proto.collector.metrics.v1.MetricsService",
	kind:    admit.LetterPoint,
	path:    func(c *HTTPConfig) URLPath { return c.MetricsURLPath },
	schema:  metricsSchema,
	proto: func(body []byte) (pmetric.Metrics, error) {
		r := pmetricotlp.NewExportRequest()
		err := r.UnmarshalProto(body)
		return r.Metrics(), err
	},
	json: func(body []byte) (pmetric.Metrics, error) {
		r := pmetricotlp.NewExportRequest()
		err := r.UnmarshalJSON(body)
		return r.Metrics(), err
	},
	marshal: func(md pmetric.Metrics) ([]byte, error) {
		return pmetricotlp.NewExportRequestFromMetrics(md).MarshalProto()
	},
	count: pmetric.Metrics.DataPointCount,
	respond: func(rejected int, message string) response {
		r := pmetricotlp.NewExportResponse()
		r.PartialSuccess().SetRejectedDataPoints(int64(rejected))
		r.PartialSuccess().SetErrorMessage(message)
		return r
	},
	begin: (*receiverhelper.ObsReport).StartMetricsOp,
	end:   (*receiverhelper.ObsReport).EndMetricsOp,
}
