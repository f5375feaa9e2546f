package serverextension

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"inquest/alert"
)

// alertMetrics publishes what the hooks do, by hook.
func alertMetrics(meter metric.Meter, alerts *alert.Alerter) (metric.Registration, error) {
	counters := []struct {
		name, unit, help string
		read             func(*alert.Stats) int64
	}{
		{"inquest_alert_events", "{event}", "Events that a hook was to tell.", func(s *alert.Stats) int64 { return s.Events }},
		{"inquest_alert_messages", "{message}", "Messages that the receiver took.", func(s *alert.Stats) int64 { return s.Sent }},
		{"inquest_alert_failures", "{message}", "Messages that were given up; their events are told later.", func(s *alert.Stats) int64 { return s.Failed }},
		{"inquest_alert_retries", "{try}", "Tries that failed and were followed by another.", func(s *alert.Stats) int64 { return s.Retries }},
		{"inquest_alert_suppressed", "{event}", "Events that were counted into a message about another.", func(s *alert.Stats) int64 { return s.Suppressed }},
		{"inquest_alert_merged", "{event}", "Events beyond the limit on groups.", func(s *alert.Stats) int64 { return s.Merged }},
		{"inquest_alert_lost", "{event}", "Events that nobody was told of.", func(s *alert.Stats) int64 { return s.Lost }},
	}
	var insts []metric.Observable
	var counts []metric.Int64ObservableCounter
	for _, c := range counters {
		inst, err := meter.Int64ObservableCounter(c.name, metric.WithUnit(c.unit), metric.WithDescription(c.help))
		if err != nil {
			return nil, err
		}
		insts, counts = append(insts, inst), append(counts, inst)
	}
	pending, err := meter.Int64ObservableGauge("inquest_alert_pending", metric.WithUnit("{event}"), metric.WithDescription("Events that are not told yet."))
	if err != nil {
		return nil, err
	}
	last, err := meter.Float64ObservableGauge("inquest_alert_last_sent", metric.WithUnit("s"), metric.WithDescription("Unix time of the last message that the receiver took; absent before the first."))
	if err != nil {
		return nil, err
	}
	return meter.RegisterCallback(func(_ context.Context, ob metric.Observer) error {
		for _, s := range alerts.Stats() {
			hook := metric.WithAttributes(attribute.String("hook", s.Hook), attribute.String("kind", string(s.Kind)))
			for i, c := range counters {
				ob.ObserveInt64(counts[i], c.read(&s), hook)
			}
			ob.ObserveInt64(pending, s.Pending, hook)
			if !s.LastSent.IsZero() {
				ob.ObserveFloat64(last, float64(s.LastSent.UnixMilli())/1e3, hook)
			}
		}
		return nil
	}, append(insts, pending, last)...)
}
