package scrapereceiver

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

const vllmText = `# HELP vllm:num_requests_waiting Number of requests waiting.
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{model_name="tiny"} 3
# HELP vllm:prompt_tokens_total Number of prefill tokens processed.
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{model_name="tiny"} 882
# TYPE nv_inference_count counter
nv_inference_count 7
# TYPE vllm:ttft_seconds histogram
vllm:ttft_seconds_bucket{le="0.1"} 1
vllm:ttft_seconds_bucket{le="1.0"} 3
vllm:ttft_seconds_bucket{le="+Inf"} 4
vllm:ttft_seconds_sum 5.5
vllm:ttft_seconds_count 4
# TYPE rpc summary
rpc{quantile="0.5"} 0.2
rpc{quantile="0.99"} NaN
rpc_sum 12
rpc_count 34
some__untyped 1.5
# TYPE torn histogram
torn_bucket{le="1"} 5
torn_bucket{le="+Inf"} 4
torn_sum 1
torn_count 4
`

// What PromQL has is what Prometheus itself would have, but for le="1", and in
// between it is whole points with their types.
func TestText(t *testing.T) {
	p := serve(t, textKind, vllmText)
	r := begin(t, func(c *Config) { c.Targets = []string{p.address()}; c.Labels = map[string]string{"pod": "p-1"} })
	until(t, "a scrape", func() bool { return r.count() > 0 })
	got := r.series(t, 0)
	for key := range got {
		if strings.Contains(key, `"scrape_`) {
			delete(got, key)
		}
	}
	common := fmt.Sprintf(`instance=%q, job="svc", k8s_pod_name="p-1", `, p.address())
	want := map[string]string{}
	f := func(name, own, value string) {
		ls := []string{fmt.Sprintf("__name__=%q", name)}
		ls = append(ls, strings.Split(strings.TrimSuffix(common, ", "), ", ")...)
		ls = append(ls, `pod="p-1"`)
		if own != "" {
			ls = append(ls, own)
		}
		slices.Sort(ls)
		want["{"+strings.Join(ls, ", ")+"}"] = value
	}
	f("up", "", "1")
	f("vllm:num_requests_waiting", `model_name="tiny"`, "3")
	f("vllm:prompt_tokens_total", `model_name="tiny"`, "882")
	f("nv_inference_count", "", "7")
	f("vllm:ttft_seconds_bucket", `le="0.1"`, "1")
	f("vllm:ttft_seconds_bucket", `le="1"`, "3")
	f("vllm:ttft_seconds_bucket", `le="+Inf"`, "4")
	f("vllm:ttft_seconds_sum", "", "5.5")
	f("vllm:ttft_seconds_count", "", "4")
	f("rpc", `quantile="0.5"`, "0.2")
	f("rpc", `quantile="0.99"`, "NaN")
	f("rpc_sum", "", "12")
	f("rpc_count", "", "34")
	f("some__untyped", "", "1.5")
	f("torn_bucket", `le="1"`, "5")
	f("torn_bucket", `le="+Inf"`, "4")
	f("torn_sum", "", "1")
	f("torn_count", "", "4")
	for key, v := range want {
		if got[key] != v {
			t.Errorf("%s is %q, want %q", key, got[key], v)
		}
		delete(got, key)
	}
	if len(got) > 0 {
		t.Errorf("there is more: %v", got)
	}
	types := map[string]pmetric.MetricType{
		"vllm:num_requests_waiting": pmetric.MetricTypeGauge,
		"vllm:prompt_tokens_total":  pmetric.MetricTypeSum,
		"nv_inference_count":        pmetric.MetricTypeSum,
		"vllm:ttft_seconds":         pmetric.MetricTypeHistogram,
		"rpc":                       pmetric.MetricTypeSummary,
		"some__untyped":             pmetric.MetricTypeGauge,
		"torn_bucket":               pmetric.MetricTypeGauge,
	}
	for name, typ := range types {
		if m, ok := r.newest(name); !ok || m.Type() != typ {
			t.Errorf("%s has another type than %v", name, typ)
		}
	}
	m, _ := r.newest("vllm:num_requests_waiting")
	if m.Description() != "Number of requests waiting." {
		t.Errorf("description is %q", m.Description())
	}
}

