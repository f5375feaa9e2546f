package truth

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// Config are the settings of the truth check. A setting that is zero has its
// default.
type Config struct {
	// Interval is the time between two looks at a service, varied by a tenth.
	// Default: 30s; at least 1s.
	Interval time.Duration `mapstructure:"interval"`
	// Timeout bounds one question to a health address. Default: 5s.
	Timeout time.Duration `mapstructure:"timeout"`
	// Concurrency is how many services are looked at, and how many are hashed, at
	// once. Default: 4.
	Concurrency int `mapstructure:"concurrency"`
	// HashRate bounds how many bytes a second are read for hashing, of all
	// services together. Default: 200,000,000.
	HashRate int64 `mapstructure:"hash_rate"`
	// MaxFiles bounds the files of one model folder. Default: 10,000.
	MaxFiles int `mapstructure:"max_files"`
	// LoadGrace is how long after its start a service may still be fetching and
	// loading its model; it counts where only the start of the process is known.
	// Default: 5m.
	LoadGrace time.Duration `mapstructure:"load_grace"`
	// Services are those that are checked.
	Services []Service `mapstructure:"services"`
}

// Service is what one service is meant to serve.
type Service struct {
	// Name is the service's name as its records tell it (service.name); required.
	Name string `mapstructure:"name"`
	// Model names the model in findings. Default: the service's name.
	Model string `mapstructure:"model"`
	// Healthz are the health addresses, one for each replica.
	Healthz []string `mapstructure:"healthz"`
	// VersionPaths are the places in the answer's JSON where the version is, with
	// dots between members; the first that is there counts. Default:
	// [DefaultVersionPaths].
	VersionPaths []string `mapstructure:"version_paths"`
	// LoadedPaths and StartedPaths are the places where the answer tells when the
	// model was loaded and when the process started. Defaults:
	// [DefaultLoadedPaths], [DefaultStartedPaths].
	LoadedPaths  []string `mapstructure:"loaded_paths"`
	StartedPaths []string `mapstructure:"started_paths"`
	// Version is the version that is meant. Default: the one that the configured
	// path names, if it does.
	Version string `mapstructure:"version"`
	// Path is the model's file or folder as the service is configured with it.
	Path string `mapstructure:"path"`
	// SHA256 is the hash that the model is meant to have, see [Facts.SHA256].
	SHA256 string `mapstructure:"sha256"`
	// Manifest is a file with the hashes that the files of the folder are meant to
	// have: lines as sha256sum writes them, or a JSON object from name to hash.
	Manifest string `mapstructure:"manifest"`
	// Ignore are patterns of names in a folder that are no part of the model.
	// Default: [DefaultIgnore].
	Ignore []string `mapstructure:"ignore"`
	// Device is the device that the model is meant to run on, such as "cuda"; a
	// record's "cuda:1" fits it.
	Device string `mapstructure:"device"`
}

// The defaults of lists.
var (
	DefaultVersionPaths = []string{"version", "model_version", "modelVersion", "model.version"}
	DefaultLoadedPaths  = []string{"loaded_at", "model_loaded_at", "modelLoadedAt", "model.loaded_at"}
	DefaultStartedPaths = []string{"started_at", "start_time", "startTime", "process_start_time_seconds", "uptime_seconds", "uptime"}
	DefaultIgnore       = []string{".*", "__pycache__", "*.lock", "*.tmp", "*.log"}
)

const (
	defaultInterval    = 30 * time.Second
	defaultTimeout     = 5 * time.Second
	defaultConcurrency = 4
	defaultHashRate    = 200_000_000
	defaultMaxFiles    = 10_000
	defaultGrace       = 5 * time.Minute
	mostServices       = 1000
	mostURLs           = 100
	mostPaths          = 20
	mostFiles          = 1_000_000
)

func (c Config) withDefaults() Config {
	set(&c.Interval, defaultInterval)
	set(&c.Timeout, defaultTimeout)
	set(&c.Concurrency, defaultConcurrency)
	set(&c.HashRate, defaultHashRate)
	set(&c.MaxFiles, defaultMaxFiles)
	set(&c.LoadGrace, defaultGrace)
	return c
}

