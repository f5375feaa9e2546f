// Package scrapereceiver is the Collector receiver that reads the /metrics of
// other processes, as Prometheus does and with Prometheus' own scraper: formats,
// relabelling, limits, staleness and up are Prometheus'. Nothing but the targets
// has to be told.
//
// What a target says in one scrape goes on as one batch. Series that belong
// together become one point again: classic histograms and summaries. A batch
// that the pipeline does not take is tried again until the next scrape is due;
// then it is counted and logged as lost.
package scrapereceiver

import (
	"context"
	"fmt"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"
)

// Type is the receiver's name in a Collector configuration.
var Type = component.MustNewType("scrape")

// NewFactory returns the factory of the receiver.
func NewFactory() receiver.Factory {
	return receiver.NewFactory(Type,
		func() component.Config { return defaultConfig() },
		receiver.WithMetrics(func(_ context.Context, set receiver.Settings, c component.Config, next consumer.Metrics) (receiver.Metrics, error) {
			cfg, ok := c.(*Config)
			if !ok {
				return nil, fmt.Errorf("configuration is a %T, want *scrapereceiver.Config", c)
			}
			return newReceiver(cfg, set, next)
		}, component.StabilityLevelBeta),
	)
}