func TestResource(t *testing.T) {
	p := serve(t, textKind, "a 1\nb{job=\"inner\"} 2\n")
	r := begin(t, func(c *Config) {
		c.ScrapeConfigs = []map[string]any{{
			"job_name": "fed", "honor_labels": true, "scrape_interval": "100ms", "scrape_timeout": "100ms",
			"static_configs":         []any{map[string]any{"targets": []any{p.address()}, "labels": map[string]any{"namespace": "ns", "node": "n1", "zone": "z"}}},
			"relabel_configs":        []any{map[string]any{"source_labels": []any{"zone"}, "target_label": "area"}},
			"metric_relabel_configs": []any{map[string]any{"source_labels": []any{"__name__"}, "regex": "scrape_.*", "action": "drop"}},
		}}
	})
	until(t, "a scrape", func() bool { return r.count() > 0 })
	got := map[string]map[string]any{}
	r.mu.Lock()
	for _, rm := range r.batches[0].ResourceMetrics().All() {
		attrs := rm.Resource().Attributes().AsRaw()
		got[attrs["service.name"].(string)] = attrs
	}
	r.mu.Unlock()
	host, port, _ := strings.Cut(p.address(), ":")
	want := map[string]map[string]any{
		"fed": {
			"service.name": "fed", "service.instance.id": p.address(), "url.scheme": "http", "server.address": host, "server.port": port,
			"k8s.namespace.name": "ns", "k8s.node.name": "n1",
		},
		"inner": {"service.name": "inner", "service.instance.id": p.address()},
	}
	for name := range want {
		if !maps.Equal(got[name], want[name]) {
			t.Errorf("resource is %v, want %v", got[name], want[name])
		}
	}
	key := fmt.Sprintf(`{__name__="b", area="z", instance=%q, job="inner", namespace="ns", node="n1", zone="z"}`, p.address())
	if v := r.series(t, 0)[key]; v != "2" {
		t.Errorf("%s is missing in %v", key, r.series(t, 0))
	}
}

const openText = `# TYPE http_requests counter
# UNIT http_requests requests
http_requests_total{code="200"} 5 # {trace_id="5b8efff798038103d269b633813fc60c",span_id="eee19b7ec3c1b174",user="u1"} 1 %d.5
http_requests_created{code="200"} 1700000000.25
# TYPE lat_seconds histogram
# UNIT lat_seconds seconds
lat_seconds_bucket{le="1.0"} 1 # {trace_id="0b8efff798038103d269b633813fc60c"} 0.5
lat_seconds_bucket{le="+Inf"} 2 # {trace_id="not hex"} 7
lat_seconds_sum 7.5
lat_seconds_count 2
lat_seconds_created 1700000001
# TYPE build info
build_info{version="1"} 1
# EOF
`

func TestOpenMetrics(t *testing.T) {
	now := time.Now().Unix() - 5
	p := serve(t, openKind, fmt.Sprintf(openText, now))
	r := begin(t, func(c *Config) { c.Targets = []string{p.URL + "/metrics"} })
	until(t, "three scrapes", func() bool { return r.count() > 2 })
	var exemplars []string
	add := func(name string, es pmetric.ExemplarSlice) {
		for _, e := range es.All() {
			exemplars = append(exemplars, fmt.Sprint(name, e.TraceID(), e.SpanID(), e.DoubleValue(), e.FilteredAttributes().AsRaw()))
		}
	}
	r.mu.Lock()
	for _, md := range r.batches {
		for _, m := range md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
			switch m.Name() {
			case "http_requests_total":
				add(m.Name(), m.Sum().DataPoints().At(0).Exemplars())
			case "lat_seconds":
				add(m.Name(), m.Histogram().DataPoints().At(0).Exemplars())
			case "http_requests_created", "lat_seconds_created":
				t.Errorf("%s is a series", m.Name())
			}
		}
	}
	r.mu.Unlock()
	// Each comes once, though it is shown in each scrape.
	want := []string{
		"http_requests_total5b8efff798038103d269b633813fc60c eee19b7ec3c1b174 1 map[user:u1]",
		"lat_seconds0b8efff798038103d269b633813fc60c  0.5 map[]",
		"lat_seconds  7 map[trace_id:not hex]",
	}
	if !slices.Equal(exemplars, want) {
		t.Errorf("exemplars are\n%q\nwant\n%q", exemplars, want)
	}
	m, _ := r.newest("http_requests_total")
	dp := m.Sum().DataPoints().At(0)
	if got := int64(dp.StartTimestamp()) / 1e6; got != 1700000000250 {
		t.Errorf("start is %d", got)
	}
	m, _ = r.newest("lat_seconds")
	if got := int64(m.Histogram().DataPoints().At(0).StartTimestamp()) / 1e6; got != 1700000001000 || m.Unit() != "s" {
		t.Errorf("start is %d, unit %q", got, m.Unit())
	}
	m, _ = r.newest("build_info")
	if v, _ := m.Metadata().Get("prometheus.type"); m.Type() != pmetric.MetricTypeGauge || v.AsString() != "info" {
		t.Errorf("build_info is a %v of type %q", m.Type(), v.AsString())
	}
}

