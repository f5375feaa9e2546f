// Package source gives what a simulated system told of itself to sensors, in the
// form in which the recorder's stores give back what they were sent: names and
// labels of metrics as Prometheus' translation of OTLP makes them, attributes that
// sensors read, text for all values.
package source

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/prometheus/otlptranslator"

	"inquest/lab/telemetry"
	"inquest/sensor"
)

// Memory returns what was told; the world began at start.
func Memory(rec *telemetry.Recorder, start time.Time) (*sensor.Memory, error) {
	m := &sensor.Memory{}
	c := converter{base: start.UnixNano(), sources: map[*telemetry.Source]*identity{}, keep: map[string]bool{}}
	for i := range rec.Spans {
		m.AllSpans = append(m.AllSpans, c.span(&rec.Spans[i]))
	}
	for i := range rec.Logs {
		m.AllLogs = append(m.AllLogs, c.log(&rec.Logs[i]))
	}
	for _, s := range rec.Series {
		all, err := c.series(s)
		if err != nil {
			return nil, err
		}
		m.AllSeries = append(m.AllSeries, all...)
	}
	return m, nil
}

type converter struct {
	base    int64
	sources map[*telemetry.Source]*identity
	keep    map[string]bool
}

// identity is what a source's resource says.
type identity struct {
	service, version, pod, node string
	labels                      map[string]string
}

func text(v any) string {
	switch x := v.(type) {
	case string:
		return x
	case int64:
		return strconv.FormatInt(x, 10)
	case float64:
		return strconv.FormatFloat(x, 'f', -1, 64)
	case bool:
		return strconv.FormatBool(x)
	}
	out, _ := json.Marshal(v)
	return string(out)
}

func (c *converter) identity(s *telemetry.Source) *identity {
	if id := c.sources[s]; id != nil {
		return id
	}
	get := func(names ...string) string {
		for _, n := range names {
			if v, ok := s.Resource.Get(n).(string); ok && v != "" {
				return v
			}
		}
		return ""
	}
	id := &identity{
		service: get("service.name"), version: get("service.version"), pod: get("k8s.pod.name", "service.instance.id"),
		node: get("k8s.node.name", "host.name"), labels: map[string]string{},
	}
	for _, a := range s.Resource {
		id.labels[labelName(a.Name)] = text(a.Value)
	}
	c.sources[s] = id
	return id
}

// attributes are those that sensors read.
func (c *converter) attributes(a telemetry.Attributes) map[string]string {
	var out map[string]string
	for _, x := range a {
		wanted, known := c.keep[x.Name]
		if !known {
			wanted = sensor.Wanted(x.Name)
			c.keep[x.Name] = wanted
		}
		if !wanted {
			continue
		}
		if v := text(x.Value); v != "" {
			if out == nil {
				out = make(map[string]string, len(a))
			}
			out[x.Name] = v
		}
	}
	return out
}

func (c *converter) span(s *telemetry.Span) sensor.Span {
	id := c.identity(s.Source)
	return sensor.Span{
		TraceID: s.Trace.String(), SpanID: s.ID.String(), Parent: s.Parent.String(),
		Service: id.service, Version: id.version, Pod: id.pod, Node: id.node,
		Name: s.Name, Kind: string(s.Kind), Start: c.base + int64(s.Start), Duration: max(0, int64(s.End-s.Start)),
		Error: s.Failed, Attributes: c.attributes(s.Attributes),
	}
}

func (c *converter) log(l *telemetry.Log) sensor.Log {
	id := c.identity(l.Source)
	return sensor.Log{
		Time: c.base + int64(l.Time), Service: id.service, Version: id.version, Pod: id.pod, Node: id.node,
		Severity: int(l.Severity), Body: l.Body, TraceID: l.Trace.String(), SpanID: l.Span.String(),
		Attributes: c.attributes(l.Attributes),
	}
}

// dotted are labels that keep OpenTelemetry's names on their way back.
var dotted = map[string]bool{
	"service.name": true, "service.namespace": true, "service.instance.id": true, "k8s.pod.name": true, "k8s.node.name": true,
	"k8s.namespace.name": true, "k8s.container.name": true, "host.name": true, "gen_ai.request.model": true,
}

var labels = otlptranslator.LabelNamer{}

func labelName(name string) string {
	if dotted[name] {
		return name
	}
	if out, err := labels.Build(name); err == nil {
		return out
	}
	return name
}

var metrics = otlptranslator.NewMetricNamer("", otlptranslator.UnderscoreEscapingWithSuffixes)

var types = map[telemetry.Type]otlptranslator.MetricType{
	telemetry.Gauge: otlptranslator.MetricTypeGauge, telemetry.Counter: otlptranslator.MetricTypeMonotonicCounter,
	telemetry.Histogram: otlptranslator.MetricTypeHistogram,
}

func (c *converter) series(s *telemetry.Series) ([]sensor.Series, error) {
	if len(s.Points) == 0 {
		return nil, nil
	}
	name, err := metrics.Build(otlptranslator.Metric{Name: s.Name, Unit: s.Unit, Type: types[s.Type]})
	if err != nil {
		return nil, fmt.Errorf("cannot name metric %q: %w", s.Name, err)
	}
	id := c.identity(s.Source)
	ls := make(map[string]string, len(id.labels)+len(s.Labels))
	for n, v := range id.labels {
		ls[n] = v
	}
	for _, a := range s.Labels {
		ls[labelName(a.Name)] = text(a.Value)
	}
	unit := s.Unit
	if len(unit) > 0 && unit[0] == '{' {
		unit = ""
	}
	out := sensor.Series{Name: name, Labels: ls, Unit: unit, Counter: s.Type == telemetry.Counter, Gauge: s.Type == telemetry.Gauge}
	if s.Type != telemetry.Histogram {
		for _, p := range s.Points {
			out.Points = append(out.Points, c.point(p.Time, p.Value))
		}
		return []sensor.Series{out}, nil
	}
	return c.histogram(s, out), nil
}

func (c *converter) point(t time.Duration, v float64) sensor.Point {
	// Samples have milliseconds.
	return sensor.Point{Time: (c.base + int64(t)) / 1e6 * 1e6, Value: v}
}

func (c *converter) histogram(s *telemetry.Series, of sensor.Series) []sensor.Series {
	of.Counter = true
	count, sum := of, of
	count.Name, sum.Name = of.Name+"_count", of.Name+"_sum"
	count.Unit = "1"
	for _, p := range s.Points {
		count.Points = append(count.Points, c.point(p.Time, float64(p.Count)))
		sum.Points = append(sum.Points, c.point(p.Time, p.Value))
	}
	out := []sensor.Series{count, sum}
	if _, wanted := sensor.TailClass(of.Name, of.Unit, of.Labels); !wanted {
		return out
	}
	for i := range len(s.Bounds) + 1 {
		b := of
		b.Name = of.Name + "_bucket"
		b.Labels = make(map[string]string, len(of.Labels)+1)
		for n, v := range of.Labels {
			b.Labels[n] = v
		}
		b.Labels["le"] = "+Inf"
		if i < len(s.Bounds) {
			b.Labels["le"] = strconv.FormatFloat(s.Bounds[i], 'f', -1, 64)
		}
		for _, p := range s.Points {
			n := uint64(0)
			for _, h := range p.Hits[:i+1] {
				n += h
			}
			b.Points = append(b.Points, c.point(p.Time, float64(n)))
		}
		out = append(out, b)
	}
	return out
}
