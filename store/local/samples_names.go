package local

import (
	"encoding/hex"

	"github.com/prometheus/otlptranslator"
	"github.com/prometheus/prometheus/storage/remote/otlptranslator/prometheusremotewrite"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"inquest/record"
)

// naming is metrics and how their names become Prometheus'.
type naming struct {
	md       pmetric.Metrics
	settings prometheusremotewrite.Settings
}

// byNaming takes metrics that were scraped, which keep their names, from the
// others. A batch that has only one kind, as nearly all do, is not copied.
func byNaming(md pmetric.Metrics) []naming {
	kept, other := 0, 0
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			if sm.Scope().Name() == record.ScopeScraped {
				kept++
			} else {
				other++
			}
		}
	}
	switch {
	case kept == 0:
		return []naming{{md, translation}}
	case other == 0:
		return []naming{{md, scraped}}
	}
	only := func(wanted bool) pmetric.Metrics {
		out := pmetric.NewMetrics()
		for _, rm := range md.ResourceMetrics().All() {
			to := out.ResourceMetrics().AppendEmpty()
			rm.Resource().CopyTo(to.Resource())
			for _, sm := range rm.ScopeMetrics().All() {
				if wanted == (sm.Scope().Name() == record.ScopeScraped) {
					sm.CopyTo(to.ScopeMetrics().AppendEmpty())
				}
			}
		}
		return out
	}
	return []naming{{only(true), scraped}, {only(false), translation}}
}

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
