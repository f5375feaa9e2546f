package api

import (
	"slices"
	"strings"

	"github.com/prometheus/otlptranslator"
)

// Prometheus names a metric otherwise than OpenTelemetry: http.server.duration
// in seconds becomes http_server_duration_seconds_bucket. An exemplar's record
// has OpenTelemetry's name and no unit, so names are compared by what both have.

// typeSuffixes are the endings that tell parts of a metric apart in Prometheus.
var typeSuffixes = []string{"bucket", "count", "sum", "total"}

// unitWords are the endings that units bring, besides what the translator does
// not know and writes as it is.
var unitWords = []string{
	"days", "hours", "minutes", "seconds", "milliseconds", "microseconds", "nanoseconds",
	"bytes", "kibibytes", "mebibytes", "gibibytes", "tibibytes", "kilobytes", "megabytes", "gigabytes", "terabytes",
	"meters", "volts", "amperes", "joules", "watts", "grams", "celsius", "hertz", "percent", "ratio",
	"per", "second", "minute", "hour", "day", "week", "month", "year",
}

// sameMetric tells whether prom can be Prometheus' name of the OpenTelemetry
// metric otlp.
func sameMetric(prom, otlp string) bool {
	if prom == otlp {
		return true
	}
	namer := otlptranslator.NewMetricNamer("", otlptranslator.UnderscoreEscapingWithSuffixes)
	plain, err := namer.Build(otlptranslator.Metric{Name: otlp})
	if err != nil {
		return false
	}
	if prom == plain {
		return true
	}
	promTokens, plainTokens := strings.Split(prom, "_"), strings.Split(plain, "_")
	// Every word of the name is kept, although total and ratio may move.
	for _, t := range plainTokens {
		if !slices.Contains(promTokens, t) {
			return false
		}
	}
	return slices.Equal(stem(promTokens), stem(plainTokens))
}

// stem is a name without the endings of types and units.
func stem(tokens []string) []string {
	for len(tokens) > 1 {
		last := tokens[len(tokens)-1]
		if !slices.Contains(typeSuffixes, last) && !slices.Contains(unitWords, last) {
			break
		}
		tokens = tokens[:len(tokens)-1]
	}
	return tokens
}

// promLabel is Prometheus' name of an attribute.
func promLabel(attribute string) string {
	namer := otlptranslator.LabelNamer{}
	name, err := namer.Build(attribute)
	if err != nil {
		return attribute
	}
	return name
}
