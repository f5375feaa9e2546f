package scrapereceiver

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/units"
	"github.com/prometheus/prometheus/config"
	_ "github.com/prometheus/prometheus/discovery/file" // file_sd_configs; no other discovery is linked
	"go.yaml.in/yaml/v3"
)

// Config are the receiver's settings. Interval, Timeout and the limits hold for
// Targets and, where they say nothing else, for ScrapeConfigs.
type Config struct {
	// Targets are the addresses to scrape: host:port, or a URL where the scheme,
	// the path or parameters differ from http and Path.
	Targets []string `mapstructure:"targets"`
	// Job is the label job, and the service.name, of Targets. Default: the
	// receiver's name, vllm for scrape/vllm and scrape for scrape.
	Job string `mapstructure:"job"`
	// Labels are put on all series of Targets. Default: none.
	Labels map[string]string `mapstructure:"labels"`
	// Path is where Targets without a path of their own have their metrics.
	// Default: /metrics.
	Path string `mapstructure:"path"`

	// ScrapeConfigs are in the form of Prometheus' scrape_configs, with
	// static_configs and file_sd_configs. Default: none.
	ScrapeConfigs []map[string]any `mapstructure:"scrape_configs"`

	// Interval is the time between two scrapes of a target. Default: 15s.
	Interval time.Duration `mapstructure:"interval"`
	// Timeout bounds one scrape. Default: 10s, or Interval where that is shorter.
	Timeout time.Duration `mapstructure:"timeout"`

	// BodySizeLimit bounds an exposition, after decompression. Default: 32MiB.
	BodySizeLimit string `mapstructure:"body_size_limit"`
	// SampleLimit bounds the samples of one scrape after relabelling. Default: 200000.
	SampleLimit uint `mapstructure:"sample_limit"`
	// LabelLimit bounds the labels of one series. Default: 128.
	LabelLimit uint `mapstructure:"label_limit"`
	// LabelNameLengthLimit bounds a label's name, in bytes. Default: 512.
	LabelNameLengthLimit uint `mapstructure:"label_name_length_limit"`
	// LabelValueLengthLimit bounds a label's value, in bytes. Default: 8192.
	LabelValueLengthLimit uint `mapstructure:"label_value_length_limit"`
}

func defaultConfig() *Config {
	return &Config{
		Path:                  "/metrics",
		Interval:              15 * time.Second,
		BodySizeLimit:         "32MiB",
		SampleLimit:           200_000,
		LabelLimit:            128,
		LabelNameLengthLimit:  512,
		LabelValueLengthLimit: 8 << 10,
	}
}

// Validate says what is wrong with the settings.
func (c *Config) Validate() error {
	_, err := c.load("scrape")
	return err
}

// load returns the settings as Prometheus has them; name is the job of Targets
// that have none.
func (c *Config) load(name string) (*config.Config, error) {
	if len(c.Targets) == 0 && len(c.ScrapeConfigs) == 0 {
		return nil, errors.New("there is nothing to scrape: name host:port under targets, or jobs under scrape_configs")
	}
	if c.Interval < time.Millisecond || c.Timeout < 0 || c.Timeout > c.Interval {
		return nil, fmt.Errorf("interval %s and timeout %s do not fit: interval must be 1ms or more, and timeout not longer", c.Interval, c.Timeout)
	}
	if size, err := units.ParseBase2Bytes(c.BodySizeLimit); err != nil || size <= 0 {
		return nil, fmt.Errorf("body_size_limit %q is not a size such as 32MiB", c.BodySizeLimit)
	}
	jobs, err := c.targetJobs(name)
	if err != nil {
		return nil, err
	}
	for i, job := range c.ScrapeConfigs {
		if err := checkJob(job); err != nil {
			return nil, fmt.Errorf("scrape_configs[%d] (job_name %v): %w", i, job["job_name"], err)
		}
		jobs = append(jobs, job)
	}
	text, err := yaml.Marshal(map[string]any{"global": c.global(), "scrape_configs": jobs})
	if err != nil {
		return nil, fmt.Errorf("cannot read scrape_configs: %w", err)
	}
	out, err := config.Load(string(text), slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, fmt.Errorf("cannot read scrape_configs: %w", err)
	}
	return out, nil
}

func (c *Config) global() map[string]any {
	timeout := c.Timeout
	if timeout == 0 {
		timeout = min(10*time.Second, c.Interval)
	}
	return map[string]any{
		"scrape_interval":          milliseconds(c.Interval),
		"scrape_timeout":           milliseconds(timeout),
		"body_size_limit":          c.BodySizeLimit,
		"sample_limit":             c.SampleLimit,
		"label_limit":              c.LabelLimit,
		"label_name_length_limit":  c.LabelNameLengthLimit,
		"label_value_length_limit": c.LabelValueLengthLimit,
		// Targets are asked for names that PromQL can write without quotes, which
		// the store would make of them anyway.
		"metric_name_escaping_scheme": "underscores",
	}
}

// milliseconds writes a duration as Prometheus reads it.
func milliseconds(d time.Duration) string { return fmt.Sprintf("%dms", d.Milliseconds()) }

// checkJob refuses what a scrape configuration must not have here.
func checkJob(job map[string]any) error {
	for _, key := range slices.Sorted(maps.Keys(job)) {
		if strings.HasSuffix(key, "_sd_configs") && key != "file_sd_configs" {
			return fmt.Errorf("%s is not supported: list targets under static_configs, or have them written to a file that file_sd_configs names", key)
		}
		if key == "convert_classic_histograms_to_nhcb" {
			return fmt.Errorf("%s is not supported: classic histograms are stored as they are", key)
		}
	}
	return nil
}

// targetJobs makes scrape configurations of Targets, one for each scheme, path
// and parameters.
func (c *Config) targetJobs(name string) ([]any, error) {
	if c.Job != "" {
		name = c.Job
	}
	type kind struct{ scheme, path, query string }
	var kinds []kind
	addresses := map[kind][]string{}
	for _, target := range c.Targets {
		k, address := kind{"http", c.Path, ""}, target
		if strings.Contains(target, "://") {
			u, err := url.Parse(target)
			if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" || u.Scheme != "http" && u.Scheme != "https" {
				return nil, fmt.Errorf("target %q is not host:port or a URL such as https://host:port/metrics (a user and password go into scrape_configs)", target)
			}
			k.scheme, address, k.query = u.Scheme, u.Host, u.RawQuery
			if u.Path != "" {
				k.path = u.Path
			}
		}
		if address == "" || strings.ContainsAny(address, "/?# ") {
			return nil, fmt.Errorf("target %q is not host:port or a URL such as http://host:port/metrics", target)
		}
		if !slices.Contains(kinds, k) {
			kinds = append(kinds, k)
		}
		addresses[k] = append(addresses[k], address)
	}
	var jobs []any
	for i, k := range kinds {
		labels := map[string]string{"job": name}
		maps.Copy(labels, c.Labels)
		params, err := url.ParseQuery(k.query)
		if err != nil {
			return nil, fmt.Errorf("target parameters %q cannot be read: %w", k.query, err)
		}
		job := map[string]any{
			// The name is Prometheus' own for the set; series have the label job.
			"job_name":       fmt.Sprintf("targets/%s/%d", name, i+1),
			"scheme":         k.scheme,
			"metrics_path":   k.path,
			"static_configs": []any{map[string]any{"targets": addresses[k], "labels": labels}},
		}
		if len(params) > 0 {
			job["params"] = params
		}
		jobs = append(jobs, job)
	}
	return jobs, nil
}
