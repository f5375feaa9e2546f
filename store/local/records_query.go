package local

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/VictoriaMetrics/VictoriaLogs/lib/logstorage"

	"inquest/record"
	"inquest/store"
)

// QueryRecords implements [store.RecordReader]. At most
// RecordsOptions.MaxQueries run at once; others wait until ctx ends. fn must not
// query the same store, since it could wait for itself.
func (r *Records) QueryRecords(ctx context.Context, q store.RecordQuery, fn func([]record.Field) error) error {
	leave, err := r.gate.enter()
	if err != nil {
		return fmt.Errorf("cannot query records: %w", err)
	}
	defer leave()
	query, err := parseRecordQuery(q, time.Now())
	if err != nil {
		return err
	}
	if !q.From.IsZero() && !q.To.IsZero() && !q.From.Before(q.To) {
		return nil
	}
	done, err := r.gate.turn(ctx)
	if err != nil {
		return fmt.Errorf("cannot query records: %w", err)
	}
	defer done()
	return r.run(ctx, query, fn)
}

func parseRecordQuery(q store.RecordQuery, now time.Time) (*logstorage.Query, error) {
	if q.Limit < 0 {
		return nil, fmt.Errorf("%w: limit %d is negative", store.ErrQuery, q.Limit)
	}
	query, err := logstorage.ParseQueryAtTimestamp(q.LogsQL, now.UnixNano())
	if err != nil {
		return nil, fmt.Errorf("%w: cannot parse LogsQL: %w", store.ErrQuery, err)
	}
	if !q.From.IsZero() || !q.To.IsZero() {
		lo, hi := int64(0), int64(math.MaxInt64)
		if !q.From.IsZero() {
			lo = unixNano(q.From)
		}
		if !q.To.IsZero() {
			hi = unixNano(q.To) - 1
		}
		query.AddTimeFilter(lo, hi)
		if from, to := query.GetFilterTimeRange(); from == math.MinInt64 && to == math.MaxInt64 {
			return nil, fmt.Errorf("%w: the option ignore_global_time_filter is not allowed in a query with a time range", store.ErrQuery)
		}
	}
	if q.Limit > 0 {
		query.AddPipeOffsetLimit(0, uint64(q.Limit))
	}
	return query, nil
}

// unixNano is t.UnixNano for times that it cannot represent, too.
func unixNano(t time.Time) int64 {
	switch s := t.Unix(); {
	case s < 0:
		return 0
	case s >= math.MaxInt64/int64(time.Second):
		return math.MaxInt64
	}
	return t.UnixNano()
}

// run runs query. The library's workers call back at once; they take turns.
func (r *Records) run(ctx context.Context, query *logstorage.Query, fn func([]record.Field) error) error {
	qctx, cancel := r.gate.whileOpen(ctx)
	defer cancel()
	var (
		mu     sync.Mutex
		failed error
		fields []record.Field
	)
	write := func(_ uint, db *logstorage.DataBlock) {
		mu.Lock()
		defer mu.Unlock()
		columns := db.GetColumns(false)
		for i := range db.RowsCount() {
			if failed != nil || qctx.Err() != nil {
				return
			}
			fields = fields[:0]
			for c := range columns {
				if v := columns[c].Values[i]; v != "" {
					fields = append(fields, record.Field{Name: columns[c].Name, Value: v})
				}
			}
			if err := fn(fields); err != nil {
				failed = err
				cancel()
				return
			}
		}
	}
	err := r.storage.RunQuery(logstorage.NewQueryContext(qctx, &logstorage.QueryStats{}, []logstorage.TenantID{{}}, query, false, nil), write)
	switch {
	case failed != nil:
		return failed
	case qctx.Err() != nil:
		return fmt.Errorf("cannot query records: %w", context.Cause(qctx))
	case err != nil:
		// The library reads what it wrote or panics: what is left are limits and
		// pipes that cannot work on what they get.
		return fmt.Errorf("%w: %w", store.ErrQuery, err)
	}
	return nil
}
