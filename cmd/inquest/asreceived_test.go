package main

import (
	"testing"

	"go.opentelemetry.io/collector/confmap"
	"go.yaml.in/yaml/v3"
)

func TestAsReceived(t *testing.T) {
	f := func(config string, want any) {
		t.Helper()
		var m map[string]any
		if err := yaml.Unmarshal([]byte(config), &m); err != nil {
			t.Fatal(err)
		}
		conf := confmap.NewFromStringMap(m)
		if err := (asReceived{}).Convert(t.Context(), conf); err != nil {
			t.Fatal(err)
		}
		if got := conf.Get("exporters::inquest::as_received"); got != want {
			t.Errorf("as_received is %v, want %v:\n%s", got, want, config)
		}
	}
	f(defaultConfig, true)
	f("exporters: {inquest: {as_received: false}}", false)
	f("exporters: {inquest: {recorder: inquest/b}}\nservice: {pipelines: {logs: {processors: []}}}", true)
	f("exporters: {inquest: }\nservice: {pipelines: {logs: {receivers: [otlp]}, traces: {processors: [transform]}}}", nil)
	f("exporters: {inquest: }\nconnectors: {count: }", nil)
	f("exporters: {otlp: }", nil)
}
