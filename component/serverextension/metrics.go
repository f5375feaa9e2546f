package serverextension

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"inquest/alert"
	"inquest/recorder"
)

// metrics publishes the state of a recorder and of its alerts through the Collector's telemetry
// (Prometheus format on localhost:8888 by default).
type metrics struct {
	registrations []metric.Registration
}

func (m *metrics) close() error {
	var errs []error
	for _, r := range m.registrations {
		errs = append(errs, r.Unregister())
	}
	return errors.Join(errs...)
}

// observer builds instruments and keeps how each is read.
type observer struct {
	meter metric.Meter
	insts []metric.Observable
	read  []func(metric.Observer, *recorder.Stats)
	err   error
}

func (o *observer) counter(name, unit, help string, read func(*recorder.Stats) uint64, attrs ...attribute.KeyValue) {
	inst, err := o.meter.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(help))
	o.add(inst, err, func(ob metric.Observer, s *recorder.Stats) {
		ob.ObserveInt64(inst, int64(read(s)), metric.WithAttributes(attrs...))
	})
}

// counters is a counter for each value of a label.
func (o *observer) counters(name, unit, help, label string, read func(*recorder.Stats) map[string]uint64) {
	inst, err := o.meter.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(help))
	o.add(inst, err, func(ob metric.Observer, s *recorder.Stats) {
		for value, n := range read(s) {
			ob.ObserveInt64(inst, int64(n), metric.WithAttributes(attribute.String(label, value)))
		}
	})
}

func (o *observer) seconds(name, help string, read func(*recorder.Stats) float64) {
	inst, err := o.meter.Float64ObservableCounter(name, metric.WithUnit("s"), metric.WithDescription(help))
	o.add(inst, err, func(ob metric.Observer, s *recorder.Stats) { ob.ObserveFloat64(inst, read(s)) })
}

func (o *observer) gauge(name, unit, help string, read func(*recorder.Stats) int64, attrs ...attribute.KeyValue) {
	inst, err := o.meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(help))
	o.add(inst, err, func(ob metric.Observer, s *recorder.Stats) {
		ob.ObserveInt64(inst, read(s), metric.WithAttributes(attrs...))
	})
}

func (o *observer) add(inst metric.Observable, err error, read func(metric.Observer, *recorder.Stats)) {
	if err != nil && o.err == nil {
		o.err = fmt.Errorf("cannot publish metrics: %w", err)
	}
	o.insts = append(o.insts, inst)
	o.read = append(o.read, read)
}

func newMetrics(provider metric.MeterProvider, rec *recorder.Recorder, alerts *alert.Alerter) (*metrics, error) {
	o := &observer{meter: provider.Meter("inquest/recorder")}
	o.describe()
	if o.err != nil {
		return nil, o.err
	}
	reg, err := o.meter.RegisterCallback(func(_ context.Context, ob metric.Observer) error {
		stats := rec.Stats()
		for _, read := range o.read {
			read(ob, &stats)
		}
		return nil
	}, o.insts...)
	if err != nil {
		return nil, fmt.Errorf("cannot publish metrics: %w", err)
	}
	m := &metrics{registrations: []metric.Registration{reg}}
	reg, err = alertMetrics(o.meter, alerts)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot publish metrics: %w", err), m.close())
	}
	m.registrations = append(m.registrations, reg)
	return m, nil
}

func (o *observer) describe() {
	type stats = recorder.Stats
	signal := func(s string) attribute.KeyValue { return attribute.String("signal", s) }
	const accepted, acceptedHelp = "inquest_accepted", "Records acknowledged to their senders."
	o.counter(accepted, "{record}", acceptedHelp, func(s *stats) uint64 { return s.Accepted.Logs }, signal("logs"))
	o.counter(accepted, "{record}", acceptedHelp, func(s *stats) uint64 { return s.Accepted.Spans }, signal("traces"))
	o.counter(accepted, "{record}", acceptedHelp, func(s *stats) uint64 { return s.Accepted.Points }, signal("metrics"))
	const rejected, rejectedHelp = "inquest_rejected", "Records refused for good, with the reason in the answer."
	o.counter(rejected, "{record}", rejectedHelp, func(s *stats) uint64 { return s.Rejected.Logs }, signal("logs"))
	o.counter(rejected, "{record}", rejectedHelp, func(s *stats) uint64 { return s.Rejected.Spans }, signal("traces"))
	o.counter(rejected, "{record}", rejectedHelp, func(s *stats) uint64 { return s.Rejected.Points }, signal("metrics"))
	o.counter("inquest_refused_batches", "{batch}", "Batches answered with retry later.", func(s *stats) uint64 { return s.RefusedBatches })
	o.counter("inquest_dead_points", "{point}", "Acknowledged points that the store could not take; dead letters say why.", func(s *stats) uint64 { return s.DeadPoints })
	o.counters("inquest_dead_letters", "{letter}", "Records that were refused and are kept whole, by reason.", "reason", func(s *stats) map[string]uint64 { return s.DeadLettersByReason })
	o.counter("inquest_missing_payloads", "{event}", "Events recorded without the payload that was to be kept of them.", func(s *stats) uint64 { return s.MissingPayloads })
	o.counter("inquest_set_aside", "{batch}", "Entries that could not be applied and lie in files.", func(s *stats) uint64 { return s.SetAside })
	o.counter("inquest_lost_entries", "{batch}", "Entries that the disk damaged.", func(s *stats) uint64 { return s.LostEntries })

	o.counter("inquest_journal_syncs", "{sync}", "Syncs of the journal to the device.", func(s *stats) uint64 { return s.Journal.Syncs })
	o.seconds("inquest_journal_sync_time", "Time spent in syncs of the journal.", func(s *stats) float64 { return float64(s.Journal.SyncNanos) / 1e9 })
	o.gauge("inquest_journal_size", "By", "Bytes of the journal on disk.", func(s *stats) int64 { return s.Journal.Bytes })
	const lag, lagHelp = "inquest_lag", "Journal entries acknowledged and not yet in the stores (applied), or not yet there on disk (synced)."
	o.gauge(lag, "{batch}", lagHelp, func(s *stats) int64 { return int64(s.Acknowledged - min(s.Applied, s.Acknowledged)) }, attribute.String("stage", "applied"))
	o.gauge(lag, "{batch}", lagHelp, func(s *stats) int64 { return int64(s.Acknowledged - min(s.Synced, s.Acknowledged)) }, attribute.String("stage", "synced"))
	o.gauge("inquest_stalled", "1", "1 while the stores take nothing.", func(s *stats) int64 {
		if s.Stalled {
			return 1
		}
		return 0
	})
	o.gauge("inquest_store_size", "By", "Bytes of a store on disk.", func(s *stats) int64 { return int64(s.Records.DiskBytes) }, attribute.String("store", "records"))
	o.gauge("inquest_store_size", "By", "Bytes of a store on disk.", func(s *stats) int64 { return int64(s.Samples.DiskBytes) }, attribute.String("store", "samples"))
}
