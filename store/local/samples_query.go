package local

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"inquest/store"
)

// maxSteps bounds the steps of a range query.
const maxSteps = 100_000

// QueryInstant implements [store.SampleReader]. At most
// SamplesOptions.MaxQueries run at once; others wait until ctx ends.
func (s *Samples) QueryInstant(ctx context.Context, expr string, at time.Time) (store.Result, error) {
	return s.query(ctx, expr, func(ctx context.Context) (promql.Query, error) {
		return s.engine.NewInstantQuery(ctx, s.db, nil, expr, at)
	})
}

// QueryRange implements [store.SampleReader]. A query of more than 100,000 steps
// is [store.ErrQuery].
func (s *Samples) QueryRange(ctx context.Context, expr string, from, to time.Time, step time.Duration) (store.Result, error) {
	switch {
	case step < time.Millisecond:
		return store.Result{}, fmt.Errorf("%w: step %v is below a millisecond", store.ErrQuery, step)
	case to.Before(from):
		return store.Result{}, fmt.Errorf("%w: the end %s is before the start %s", store.ErrQuery, to.Format(time.RFC3339Nano), from.Format(time.RFC3339Nano))
	case (to.UnixMilli()-from.UnixMilli())/step.Milliseconds() >= maxSteps:
		return store.Result{}, fmt.Errorf("%w: more than %d steps: make the step longer or the range shorter", store.ErrQuery, maxSteps)
	}
	return s.query(ctx, expr, func(ctx context.Context) (promql.Query, error) {
		return s.engine.NewRangeQuery(ctx, s.db, nil, expr, from, to, step)
	})
}

// begin waits for its turn. The context it returns ends with ctx and at Close.
func (s *Samples) begin(ctx context.Context) (_ context.Context, end func(), err error) {
	leave, err := s.gate.enter()
	if err != nil {
		return nil, nil, err
	}
	done, err := s.gate.turn(ctx)
	if err != nil {
		leave()
		return nil, nil, err
	}
	qctx, cancel := s.gate.whileOpen(ctx)
	return qctx, func() {
		cancel()
		done()
		leave()
	}, nil
}

func (s *Samples) query(ctx context.Context, expr string, prepare func(context.Context) (promql.Query, error)) (store.Result, error) {
	ctx, end, err := s.begin(ctx)
	if err != nil {
		return store.Result{}, fmt.Errorf("cannot query samples: %w", err)
	}
	defer end()
	q, err := prepare(ctx)
	if err != nil {
		return store.Result{}, fmt.Errorf("%w: cannot parse PromQL: %w", store.ErrQuery, err)
	}
	// Close would put the result's memory up for reuse, but the caller owns it.
	res := q.Exec(ctx)
	if res.Err != nil {
		return store.Result{}, queryError(ctx, res.Err)
	}
	warnings, infos := res.Warnings.AsStrings(expr, 0, 0)
	return store.Result{Value: res.Value, Warnings: append(warnings, infos...)}, nil
}

// queryError tells apart what the author of the query must mend.
func queryError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("cannot query samples: %w", context.Cause(ctx))
	}
	var failed promql.ErrStorage
	if errors.As(err, &failed) {
		return fmt.Errorf("cannot query samples: %w", err)
	}
	return fmt.Errorf("%w: %w", store.ErrQuery, err)
}

