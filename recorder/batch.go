package recorder

import (
	"encoding/binary"
	"encoding/json"
	"errors"
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
	size     int64 // bytes of the payload

	// At most one of logs, traces and metrics is there, and rows besides.
	logs    *plog.Logs
	traces  *ptrace.Traces
	metrics *pmetric.Metrics
	rows    []record.Row
}

func (b *batch) empty() bool {
	return b.logs == nil && b.traces == nil && b.metrics == nil && len(b.rows) == 0
}

// decode reads an entry of kind.
func (b *batch) decode(kind journal.Kind, payload []byte) error {
	if kind == journal.KindParts {
		return eachPart(payload, b.decodePart)
	}
	return b.decodePart(kind, payload)
}

func (b *batch) decodePart(kind journal.Kind, payload []byte) error {
	switch kind {
	case journal.KindLogs:
		ld, err := (&plog.ProtoUnmarshaler{}).UnmarshalLogs(payload)
		b.logs = &ld
		return err
	case journal.KindTraces:
		td, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(payload)
		b.traces = &td
		return err
	case journal.KindMetrics:
		md, err := (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics(payload)
		b.metrics = &md
		return err
	case journal.KindRows:
		rows, err := decodeRows(payload)
		b.rows = rows
		return err
	}
	return fmt.Errorf("unknown kind %d: written by a newer inquest?", kind)
}

// encode returns b as a journal entry. body is what its logs, traces or metrics
// were encoded in when they came, or nil.
func (b *batch) encode(body []byte) (journal.Kind, []byte, error) {
	kind, payload, err := b.encodeOTLP(body)
	if err != nil {
		return 0, nil, fmt.Errorf("cannot encode a batch: %w", err)
	}
	if len(b.rows) == 0 {
		return kind, payload, nil
	}
	rows, err := json.Marshal(b.rows)
	if err != nil {
		return 0, nil, fmt.Errorf("cannot encode rows: %w", err)
	}
	if kind == 0 {
		return journal.KindRows, rows, nil
	}
	return journal.KindParts, appendPart(appendPart(nil, kind, payload), journal.KindRows, rows), nil
}

func (b *batch) encodeOTLP(body []byte) (kind journal.Kind, payload []byte, err error) {
	switch {
	case b.logs != nil:
		kind = journal.KindLogs
		if body == nil {
			body, err = (&plog.ProtoMarshaler{}).MarshalLogs(*b.logs)
		}
	case b.traces != nil:
		kind = journal.KindTraces
		if body == nil {
			body, err = (&ptrace.ProtoMarshaler{}).MarshalTraces(*b.traces)
		}
	case b.metrics != nil:
		kind = journal.KindMetrics
		if body == nil {
			body, err = (&pmetric.ProtoMarshaler{}).MarshalMetrics(*b.metrics)
		}
	}
	return kind, body, err
}

// appendPart appends one part of a [journal.KindParts] entry.
func appendPart(to []byte, kind journal.Kind, payload []byte) []byte {
	to = append(to, byte(kind))
	to = binary.AppendUvarint(to, uint64(len(payload)))
	return append(to, payload...)
}

// eachPart takes an entry of [journal.KindParts] apart.
func eachPart(payload []byte, take func(journal.Kind, []byte) error) error {
	for len(payload) > 0 {
		kind := journal.Kind(payload[0])
		size, n := binary.Uvarint(payload[1:])
		if n <= 0 || size > uint64(len(payload)-1-n) {
			return errors.New("a part is longer than its entry")
		}
		part := payload[1+n : 1+n+int(size)]
		payload = payload[1+n+int(size):]
		if err := take(kind, part); err != nil {
			return err
		}
	}
	return nil
}
