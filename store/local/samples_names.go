package local

import (
	"encoding/hex"

	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// mendNames renames what has no name in Prometheus: names without any ASCII
// letter or digit, which the translator would refuse together with their points.
// They become their bytes in hexadecimal. one is as forEachPoint makes it.
func mendNames(one pmetric.Metrics) {
	rm := one.ResourceMetrics().At(0)
	mendAttributes(rm.Resource().Attributes())
	m := rm.ScopeMetrics().At(0).Metrics().At(0)
	if name, err := (&otlptranslator.MetricNamer{}).Build(otlptranslator.Metric{Name: m.Name()}); err != nil || name == "" {
		m.SetName("metric_" + hex.EncodeToString([]byte(m.Name())))
	}
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		mendAttributes(m.Gauge().DataPoints().At(0).Attributes())
	case pmetric.MetricTypeSum:
		mendAttributes(m.Sum().DataPoints().At(0).Attributes())
	case pmetric.MetricTypeHistogram:
		mendAttributes(m.Histogram().DataPoints().At(0).Attributes())
	case pmetric.MetricTypeExponentialHistogram:
		mendAttributes(m.ExponentialHistogram().DataPoints().At(0).Attributes())
	case pmetric.MetricTypeSummary:
		mendAttributes(m.Summary().DataPoints().At(0).Attributes())
	case pmetric.MetricTypeEmpty: // is rejected
	}
}

func mendAttributes(attributes pcommon.Map) {
	var namer otlptranslator.LabelNamer
	var bad []string
	for name := range attributes.All() {
		if _, err := namer.Build(name); err != nil {
			bad = append(bad, name)
		}
	}
	for _, name := range bad {
		v, _ := attributes.Get(name)
		value := v.AsString()
		attributes.Remove(name)
		attributes.PutStr("attribute_"+hex.EncodeToString([]byte(name)), value)
	}
}