// An exemplar that breaks the syntax costs the scrape, since Prometheus' parser
// gives up there; it is said.
func TestBrokenExemplar(t *testing.T) {
	p := serve(t, openKind, "# TYPE a counter\na_total 1 # {trace_id=\"x} 1\n# EOF\n")
	r := begin(t, func(c *Config) { c.Targets = []string{p.address()} })
	until(t, "up 0", func() bool {
		m, ok := r.newest("up")
		return ok && m.Gauge().DataPoints().At(0).DoubleValue() == 0
	})
	if r.log.FilterMessageSnippet("cannot be scraped").Len() != 1 {
		t.Errorf("logged %v", r.log.All())
	}
}

// A counter that falls began anew after the scrape before.
func TestReset(t *testing.T) {
	p := serve(t, textKind, "# TYPE c counter\nc 5\n")
	r := begin(t, func(c *Config) { c.Targets = []string{p.address()} })
	until(t, "two scrapes", func() bool { return r.count() > 1 })
	m, _ := r.newest("c")
	first := m.Sum().DataPoints().At(0).StartTimestamp()
	p.set("# TYPE c counter\nc 2\n")
	until(t, "the reset", func() bool {
		m, _ := r.newest("c")
		return m.Sum().DataPoints().At(0).DoubleValue() == 2
	})
	m, _ = r.newest("c")
	dp := m.Sum().DataPoints().At(0)
	if dp.StartTimestamp() <= first || dp.StartTimestamp() >= dp.Timestamp() {
		t.Errorf("start %v, before %v, time %v", dp.StartTimestamp(), first, dp.Timestamp())
	}
}

// Series that are no longer shown end; those of a target that does not answer do, too.
func TestEnds(t *testing.T) {
	p := serve(t, textKind, vllmText)
	r := begin(t, func(c *Config) { c.Targets = []string{p.address()} })
	until(t, "a scrape", func() bool { return r.count() > 0 })
	before := r.series(t, 0)
	p.set("# TYPE vllm:ttft_seconds histogram\nvllm:ttft_seconds_bucket{le=\"1.0\"} 3\nvllm:ttft_seconds_bucket{le=\"+Inf\"} 4\nvllm:ttft_seconds_sum 5.5\nvllm:ttft_seconds_count 4\n")
	until(t, "the ends", func() bool {
		ends := 0
		for key, v := range r.series(t, 0) {
			if v == "end" {
				ends++
				if _, ok := before[key]; !ok {
					t.Fatalf("%s ends and never was", key)
				}
			}
		}
		// All but the histogram's four that stay, up and four of the scrape.
		return ends == len(before)-4-5
	})
	p.Close()
	until(t, "all ends", func() bool {
		for key, v := range r.series(t, 0) {
			name := key[len(`{__name__="`):]
			switch own := strings.HasPrefix(name, "up") || strings.HasPrefix(name, "scrape_"); {
			case !own && v != "end", strings.HasPrefix(name, "up") && v != "0":
				return false
			}
		}
		return true
	})
	if n := r.log.FilterMessageSnippet("cannot be scraped").Len(); n != 1 {
		t.Errorf("the failure is logged %d times", n)
	}
}

func TestLimits(t *testing.T) {
	f := func(body string, change func(*Config), want string) {
		t.Helper()
		p := serve(t, textKind, body)
		r := begin(t, func(c *Config) {
			c.Targets = []string{p.address()}
			change(c)
		})
		until(t, "up 0", func() bool {
			m, ok := r.newest("up")
			return ok && m.Gauge().DataPoints().At(0).DoubleValue() == 0
		})
		logs := r.log.FilterMessageSnippet("cannot be scraped").All()
		if len(logs) != 1 || !strings.Contains(fmt.Sprint(logs[0].ContextMap()), want) {
			t.Errorf("logged %v, want %q", logs, want)
		}
		if _, ok := r.newest("a"); ok {
			t.Error("a part of the scrape was kept")
		}
	}
	long := strings.Repeat("x", 50)
	f("a 1\na{b=\"c\"} 2\n", func(c *Config) { c.SampleLimit = 1 }, "sample_limit: raise it")
	f("a{b=\"c\",d=\"e\",f=\"g\"} 1\n", func(c *Config) { c.LabelLimit = 4 }, "raise label_limit")
	f("a{b=\""+long+"\"} 1\n", func(c *Config) { c.LabelValueLengthLimit = 40 }, "raise label_value_length_limit")
	f("a{"+long+"=\"\"} 1\na{"+long+"=\"1\"} 1\n", func(c *Config) { c.LabelNameLengthLimit = 40 }, "raise label_name_length_limit")
	f("a 1\n"+strings.Repeat("b", 1<<12), func(c *Config) { c.BodySizeLimit = "1KiB" }, "larger than body_size_limit")
	f("a 1\n<html>\n", func(*Config) {}, "expected")
}

