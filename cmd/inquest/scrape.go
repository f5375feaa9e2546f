package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"go.opentelemetry.io/collector/component"

	"inquest/component/scrapereceiver"
)

// scrapeConfig returns what is added to the default configuration for the
// targets of --scrape: one receiver for each name, in the pipeline of metrics.
func scrapeConfig(scrapes []string) (string, error) {
	receivers := map[string]any{}
	pipeline := []string{"otlp"}
	targets := map[string][]string{}
	for _, s := range scrapes {
		id := component.NewID(scrapereceiver.Type)
		target := s
		// An equals sign may also stand in a URL's parameters.
		if name, rest, ok := strings.Cut(s, "="); ok && !strings.ContainsAny(name, ":/?") {
			if err := id.UnmarshalText([]byte(scrapereceiver.Type.String() + "/" + name)); err != nil || name == "" {
				return "", fmt.Errorf("--scrape %s: %q cannot be a name: write it like vllm=localhost:8000", s, name)
			}
			target = rest
		}
		if target == "" {
			return "", fmt.Errorf("--scrape %s names no target: write it like localhost:8000 or vllm=localhost:8000", s)
		}
		if _, known := targets[id.String()]; !known {
			pipeline = append(pipeline, id.String())
		}
		targets[id.String()] = append(targets[id.String()], target)
		receivers[id.String()] = map[string]any{"targets": targets[id.String()]}
	}
	text, err := json.Marshal(map[string]any{
		"receivers": receivers,
		"service":   map[string]any{"pipelines": map[string]any{"metrics": map[string]any{"receivers": pipeline}}},
	})
	return string(text), err // JSON is YAML
}
