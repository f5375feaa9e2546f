package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"inquest/record"
	"inquest/sensor/binding"
	"inquest/store"
)

// bindTimeout is how long the records that carry no trace id are examined. What
// is certain is answered in any case.
const bindTimeout = 5 * time.Second

// traceLogs returns the log records of a trace, oldest first: those that carry
// its id, and those that the evidence binds to it, which have the field binding.
// A warning says what could not be looked for.
func (s *server) traceLogs(ctx context.Context, traceID string, limit int) (rows []map[string]string, cut bool, warning string, err error) {
	rows, err = s.rows(ctx, store.RecordQuery{
		LogsQL: ofType(record.TypeLog, "") + " " + equals(record.FieldTraceID, traceID) + sortBy(record.FieldTime, false, limit+1),
		Limit:  limit + 1,
	})
	if err != nil {
		return nil, false, "", err
	}
	bound, err := s.boundLogs(ctx, traceID)
	switch {
	case errors.Is(err, errCut):
		warning = fmt.Sprintf("of the records without a trace id that belong to this trace only %d are looked at", len(bound))
	case err != nil && ctx.Err() != nil:
		return nil, false, "", err
	case err != nil:
		warning = "records without a trace id that may belong to this trace are missing: " + err.Error()
	}
	if rows = append(rows, bound...); len(bound) > 0 {
		slices.SortStableFunc(rows, byTime)
	}
	if cut = len(rows) > limit; cut {
		rows = rows[:limit]
	}
	return rows, cut, warning, nil
}

func (s *server) boundLogs(ctx context.Context, traceID string) ([]map[string]string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, bindTimeout, fmt.Errorf("looking for them took longer than %s", bindTimeout))
	defer cancel()
	var rows []map[string]string
	err := binding.OfTrace(ctx, s.cfg.Records, traceID, binding.Options{}, func(fields []record.Field) error {
		if len(rows) == s.limits.Rows {
			return errCut
		}
		row := make(map[string]string, len(fields))
		for _, f := range fields {
			row[strings.Clone(f.Name)] = strings.Clone(f.Value)
		}
		rows = append(rows, row)
		return nil
	})
	// They come in no order, but the answer to a question is to be the same.
	slices.SortFunc(rows, func(a, b map[string]string) int { return cmp.Or(byTime(a, b), strings.Compare(mapKey(a), mapKey(b))) })
	return rows, err
}

// byTime orders rows as their times are; the store leaves out zeros at the end
// of a second's fraction.
func byTime(a, b map[string]string) int {
	ta, _ := time.Parse(time.RFC3339Nano, a[record.FieldTime]) // as the store writes it
	tb, _ := time.Parse(time.RFC3339Nano, b[record.FieldTime])
	return ta.Compare(tb)
}
