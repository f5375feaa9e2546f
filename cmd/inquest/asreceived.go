package main

import (
	"context"
	"strings"

	"go.opentelemetry.io/collector/confmap"

	"inquest/component/journalexporter"
)

// asReceived lets the exporter keep requests in the bytes that they came in
// where no pipeline can have changed them. What the configuration says itself
// stays.
type asReceived struct{}

func newAsReceived(confmap.ConverterSettings) confmap.Converter { return asReceived{} }

func (asReceived) Convert(_ context.Context, conf *confmap.Conf) error {
	if changesData(conf) {
		return nil
	}
	exporters, err := conf.Sub("exporters")
	if err != nil {
		return nil // the Collector says what is wrong with it
	}
	for name, settings := range exporters.ToStringMap() {
		kind, _, _ := strings.Cut(name, "/")
		if kind != journalexporter.Type.String() {
			continue
		}
		if m, ok := settings.(map[string]any); ok {
			if _, set := m["as_received"]; set {
				continue
			}
		}
		add := confmap.NewFromStringMap(map[string]any{"exporters": map[string]any{name: map[string]any{"as_received": true}}})
		if err := conf.Merge(add); err != nil {
			return err
		}
	}
	return nil
}

// changesData reports whether data may be changed between a receiver and an
// exporter: any processor and any connector is taken to do it.
func changesData(conf *confmap.Conf) bool {
	if m, _ := conf.Get("connectors").(map[string]any); len(m) > 0 {
		return true
	}
	pipelines, _ := conf.Get("service::pipelines").(map[string]any)
	for _, p := range pipelines {
		settings, _ := p.(map[string]any)
		if list, _ := settings["processors"].([]any); len(list) > 0 {
			return true
		}
	}
	return false
}