// An exposition of 50 MB is refused with the settings as they are.
func TestHuge(t *testing.T) {
	var b strings.Builder
	for i := 0; b.Len() < 50<<20; i++ {
		fmt.Fprintf(&b, "a{i=\"%d\",x=\"%0500d\"} 1\n", i, i)
	}
	p := serve(t, textKind, b.String())
	r := begin(t, func(c *Config) { c.Targets = []string{p.address()}; c.Interval = 2 * time.Second })
	until(t, "up 0", func() bool {
		m, ok := r.newest("up")
		return ok && m.Gauge().DataPoints().At(0).DoubleValue() == 0
	})
	if r.log.FilterMessageSnippet("cannot be scraped").Len() != 1 {
		t.Errorf("logged %v", r.log.All())
	}
}

// A target that is written to a file is scraped, one that is taken out ends.
func TestFileDiscovery(t *testing.T) {
	p, q := serve(t, textKind, "a 1\n"), serve(t, textKind, "a 2\n")
	file := filepath.Join(t.TempDir(), "targets.json")
	write := func(address string) {
		t.Helper()
		text := fmt.Sprintf(`[{"targets": [%q]}]`, address)
		if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	write(p.address())
	r := begin(t, func(c *Config) {
		c.ScrapeConfigs = []map[string]any{{
			"job_name": "files", "file_sd_configs": []any{map[string]any{"files": []any{file}, "refresh_interval": "200ms"}},
		}}
	})
	key := func(p *page) string { return fmt.Sprintf(`{__name__="a", instance=%q, job="files"}`, p.address()) }
	until(t, "the first target", func() bool { return r.series(t, 0)[key(p)] == "1" })
	write(q.address())
	until(t, "the second target", func() bool { return r.series(t, 0)[key(q)] == "2" })
	until(t, "the end of the first", func() bool { return r.series(t, 0)[key(p)] == "end" })
}

// A batch that is not taken is tried again, and lost in the end, never silently.
func TestRefused(t *testing.T) {
	p := serve(t, textKind, "a 1\n")
	r := begin(t, func(c *Config) { c.Targets = []string{p.address()}; c.Interval = 500 * time.Millisecond })
	until(t, "a scrape", func() bool { return r.count() > 0 })
	r.setRefuse(errors.New("journal is full"))
	until(t, "a loss", func() bool { return r.log.FilterMessage("Scrape commit failed").Len() > 0 })
	entry := r.log.FilterMessage("Scrape commit failed").All()[0]
	if text := fmt.Sprint(entry.ContextMap()["err"]); text != "6 samples of this scrape are lost: tried until the next scrape was due: journal is full" {
		t.Errorf("logged %q", text)
	}
	if lost := r.counter(t, "inquest_scrape_lost_points"); lost < 6 || lost%6 != 0 {
		t.Errorf("%d points are counted as lost", lost)
	}
	if r.counter(t, "inquest_scrape_retries") < 3 {
		t.Error("not tried again")
	}
	r.setRefuse(nil)
	n := r.count()
	until(t, "a scrape after it", func() bool { return r.count() > n })
}

// A batch that can never be taken is not tried again.
func TestPermanent(t *testing.T) {
	p := serve(t, textKind, "a 1\n")
	r := begin(t, func(c *Config) { c.Targets = []string{p.address()}; c.Interval = 500 * time.Millisecond })
	r.setRefuse(consumererror.NewPermanent(errors.New("too large")))
	until(t, "a loss", func() bool { return r.log.FilterMessage("Scrape commit failed").Len() > 0 })
	r.sink.mu.Lock()
	defer r.sink.mu.Unlock()
	if r.tries > 2 {
		t.Errorf("tried %d times", r.tries)
	}
}

// While the pipeline takes nothing, the receiver stops at once all the same.
func TestStop(t *testing.T) {
	p := serve(t, textKind, "a 1\n")
	r := begin(t, func(c *Config) { c.Targets = []string{p.address()}; c.Interval = 3 * time.Second })
	r.setRefuse(errors.New("journal is full"))
	until(t, "a try", func() bool { r.mu.Lock(); defer r.mu.Unlock(); return r.tries > 0 })
	began := time.Now()
	if err := r.r.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d := time.Since(began); d > time.Second {
		t.Errorf("stopping took %s", d)
	}
	if r.log.FilterMessage("Scrape commit failed").Len() != 1 {
		t.Error("the loss is not logged")
	}
}

func (r *running) counter(t *testing.T, name string) (n int64) {
	t.Helper()
	m, err := r.tel.GetMetric(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, dp := range m.Data.(metricdata.Sum[int64]).DataPoints {
		n += dp.Value
	}
	return n
}
