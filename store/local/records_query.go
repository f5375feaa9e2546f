package local

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/VictoriaMetrics/VictoriaLogs/lib/logstorage"

	"inquest/record"
	"inquest/store"
)

// QueryRecords implements [store.RecordReader].
func (r *Records) QueryRecords(ctx context.Context, q store.RecordQuery, fn func([]record.Field) error) error {
	parsed, err := logstorage.ParseQueryAtTimestamp(q.LogsQL, time.Now().UnixNano())
	if err != nil {
		return fmt.Errorf("%w: cannot parse LogsQL: %w", store.ErrQuery, err)
	}
	if !q.From.IsZero() || !q.To.IsZero() {
		from, to := int64(math.MinInt64), int64(math.MaxInt64)
		if !q.From.IsZero() {
			from = q.From.UnixNano()
		}
		if !q.To.IsZero() {
			to = q.To.UnixNano() - 1
		}
		parsed.AddTimeFilter(from, to)
	}
	if q.Limit > 0 {
		parsed.AddPipeOffsetLimit(0, uint64(q.Limit))
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out := &blockReader{fn: fn, cancel: cancel}
	var stats logstorage.QueryStats
	qctx := logstorage.NewQueryContext(ctx, &stats, []logstorage.TenantID{{}}, parsed, false, nil)
	err = r.db.RunQuery(qctx, out.block)
	out.mu.Lock()
	defer out.mu.Unlock()
	switch {
	case out.err != nil:
		return out.err
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		// The library reads files through Must functions, so what is left to fail
		// is the query: too much memory, a pipe that cannot work on this input.
		return fmt.Errorf("%w: %w", store.ErrQuery, err)
	}
	return nil
}

// blockReader passes blocks of columns on row by row.
type blockReader struct {
	mu     sync.Mutex // workers deliver blocks concurrently
	fn     func([]record.Field) error
	cancel func()
	err    error
	fields []record.Field
}

func (b *blockReader) block(_ uint, db *logstorage.DataBlock) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return
	}
	columns := db.GetColumns(false)
	for i := range db.RowsCount() {
		b.fields = b.fields[:0]
		for _, c := range columns {
			if v := c.Values[i]; v != "" {
				b.fields = append(b.fields, record.Field{Name: c.Name, Value: v})
			}
		}
		if b.err = b.fn(b.fields); b.err != nil {
			b.cancel()
			return
		}
	}
}

// Missing implements [store.Records]: it compares the batch with what is stored
// under its number as multisets.
func (r *Records) Missing(ctx context.Context, b store.Batch) ([]record.Row, error) {
	if len(b.Rows) == 0 {
		return nil, nil
	}
	from, to := b.Rows[0].Time, b.Rows[0].Time
	for _, row := range b.Rows {
		from, to = min(from, row.Time), max(to, row.Time)
	}
	held := map[string]int{}
	err := r.QueryRecords(ctx, store.RecordQuery{
		LogsQL: fmt.Sprintf(`%q:=%q`, record.FieldSeq, strconv.FormatUint(b.Seq, 10)),
		From:   time.Unix(0, from), To: time.Unix(0, to+1),
	}, func(fields []record.Field) error {
		key, err := storedKey(fields)
		if err != nil {
			return err
		}
		held[key]++
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cannot see which rows of batch %d are stored: %w", b.Seq, err)
	}
	var missing []record.Row
	for _, row := range b.Rows {
		key := rowKey(row)
		if held[key] > 0 {
			held[key]--
			continue
		}
		missing = append(missing, row)
	}
	return missing, nil
}

// rowKey is the same text for a row and for what the store returns for it.
func rowKey(row record.Row) string {
	return key(row.Time, slices.Concat(row.Stream, row.Fields))
}

func storedKey(fields []record.Field) (string, error) {
	var t time.Time
	own := make([]record.Field, 0, len(fields))
	for _, f := range fields {
		switch f.Name {
		case record.FieldTime:
			var err error
			if t, err = time.Parse(time.RFC3339Nano, f.Value); err != nil {
				return "", fmt.Errorf("the store returned a bad time: %w", err)
			}
		case "_stream", "_stream_id":
		default:
			own = append(own, f)
		}
	}
	return key(t.UnixNano(), own), nil
}

func key(t int64, fields []record.Field) string {
	slices.SortFunc(fields, func(a, b record.Field) int { return strings.Compare(a.Name, b.Name) })
	var sb strings.Builder
	sb.WriteString(strconv.FormatInt(t, 10))
	for _, f := range fields {
		if f.Value != "" {
			fmt.Fprintf(&sb, "\x00%d:%s=%s", len(f.Name), f.Name, f.Value)
		}
	}
	return sb.String()
}

// HeldSeqs returns how many rows the store holds of each journal entry from
// number from on. It answers for many entries what Missing does for one.
func (r *Records) HeldSeqs(ctx context.Context, from uint64) (map[uint64]int, error) {
	held := map[uint64]int{}
	err := r.QueryRecords(ctx, store.RecordQuery{
		LogsQL: fmt.Sprintf(`%q:>=%d | stats by (%q) count() rows`, record.FieldSeq, from, record.FieldSeq),
	}, func(fields []record.Field) error {
		var seq uint64
		var n int
		var err error
		for _, f := range fields {
			switch f.Name {
			case record.FieldSeq:
				seq, err = strconv.ParseUint(f.Value, 10, 64)
			case "rows":
				n, err = strconv.Atoi(f.Value)
			}
			if err != nil {
				return err
			}
		}
		held[seq] = n
		return nil
	})
	return held, err
}
