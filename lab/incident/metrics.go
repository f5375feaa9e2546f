package incident

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
)

// event is a value at a moment.
type event struct{ time, value float64 }

type kind uint8

const (
	gauge kind = iota
	counter
	histogram
)

// target is what a set of metrics is read from: an SDK, an exporter or an agent.
type target struct {
	resource *resource.Resource
	scope    string
	pod      *Pod // it answers while this pod runs; nil: always
	metrics  []*metric
}

// metric is one name with its series.
type metric struct {
	name, unit string
	kind       kind
	bounds     []float64
	series     []*series
}

// series is one combination of attributes with all that was observed.
type series struct {
	attrs  attribute.Set
	events []event

	// next, sum, count, buckets and last belong to the reading.
	next    int
	sum     float64
	count   uint64
	buckets []uint64
	last    float64
	lo, hi  float64
}

func (x *series) observe(t, v float64) { x.events = append(x.events, event{t, v}) }

// registry holds all metrics of the system.
type registry struct {
	targets []*target
	byKey   map[string]*target
	metrics map[*target]map[string]*metric
}

func newRegistry() *registry {
	return &registry{byKey: map[string]*target{}, metrics: map[*target]map[string]*metric{}}
}

// target returns the target of a key, made by the first call.
func (r *registry) target(key string, pod *Pod, scope string, res func() *resource.Resource) *target {
	t := r.byKey[key]
	if t == nil {
		t = &target{resource: res(), scope: scope, pod: pod}
		r.byKey[key] = t
		r.targets = append(r.targets, t)
		r.metrics[t] = map[string]*metric{}
	}
	return t
}

func (r *registry) series(t *target, k kind, name, unit string, bounds []float64, attrs ...attribute.KeyValue) *series {
	m := r.metrics[t][name]
	if m == nil {
		m = &metric{name: name, unit: unit, kind: k, bounds: bounds}
		r.metrics[t][name] = m
		t.metrics = append(t.metrics, m)
	}
	set := attribute.NewSet(attrs...)
	for _, s := range m.series {
		if s.attrs.Equals(&set) {
			return s
		}
	}
	s := &series{attrs: set, lo: math.Inf(1), hi: math.Inf(-1)}
	m.series = append(m.series, s)
	return s
}

// scrapes reads every target at every moment, as an SDK's reader or a scraper
// would: counters and histograms add up since the start.
func (r *registry) scrapes(s *simulation) [][]*metricdata.ResourceMetrics {
	for _, t := range r.targets {
		for _, m := range t.metrics {
			for _, x := range m.series {
				slices.SortStableFunc(x.events, func(a, b event) int { return cmp.Compare(a.time, b.time) })
			}
		}
	}
	var out [][]*metricdata.ResourceMetrics
	for now := ScrapeInterval.Seconds(); now <= s.end; now += ScrapeInterval.Seconds() {
		var all []*metricdata.ResourceMetrics
		for _, t := range r.targets {
			if t.pod != nil && (now < t.pod.from || now >= t.pod.to) {
				continue
			}
			if rm := t.read(s, now); len(rm.ScopeMetrics[0].Metrics) > 0 {
				all = append(all, rm)
			}
		}
		out = append(out, all)
	}
	return out
}

func (t *target) read(s *simulation, now float64) *metricdata.ResourceMetrics {
	begin := 0.0
	if t.pod != nil {
		begin = max(0, t.pod.from)
	}
	var ms []metricdata.Metrics
	for _, m := range t.metrics {
		var live []*series
		for _, x := range m.series {
			if x.until(now, m.bounds) {
				live = append(live, x)
			}
		}
		if len(live) > 0 {
			ms = append(ms, metricdata.Metrics{Name: m.name, Unit: m.unit, Data: m.data(s, live, begin, now)})
		}
	}
	return &metricdata.ResourceMetrics{
		Resource:     t.resource,
		ScopeMetrics: []metricdata.ScopeMetrics{{Scope: instrumentation.Scope{Name: t.scope}, Metrics: ms}},
	}
}

// until takes in what was observed up to now and reports whether there was
// anything.
func (x *series) until(now float64, bounds []float64) bool {
	if x.buckets == nil {
		x.buckets = make([]uint64, len(bounds)+1)
	}
	for x.next < len(x.events) && x.events[x.next].time <= now {
		v := x.events[x.next].value
		x.sum += v
		x.count++
		x.last, x.lo, x.hi = v, min(x.lo, v), max(x.hi, v)
		i, _ := slices.BinarySearch(bounds, v)
		x.buckets[i]++
		x.next++
	}
	return x.next > 0
}

