package stored

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"

	"inquest/sensor"
	"inquest/store"
)

// resourceLabels are resource attributes under the names that Prometheus'
// data model gives them.
var resourceLabels = map[string]string{
	"service_name": "service.name", "service_namespace": "service.namespace", "service_instance_id": "service.instance.id",
	"k8s_pod_name": "k8s.pod.name", "k8s_node_name": "k8s.node.name", "k8s_namespace_name": "k8s.namespace.name",
	"k8s_container_name": "k8s.container.name", "host_name": "host.name",
	"gen_ai_request_model": "gen_ai.request.model",
}

// Samples implements [sensor.Source]. Of histogram buckets only those of latencies
// and lengths are read: of all histograms the counts and sums are there as series
// of their own.
func (s *Source) Samples(ctx context.Context, r sensor.Range, fn func(sensor.Series) error) error {
	length := time.Duration(r.To - r.From).Truncate(time.Millisecond)
	if length <= 0 {
		return nil
	}
	// Canonical series repeat what was sent, so they are left out.
	matrix, err := s.points(ctx, `__name__=~".+",__name__!~".*_bucket|target_info|otel_scope_info",alias_source=""`, r)
	if err != nil {
		return err
	}
	meta, err := s.samples.Metadata(ctx)
	if err != nil {
		return err
	}
	counts := map[string]int{} // series of each histogram whose buckets are to be read
	for _, series := range matrix {
		out := describe(series.Metric, meta)
		if len(series.Histograms) > 0 {
			if err := native(out, series.Histograms, fn); err != nil {
				return err
			}
		}
		if len(series.Floats) == 0 {
			continue
		}
		if base, ok := strings.CutSuffix(out.Name, "_count"); ok && !strings.HasPrefix(base, "go_gc") {
			if _, wanted := sensor.TailClass(base, bucketUnit(base, meta), out.Labels); wanted {
				counts[base]++
			}
		}
		out.Points = pointsOf(series.Floats)
		if err := fn(out); err != nil {
			return err
		}
	}
	return s.buckets(ctx, r, counts, meta, fn)
}

// points reads the series that a matcher selects, with their points as they were
// sent: a range selector is open at its start and closed at its end, in
// milliseconds.
func (s *Source) points(ctx context.Context, matchers string, r sensor.Range) (promql.Matrix, error) {
	length := time.Duration(r.To - r.From).Truncate(time.Millisecond)
	res, err := s.samples.QueryInstant(ctx, fmt.Sprintf(`{%s}[%dms]`, matchers, length.Milliseconds()), sensor.Time(r.To-int64(time.Millisecond)))
	if err != nil {
		return nil, err
	}
	matrix, ok := res.Value.(promql.Matrix)
	if !ok {
		return nil, fmt.Errorf("the store answered a range selector with a %T", res.Value)
	}
	return matrix, nil
}

func pointsOf(floats []promql.FPoint) []sensor.Point {
	out := make([]sensor.Point, len(floats))
	for i, p := range floats {
		out[i] = sensor.Point{Time: p.T * int64(time.Millisecond), Value: p.F}
	}
	return out
}

func describe(ls labels.Labels, meta map[string]store.Metadata) sensor.Series {
	out := sensor.Series{Labels: map[string]string{}}
	ls.Range(func(l labels.Label) {
		switch name := resourceLabels[l.Name]; {
		case l.Name == model.MetricNameLabel:
			out.Name = l.Value
		case name != "":
			out.Labels[name] = l.Value
		default:
			out.Labels[l.Name] = l.Value
		}
	})
	// Prometheus' own names of a target stand in where there is no attribute.
	fallback(out.Labels, "service.name", "job")
	fallback(out.Labels, "service.instance.id", "instance")
	fallback(out.Labels, "k8s.pod.name", "pod")
	fallback(out.Labels, "k8s.node.name", "node")

	m, ok := meta[out.Name]
	base := out.Name
	for _, suffix := range []string{"_total", "_count", "_sum", "_bucket"} {
		if ok {
			break
		}
		if cut, found := strings.CutSuffix(out.Name, suffix); found {
			base = cut
			m, ok = meta[cut]
		}
	}
	out.Unit = ucum(m.Unit)
	if out.Unit == "" {
		out.Unit = unitOf(base)
	}
	summed := m.Type == "histogram" || m.Type == "summary"
	out.Counter = m.Type == "counter" || summed && base != out.Name ||
		m.Type == "" && (strings.HasSuffix(out.Name, "_total") || strings.HasSuffix(out.Name, "_count") || strings.HasSuffix(out.Name, "_sum"))
	out.Gauge = m.Type == "gauge"
	if strings.HasSuffix(out.Name, "_count") && summed {
		out.Unit = "1"
	}
	return out
}

func fallback(ls map[string]string, name, other string) {
	if ls[name] == "" && ls[other] != "" {
		ls[name] = ls[other]
	}
}

// units are Prometheus' words for units of OpenTelemetry.
var units = map[string]string{
	"seconds": "s", "milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns", "minutes": "min", "hours": "h", "days": "d",
	"bytes": "By", "kibibytes": "KiBy", "mebibytes": "MiBy", "gibibytes": "GiBy", "kilobytes": "kBy", "megabytes": "MBy", "gigabytes": "GBy",
	"ratio": "1", "percent": "%", "celsius": "Cel", "joules": "J", "watts": "W", "volts": "V", "amperes": "A", "hertz": "Hz",
}

// ucum turns a unit that Prometheus' naming spelled out back, also of a rate
// such as bytes_per_second.
func ucum(unit string) string {
	base, per, rate := strings.Cut(unit, "_per_")
	if u, ok := units[base]; ok {
		base = u
	}
	if !rate {
		return base
	}
	if u, ok := units[per+"s"]; ok {
		per = u
	}
	return base + "/" + per
}

// unitOf reads a unit from a name, as Prometheus' conventions have it.
func unitOf(name string) string {
	name = strings.TrimSuffix(name, "_total")
	if i := strings.LastIndex(name, "_per_"); i >= 0 {
		if j := strings.LastIndexByte(name[:i], '_'); j >= 0 && units[name[j+1:i]] != "" {
			return ucum(name[j+1:])
		}
		return ""
	}
	return units[name[strings.LastIndexByte(name, '_')+1:]]
}

// sampleRanges are the minutes for which any series has a point.
func (s *Source) sampleRanges(ctx context.Context, r sensor.Range) ([]sensor.Range, error) {
	step := coverageStep
	from := sensor.Time(r.From).Truncate(step).Add(step)
	expr := fmt.Sprintf(`count(last_over_time({__name__=~".+"}[%s]))`, step)
	res, err := s.samples.QueryRange(ctx, expr, from, sensor.Time(r.To).Add(step), step)
	if err != nil {
		return nil, err
	}
	minutes := map[int64]bool{}
	matrix, _ := res.Value.(promql.Matrix)
	for _, series := range matrix {
		for _, p := range series.Floats {
			minutes[(p.T-step.Milliseconds())*int64(time.Millisecond)] = true
		}
	}
	return joined(minutes, r), nil
}
