// Package otlpreceiver is the Collector receiver for OTLP over gRPC and HTTP.
// Its settings are those of the Collector's own OTLP receiver. It differs in
// what it does with bad input: a record that does not decode is refused alone,
// with the reason in the answer's partial_success, and the rest of its batch is
// kept. Only a request whose outermost frame is broken is refused as a whole.
//
// A request is answered when the next component has answered, so with inquest's
// exporter at the end of the pipeline OK means durable. Whatever the pipeline
// refuses or remarks goes to the sender through the request's [admit.Report].
package otlpreceiver

import (
	"context"
	"fmt"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"
)

// Type is the receiver's name in a Collector configuration.
var Type = component.MustNewType("otlp")

// NewFactory returns the factory of the receiver.
func NewFactory() receiver.Factory {
	p := &pool{byConfig: map[*Config]*otlpReceiver{}}
	return receiver.NewFactory(Type,
		func() component.Config { return defaultConfig() },
		receiver.WithLogs(func(_ context.Context, set receiver.Settings, c component.Config, next consumer.Logs) (receiver.Logs, error) {
			return p.get(set, c, func(r *otlpReceiver) { r.logs = next })
		}, component.StabilityLevelBeta),
		receiver.WithTraces(func(_ context.Context, set receiver.Settings, c component.Config, next consumer.Traces) (receiver.Traces, error) {
			return p.get(set, c, func(r *otlpReceiver) { r.traces = next })
		}, component.StabilityLevelBeta),
		receiver.WithMetrics(func(_ context.Context, set receiver.Settings, c component.Config, next consumer.Metrics) (receiver.Metrics, error) {
			return p.get(set, c, func(r *otlpReceiver) { r.metrics = next })
		}, component.StabilityLevelBeta),
	)
}

// pool holds the receivers that are not shut down, by configuration: the
// factory is asked once for each signal, but one port takes them all.
type pool struct {
	mu       sync.Mutex
	byConfig map[*Config]*otlpReceiver
}

func (p *pool) get(set receiver.Settings, c component.Config, attach func(*otlpReceiver)) (*otlpReceiver, error) {
	cfg, ok := c.(*Config)
	if !ok {
		return nil, fmt.Errorf("configuration is a %T, want *otlpreceiver.Config", c)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	r, ok := p.byConfig[cfg]
	if !ok {
		var err error
		if r, err = newReceiver(cfg, set); err != nil {
			return nil, err
		}
		r.onShutdown = func() { p.drop(cfg) }
		p.byConfig[cfg] = r
	}
	attach(r)
	return r, nil
}

func (p *pool) drop(cfg *Config) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.byConfig, cfg)
}