func (s Service) withDefaults() Service {
	set(&s.Model, s.Name)
	list(&s.VersionPaths, DefaultVersionPaths)
	list(&s.LoadedPaths, DefaultLoadedPaths)
	list(&s.StartedPaths, DefaultStartedPaths)
	list(&s.Ignore, DefaultIgnore)
	s.SHA256 = strings.ToLower(s.SHA256)
	return s
}

func set[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

func list(v *[]string, def []string) {
	if len(*v) == 0 {
		*v = def
	}
}

// Validate says what is wrong with the settings and what to do about it.
func (c *Config) Validate() error {
	var errs []error
	d := c.withDefaults()
	bad := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	bad(d.Interval >= time.Second && d.Interval <= 24*time.Hour, "interval is %s: set it between 1s and 24h", d.Interval)
	bad(d.Timeout >= 10*time.Millisecond && d.Timeout <= time.Minute, "timeout is %s: set it between 10ms and 1m", d.Timeout)
	bad(d.Concurrency >= 1 && d.Concurrency <= 64, "concurrency is %d: set it between 1 and 64", d.Concurrency)
	bad(d.HashRate >= 1_000_000, "hash_rate is %d: set it to 1000000 (bytes a second) at least", d.HashRate)
	bad(d.MaxFiles >= 1 && d.MaxFiles <= mostFiles, "max_files is %d: set it between 1 and %d", d.MaxFiles, mostFiles)
	bad(d.LoadGrace >= 0 && d.LoadGrace <= 24*time.Hour, "load_grace is %s: set it between 0s and 24h", d.LoadGrace)
	bad(len(c.Services) <= mostServices, "there are %d services, the limit is %d", len(c.Services), mostServices)
	seen := map[string]bool{}
	for i, s := range c.Services {
		bad(s.Name == "" || !seen[s.Name], "service %q is there twice: put its settings in one entry", s.Name)
		seen[s.Name] = true
		for _, err := range s.check() {
			errs = append(errs, fmt.Errorf("service %d (%q): %w", i+1, s.Name, err))
		}
	}
	return errors.Join(errs...)
}

func (s Service) check() []error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if s.Name == "" {
		bad("it has no name: set name to the service.name of its records")
	}
	if len(s.Healthz) == 0 && s.Path == "" {
		bad("there is nothing to look at: set healthz, path or both")
	}
	if len(s.Healthz) > mostURLs {
		bad("healthz has %d addresses, the limit is %d", len(s.Healthz), mostURLs)
	}
	for i, h := range s.Healthz {
		u, err := url.Parse(h)
		if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") { // err would show the URL
			bad("healthz address %d is not of the form http://host:port/path", i+1)
		}
	}
	if s.Path == "" && s.Version == "" && len(s.Healthz) > 0 {
		bad("there is nothing to compare the version of healthz with: set version, or path")
	}
	if isLatest(s.Version) && s.Version != "" {
		bad("version %q names no fixed version: set the one that is meant, or leave it out", s.Version)
	}
	if s.Path != "" && !filepath.IsAbs(s.Path) {
		bad("path %q is not absolute: write it from the root on", s.Path)
	}
	if s.Path == "" && (s.Manifest != "" || s.SHA256 != "") {
		bad("manifest and sha256 need the files: set path")
	}
	if b, err := hex.DecodeString(s.SHA256); s.SHA256 != "" && (err != nil || len(b) != 32) {
		bad("sha256 is not of 64 hexadecimal digits: copy it as sha256sum prints it")
	}
	for _, l := range [][]string{s.VersionPaths, s.LoadedPaths, s.StartedPaths, s.Ignore} {
		if len(l) > mostPaths {
			bad("a list has %d entries, the limit is %d", len(l), mostPaths)
		}
	}
	for _, p := range s.Ignore {
		if _, err := path.Match(p, ""); err != nil {
			bad("ignore has the pattern %q, which is malformed: use * and ? only", p)
		}
	}
	return errs
}