// Series implements [store.SampleReader].
func (s *Samples) Series(ctx context.Context, selectors []string, from, to time.Time, limit int) ([]labels.Labels, error) {
	if len(selectors) == 0 {
		return nil, fmt.Errorf("%w: no selector given", store.ErrQuery)
	}
	var out []labels.Labels
	err := s.read(ctx, selectors, from, to, limit, func(ctx context.Context, q storage.Querier, lo, hi int64, m []*labels.Matcher) error {
		hints := &storage.SelectHints{Start: lo, End: hi}
		set := q.Select(ctx, true, hints, m...)
		var it chunkenc.Iterator
		n := 0
		for set.Next() {
			series := set.At()
			// Chunks and the index know only roughly when there are samples.
			it = series.Iterator(it)
			if it.Seek(lo) == chunkenc.ValNone || it.AtT() > hi {
				continue
			}
			out = append(out, series.Labels())
			if n++; limit > 0 && n >= limit {
				break // sorted: what follows cannot be among the first
			}
		}
		return set.Err()
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(out, labels.Compare)
	out = slices.CompactFunc(out, labels.Equal)
	return first(out, limit), nil
}

// LabelNames implements [store.SampleReader].
func (s *Samples) LabelNames(ctx context.Context, selectors []string, from, to time.Time, limit int) ([]string, error) {
	return s.labelStrings(ctx, selectors, from, to, limit, func(ctx context.Context, q storage.Querier, hints *storage.LabelHints, m []*labels.Matcher) ([]string, error) {
		names, _, err := q.LabelNames(ctx, hints, m...)
		return names, err
	})
}

// LabelValues implements [store.SampleReader].
func (s *Samples) LabelValues(ctx context.Context, name string, selectors []string, from, to time.Time, limit int) ([]string, error) {
	if name == "" {
		return nil, fmt.Errorf("%w: no label name given", store.ErrQuery)
	}
	return s.labelStrings(ctx, selectors, from, to, limit, func(ctx context.Context, q storage.Querier, hints *storage.LabelHints, m []*labels.Matcher) ([]string, error) {
		values, _, err := q.LabelValues(ctx, name, hints, m...)
		return values, err
	})
}

func (s *Samples) labelStrings(ctx context.Context, selectors []string, from, to time.Time, limit int,
	get func(context.Context, storage.Querier, *storage.LabelHints, []*labels.Matcher) ([]string, error),
) ([]string, error) {
	if len(selectors) == 0 {
		selectors = []string{""}
	}
	hints := &storage.LabelHints{Limit: max(limit, 0), LimitSmallest: true}
	var out []string
	err := s.read(ctx, selectors, from, to, limit, func(ctx context.Context, q storage.Querier, _, _ int64, m []*labels.Matcher) error {
		values, err := get(ctx, q, hints, m)
		for _, v := range values {
			out = append(out, strings.Clone(v)) // not valid after the querier
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(out)
	return first(slices.Compact(out), limit), nil
}

// read calls fn for each selector with a querier for the range. The selector ""
// has no matchers.
func (s *Samples) read(ctx context.Context, selectors []string, from, to time.Time, limit int,
	fn func(ctx context.Context, q storage.Querier, lo, hi int64, m []*labels.Matcher) error,
) error {
	if limit < 0 {
		return fmt.Errorf("%w: limit %d is negative", store.ErrQuery, limit)
	}
	matchers := make([][]*labels.Matcher, len(selectors))
	for i, sel := range selectors {
		if sel == "" && len(selectors) == 1 {
			continue
		}
		var err error
		if matchers[i], err = s.parse.ParseMetricSelector(sel); err != nil {
			return fmt.Errorf("%w: cannot parse selector %q: %w", store.ErrQuery, sel, err)
		}
		if !slices.ContainsFunc(matchers[i], func(m *labels.Matcher) bool { return !m.Matches("") }) {
			return fmt.Errorf("%w: selector %q matches everything: name a metric or a label", store.ErrQuery, sel)
		}
	}
	ctx, end, err := s.begin(ctx)
	if err != nil {
		return fmt.Errorf("cannot query samples: %w", err)
	}
	defer end()
	ctx, cancel := context.WithTimeoutCause(ctx, s.opts.QueryTimeout,
		fmt.Errorf("%w: it takes longer than %v", store.ErrQuery, s.opts.QueryTimeout))
	defer cancel()
	lo, hi := int64(0), int64(math.MaxInt64)
	if !from.IsZero() {
		lo = from.UnixMilli()
	}
	if !to.IsZero() {
		hi = to.UnixMilli()
	}
	q, err := s.db.Querier(lo, hi)
	if err != nil {
		return fmt.Errorf("cannot query samples: %w", err)
	}
	defer q.Close()
	for _, m := range matchers {
		if err := fn(ctx, q, lo, hi, m); err != nil {
			return queryError(ctx, promql.ErrStorage{Err: err})
		}
		if ctx.Err() != nil {
			return queryError(ctx, ctx.Err())
		}
	}
	return nil
}

func first[T any](s []T, limit int) []T {
	if limit > 0 && len(s) > limit {
		return s[:limit]
	}
	return s
}
