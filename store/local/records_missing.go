package local

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"inquest/record"
	"inquest/store"
)

// rowKey identifies a row by its time and its fields, in whatever order.
type rowKey [sha256.Size]byte

// Missing implements [store.Records]. It reads the rows that the store holds of
// the entry and compares them whole, each as often as it occurs.
func (r *Records) Missing(ctx context.Context, b store.Batch) ([]record.Row, error) {
	leave, err := r.gate.enter()
	if err != nil {
		return nil, fmt.Errorf("cannot compare records: %w", err)
	}
	defer leave()
	if len(b.Rows) == 0 {
		return nil, nil
	}
	// What a refused call may have left is to be seen too.
	r.flush()

	lo, hi := b.Rows[0].Time, b.Rows[0].Time
	for _, row := range b.Rows {
		lo, hi = min(lo, row.Time), max(hi, row.Time)
	}
	held := map[rowKey]int{}
	q, err := parseRecordQuery(store.RecordQuery{
		LogsQL: fmt.Sprintf("%q:=%d", record.FieldSeq, b.Seq),
		From:   time.Unix(0, lo),
		To:     time.Unix(0, hi+1),
	}, time.Now())
	if err != nil {
		return nil, fmt.Errorf("cannot compare records: %w", err)
	}
	var k keyMaker
	err = r.run(ctx, q, func(fields []record.Field) error {
		key, err := k.stored(fields)
		if err != nil {
			return err
		}
		held[key]++
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cannot compare records: %w", err)
	}
	var missing []record.Row
	for _, row := range b.Rows {
		key := k.row(&row)
		if held[key] > 0 {
			held[key]--
			continue
		}
		missing = append(missing, row)
	}
	return missing, nil
}

// HeldSeqs returns how many rows the store holds of each journal entry whose
// number is from or above. A caller that applies many entries again can pass
// over those that are complete without asking [Records.Missing] for each.
func (r *Records) HeldSeqs(ctx context.Context, from uint64) (map[uint64]int, error) {
	leave, err := r.gate.enter()
	if err != nil {
		return nil, fmt.Errorf("cannot count records: %w", err)
	}
	defer leave()
	r.flush()
	q, err := parseRecordQuery(store.RecordQuery{
		LogsQL: fmt.Sprintf("%q:>=%d | stats by (%q) count() rows", record.FieldSeq, from, record.FieldSeq),
	}, time.Now())
	if err != nil {
		return nil, fmt.Errorf("cannot count records: %w", err)
	}
	held := map[uint64]int{}
	err = r.run(ctx, q, func(fields []record.Field) error {
		var seq, rows uint64
		for _, f := range fields {
			n, err := strconv.ParseUint(f.Value, 10, 64)
			if err != nil {
				return err
			}
			if f.Name == record.FieldSeq {
				seq = n
			} else {
				rows = n
			}
		}
		if seq >= from {
			held[seq] = int(rows)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cannot count records: %w", err)
	}
	return held, nil
}

// keyMaker makes keys; it keeps its buffers between rows.
type keyMaker struct {
	fields []record.Field
	buf    []byte
}

func (k *keyMaker) row(row *record.Row) rowKey {
	k.fields = append(append(k.fields[:0], row.Stream...), row.Fields...)
	return k.key(row.Time)
}

// stored makes the key of a row as a query returns it.
func (k *keyMaker) stored(fields []record.Field) (rowKey, error) {
	k.fields = k.fields[:0]
	ns := int64(0)
	for _, f := range fields {
		switch f.Name {
		case record.FieldTime:
			t, err := time.Parse(time.RFC3339Nano, f.Value)
			if err != nil {
				return rowKey{}, fmt.Errorf("cannot read time of a stored record: %w", err)
			}
			ns = t.UnixNano()
		case record.FieldStream, record.FieldStreamID: // made by the store
		default:
			k.fields = append(k.fields, f)
		}
	}
	return k.key(ns), nil
}

// key leaves out what was derived: it follows from the rest, and the table of
// aliases may have changed since.
func (k *keyMaker) key(ns int64) rowKey {
	k.fields = record.Sent(k.fields)
	slices.SortFunc(k.fields, func(a, b record.Field) int { return strings.Compare(a.Name, b.Name) })
	k.buf = binary.LittleEndian.AppendUint64(k.buf[:0], uint64(ns))
	for _, f := range k.fields {
		if f.Value == "" {
			continue // counts as absent
		}
		k.buf = binary.AppendUvarint(k.buf, uint64(len(f.Name)))
		k.buf = append(k.buf, f.Name...)
		k.buf = binary.AppendUvarint(k.buf, uint64(len(f.Value)))
		k.buf = append(k.buf, f.Value...)
	}
	return sha256.Sum256(k.buf)
}
