package recorder

import (
	"encoding/json"
	"fmt"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"inquest/journal"
	"inquest/record"
)

// batch is a journal entry in decoded form.
type batch struct {
	seq      uint64
	received int64
	kind     journal.Kind
	size     int64 // bytes of the payload
	logs     plog.Logs
	traces   ptrace.Traces
	metrics  pmetric.Metrics
	rows     []record.Row
}

func (b *batch) decode(payload []byte) (err error) {
	switch b.kind {
	case journal.KindLogs:
		b.logs, err = (&plog.ProtoUnmarshaler{}).UnmarshalLogs(payload)
	case journal.KindTraces:
		b.traces, err = (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(payload)
	case journal.KindMetrics:
		b.metrics, err = (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics(payload)
	case journal.KindRows:
		b.rows, err = decodeRows(payload)
	default:
		err = fmt.Errorf("unknown kind %d: written by a newer inquest?", b.kind)
	}
	return err
}

func (b *batch) encode() (payload []byte, err error) {
	switch b.kind {
	case journal.KindLogs:
		payload, err = (&plog.ProtoMarshaler{}).MarshalLogs(b.logs)
	case journal.KindTraces:
		payload, err = (&ptrace.ProtoMarshaler{}).MarshalTraces(b.traces)
	case journal.KindMetrics:
		payload, err = (&pmetric.ProtoMarshaler{}).MarshalMetrics(b.metrics)
	case journal.KindRows:
		payload, err = json.Marshal(b.rows)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot encode a batch: %w", err)
	}
	return payload, nil
}
