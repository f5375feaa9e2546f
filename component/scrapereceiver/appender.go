package scrapereceiver

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/scrape"
	"github.com/prometheus/prometheus/storage"
)

// reportSuffix marks the names of the scraper's own series, such as up.
const reportSuffix = "\xff"

// AppenderV2 begins the batch of one scrape.
func (r *scrapeReceiver) AppenderV2(ctx context.Context) storage.AppenderV2 {
	st, ok := scrape.TargetFromContext(ctx)
	if !ok {
		st = &scrape.Target{}
	}
	t := r.targets.of(st, time.Now())
	return newAppender(t, func(b *batch) error { return r.commit(ctx, t, b) }, r.failures.up)
}

// appender gathers the samples of one scrape. One goroutine uses it.
type appender struct {
	t      *target
	id     uint64
	batch  *batch
	send   func(*batch) error
	onUp   func(url string)
	series []*series // those that it has samples of
}

func newAppender(t *target, send func(*batch) error, onUp func(url string)) *appender {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.scrape++
	return &appender{t: t, id: t.scrape, batch: newBatch(t), send: send, onUp: onUp}
}

// Append implements [storage.AppenderV2]. Every sample for which it returns no
// error is in the batch.
func (a *appender) Append(ref storage.SeriesRef, ls labels.Labels, st, t int64, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram, opts storage.AOptions) (storage.SeriesRef, error) {
	family, own := strings.CutSuffix(opts.MetricFamilyName, reportSuffix)
	native := h != nil || fh != nil
	end := !native && value.IsStaleNaN(v)
	a.t.mu.Lock()
	defer a.t.mu.Unlock()
	s := a.t.find(uint64(ref), ls, family, opts.Metadata, native, end)
	switch {
	case s.seen == a.id && s.seenT == t:
		return 0, storage.ErrDuplicateSampleForTimestamp
	case opts.RejectOutOfOrder && t < s.last:
		return 0, storage.ErrOutOfOrderSample
	case opts.RejectOutOfOrder && t == s.last:
		return 0, storage.ErrDuplicateSampleForTimestamp
	}
	if own && s.name == "up" && v == 1 {
		a.onUp(a.t.url)
	}
	switch {
	case s.group != nil:
		a.batch.part(s, st, t, v, end, opts.Exemplars)
	case s.part == partNative:
		if err := a.batch.native(s, st, t, h, fh, opts.Exemplars); err != nil {
			return 0, err
		}
	default:
		a.batch.number(s, st, t, v, end, opts.Exemplars)
	}
	if s.seen != a.id {
		a.series = append(a.series, s)
	}
	s.seen, s.seenT = a.id, t
	if s.group != nil {
		s.group.seen = a.id
	}
	a.batch.samples++
	return storage.SeriesRef(s.ref), nil
}

// Commit hands the batch on and returns when it is taken or lost.
func (a *appender) Commit() error {
	a.t.mu.Lock()
	for _, s := range a.series {
		s.last = max(s.last, s.seenT)
	}
	a.batch.finish()
	a.t.sweep()
	a.t.mu.Unlock()
	if a.batch.samples == 0 {
		return nil
	}
	if err := a.send(a.batch); err != nil {
		return fmt.Errorf("%d samples of this scrape are lost: %w", a.batch.samples, err)
	}
	return nil
}

// Rollback forgets the batch.
func (a *appender) Rollback() error {
	a.batch, a.series = nil, nil
	return nil
}
