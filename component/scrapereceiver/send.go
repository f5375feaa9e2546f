package scrapereceiver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/metric"

	"inquest/admit"
)

// format is how the receiver's data came, for the Collector's own metrics.
const format = "prometheus"

// Times between two tries to hand on a batch where the pipeline asks for none.
const (
	firstPause = 100 * time.Millisecond
	maxPause   = 5 * time.Second
)

// delayed is an error that says when to try again.
type delayed interface {
	error
	RetryDelay() time.Duration
}

// commit hands a batch on. It tries until the target's next scrape is due, since
// then the next batch would have to wait; a batch not taken by then is lost.
func (r *scrapeReceiver) commit(ctx context.Context, t *target, b *batch) error {
	points := b.md.DataPointCount()
	deadline := time.Now().Add(max(t.interval, firstPause))
	err := r.try(ctx, t, b.md)
	for pause := firstPause; err != nil && !consumererror.IsPermanent(err); pause = min(2*pause, maxPause) {
		wait := pause
		if d, ok := errors.AsType[delayed](err); ok {
			wait = max(wait, d.RetryDelay())
		}
		left := time.Until(deadline)
		if left <= 0 {
			err = fmt.Errorf("tried until the next scrape was due: %w", err)
			break
		}
		r.metrics.retries.Add(ctx, 1)
		ended := false
		select {
		case <-time.After(min(wait, left)):
		case <-r.stopping:
			ended = true
		}
		if err = r.try(ctx, t, b.md); ended {
			break
		}
	}
	if err != nil {
		r.metrics.lost.Add(ctx, int64(points))
	}
	return err
}

// try hands a copy on: whoever takes it may change it, and more than once.
func (r *scrapeReceiver) try(ctx context.Context, t *target, md pmetric.Metrics) error {
	ctx, report := admit.WithReport(ctx)
	report.SetSource("scrape")
	one := pmetric.NewMetrics()
	md.CopyTo(one)
	points := one.DataPointCount()
	ctx = r.obs.StartMetricsOp(ctx)
	err := r.next.ConsumeMetrics(ctx, one)
	if err == nil && report.Rejected() > 0 {
		// They are dead letters.
		r.failures.refused(t.url, report.Message(), report.Rejected())
		points -= report.Rejected()
	}
	r.obs.EndMetricsOp(ctx, format, points, err)
	return err
}

// ownMetrics count what the Collector's receiver metrics do not.
type ownMetrics struct{ lost, retries metric.Int64Counter }

func newOwnMetrics(meter metric.Meter) (m ownMetrics, err error) {
	m.lost, err = meter.Int64Counter("inquest_scrape_lost_points", metric.WithUnit("{point}"),
		metric.WithDescription("Scraped points that the pipeline did not take until the next scrape was due"))
	if err != nil {
		return m, err
	}
	m.retries, err = meter.Int64Counter("inquest_scrape_retries", metric.WithUnit("{try}"),
		metric.WithDescription("Further tries to hand on what was scraped"))
	return m, err
}