func (m *metric) data(s *simulation, live []*series, begin, now float64) metricdata.Aggregation {
	start, at := s.at(begin), s.at(now)
	if m.kind == histogram {
		h := metricdata.Histogram[float64]{Temporality: metricdata.CumulativeTemporality}
		for _, x := range live {
			h.DataPoints = append(h.DataPoints, metricdata.HistogramDataPoint[float64]{
				Attributes: x.attrs, StartTime: start, Time: at, Count: x.count, Sum: x.sum,
				Bounds: m.bounds, BucketCounts: slices.Clone(x.buckets),
				Min: metricdata.NewExtrema(x.lo), Max: metricdata.NewExtrema(x.hi),
			})
		}
		return h
	}
	points := make([]metricdata.DataPoint[float64], len(live))
	for i, x := range live {
		points[i] = metricdata.DataPoint[float64]{Attributes: x.attrs, StartTime: start, Time: at, Value: x.last}
		if m.kind == counter {
			points[i].Value = x.sum
		}
	}
	if m.kind == counter {
		return metricdata.Sum[float64]{DataPoints: points, Temporality: metricdata.CumulativeTemporality, IsMonotonic: true}
	}
	return metricdata.Gauge[float64]{DataPoints: points}
}

// Bounds of histograms, as the conventions and the projects have them.
var (
	httpBounds   = []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}
	dbBounds     = []float64{0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10}
	genAIBounds  = []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
	tokenBounds  = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144}
	engineBounds = []float64{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80}
)

// sdk is the target of what a pod's own SDK measures.
func (r *registry) sdk(p *Pod, scope string) *target {
	return r.target("sdk/"+p.Name+"/"+scope, p, scope, p.Resource)
}

func (r *registry) httpServer(p *Pod, method, route string, status int) *series {
	attrs := []attribute.KeyValue{
		attribute.String("http.request.method", method), attribute.String("http.route", route),
		attribute.Int("http.response.status_code", status), attribute.String("url.scheme", "http"),
	}
	if status >= 500 {
		attrs = append(attrs, attribute.String("error.type", strconv.Itoa(status)))
	}
	return r.series(r.sdk(p, "http"), histogram, "http.server.request.duration", "s", httpBounds, attrs...)
}

func (r *registry) database(p *Pod, status string) *series {
	attrs := []attribute.KeyValue{
		attribute.String("db.system.name", "qdrant"), attribute.String("db.operation.name", "query"),
		attribute.String("db.collection.name", "documents"), attribute.String("server.address", svcVector),
	}
	if status != "OK" {
		attrs = append(attrs, attribute.String("error.type", status))
	}
	return r.series(r.sdk(p, "qdrant_client"), histogram, "db.client.operation.duration", "s", dbBounds, attrs...)
}

// client is the duration of the orchestrator's calls to the model server.
func (r *registry) client(p *Pod, errorType string) *series {
	attrs := []attribute.KeyValue{
		attribute.String("gen_ai.operation.name", "chat"), attribute.String("gen_ai.provider.name", "openai"),
		attribute.String("gen_ai.request.model", modelName), attribute.String("server.address", svcModel),
	}
	if errorType != "" {
		attrs = append(attrs, attribute.String("error.type", errorType))
	}
	return r.series(r.sdk(p, "openai"), histogram, "gen_ai.client.operation.duration", "s", genAIBounds, attrs...)
}

func (r *registry) tokens(p *Pod, sort string) *series {
	return r.series(r.sdk(p, "openai"), histogram, "gen_ai.client.token.usage", "{token}", tokenBounds,
		attribute.String("gen_ai.operation.name", "chat"), attribute.String("gen_ai.provider.name", "openai"),
		attribute.String("gen_ai.request.model", modelName), attribute.String("gen_ai.token.type", sort))
}

// scraped is the target of a pod whose /metrics a Prometheus receiver reads.
func (r *registry) scraped(p *Pod) *target {
	return r.target("scrape/"+p.Name, p, "prometheusreceiver", p.Resource)
}

func engineLabels() []attribute.KeyValue {
	return []attribute.KeyValue{attribute.String("model_name", modelName), attribute.String("engine", "0")}
}

func (r *registry) engine(p *Pod, name string) *series {
	return r.series(r.scraped(p), histogram, name, "", engineBounds, engineLabels()...)
}

// aborts counts the requests that a model server ended.
func (r *registry) aborts(p *Pod, aborted bool) *series {
	reason := "stop"
	if aborted {
		reason = "abort"
	}
	return r.series(r.scraped(p), counter, "vllm:request_success_total", "", nil, append(engineLabels(), attribute.String("finished_reason", reason))...)
}

func (r *registry) vector(p *Pod) *series {
	return r.series(r.scraped(p), histogram, "grpc_responses_duration_seconds", "", httpBounds,
		attribute.String("endpoint", "/qdrant.Points/Query"))
}
