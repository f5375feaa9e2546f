package scrapereceiver

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/discovery"
	"go.opentelemetry.io/collector/confmap"
)

type m = map[string]any

// load reads settings as the Collector does.
func load(conf m) (*Config, error) {
	cfg := defaultConfig()
	if err := confmap.NewFromStringMap(conf).Unmarshal(cfg); err != nil {
		return cfg, err
	}
	return cfg, confmap.Validate(cfg)
}

func TestConfigInvalid(t *testing.T) {
	f := func(conf m, want string) {
		t.Helper()
		if _, err := load(conf); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want %q", conf, err, want)
		}
	}
	job := func(more m) m {
		more["job_name"] = "x"
		return m{"scrape_configs": []any{more}}
	}
	f(nil, "there is nothing to scrape")
	f(m{"targets": []any{"a:1"}, "interval": "1s", "timeout": "2s"}, "do not fit")
	f(m{"targets": []any{"a:1"}, "body_size_limit": "much"}, "32MiB")
	f(m{"targets": []any{"a:1/metrics"}}, "not host:port")
	f(m{"targets": []any{"ftp://a:1"}}, "not host:port")
	f(m{"targets": []any{"http://u:p@a:1"}}, "scrape_configs")
	f(m{"target": []any{"a:1"}}, "target")
	f(job(m{"kubernetes_sd_configs": []any{m{"role": "pod"}}}), "scrape_configs[0] (job_name x): kubernetes_sd_configs is not supported: list targets")
	f(job(m{"http_sd_configs": []any{}}), "http_sd_configs is not supported")
	f(job(m{"convert_classic_histograms_to_nhcb": true}), "not supported")
	f(job(m{"scrape_intervall": "1s"}), "scrape_intervall")
	f(m{"scrape_configs": []any{m{"job_name": "x"}, m{"job_name": "x"}}}, "multiple scrape configs")
}

func TestConfig(t *testing.T) {
	cfg, err := load(m{
		"targets":  []any{"a:1", "https://b:2", "http://c:3/stats?format=prometheus", "d:4"},
		"interval": "5s", "labels": m{"env": "test"},
		"scrape_configs": []any{m{
			"job_name": "own", "scrape_interval": "1m", "sample_limit": 7,
			"static_configs":         []any{m{"targets": []any{"e:5"}}},
			"metric_relabel_configs": []any{m{"source_labels": []any{"x"}, "regex": "(.*)", "replacement": "$1", "target_label": "y"}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	prom, err := cfg.load("vllm")
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := prom.GetScrapeConfigs()
	if err != nil || len(jobs) != 4 {
		t.Fatalf("%d jobs, %v", len(jobs), err)
	}
	f := func(i int, name, scheme, path string, interval time.Duration, samples, targets int) {
		t.Helper()
		j := jobs[i]
		n := 0
		for _, c := range j.ServiceDiscoveryConfigs {
			for _, g := range c.(discovery.StaticConfig) {
				n += len(g.Targets)
				if name != "own" && (g.Labels["job"] != "vllm" || g.Labels["env"] != "test") {
					t.Errorf("labels are %v", g.Labels)
				}
			}
		}
		if j.JobName != name || j.Scheme != scheme || j.MetricsPath != path || time.Duration(j.ScrapeInterval) != interval || int(j.SampleLimit) != samples || n != targets {
			t.Errorf("job %d is %+v with %d targets", i, j, n)
		}
		if j.BodySizeLimit != 32<<20 || j.LabelLimit != 128 {
			t.Errorf("limits are %v, %v", j.BodySizeLimit, j.LabelLimit)
		}
	}
	f(0, "targets/vllm/1", "http", "/metrics", 5*time.Second, 200_000, 2)
	f(1, "targets/vllm/2", "https", "/metrics", 5*time.Second, 200_000, 1)
	f(2, "targets/vllm/3", "http", "/stats", 5*time.Second, 200_000, 1)
	f(3, "own", "http", "/metrics", time.Minute, 7, 1)
	if got := jobs[2].Params.Get("format"); got != "prometheus" {
		t.Errorf("parameter is %q", got)
	}
	if got := jobs[3].MetricRelabelConfigs[0].Replacement; got != "$1" {
		t.Errorf("replacement is %q", got)
	}
}

// Nothing is linked that asks others for targets.
func TestDiscoveries(t *testing.T) {
	if got := strings.Join(discovery.RegisteredConfigNames(), " "); got != "file static" {
		t.Errorf("discoveries are %q", got)
	}
}
