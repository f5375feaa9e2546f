package alert

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"time"
)

// Secret is a string that is never shown: printing, logging and marshalling
// give "***".
type Secret string

const hidden = "***"

// String returns "***", or nothing for an empty secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return hidden
}

// GoString hides the secret from %#v.
func (s Secret) GoString() string { return s.String() }

// MarshalText hides the secret from JSON and YAML.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue hides the secret from logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// Kind names the service that receives a hook's messages.
type Kind string

// The kinds.
const (
	KindGeneric   Kind = "generic"
	KindWeCom     Kind = "wecom"
	KindDingTalk  Kind = "dingtalk"
	KindFeishu    Kind = "feishu"
	KindSlack     Kind = "slack"
	KindPagerDuty Kind = "pagerduty"
)

// Config are the settings of all alerts.
type Config struct {
	// Hooks are told independently of each other.
	Hooks []Hook `mapstructure:"hooks"`
}

// Hook is one receiver of alerts. A setting that is zero has its default.
type Hook struct {
	// Name tells hooks apart in logs and metrics; required.
	Name string `mapstructure:"name"`
	// Kind is the service that receives; required.
	Kind Kind `mapstructure:"kind"`
	// URL is where messages are posted to. It holds the robot's key with most
	// services and is kept secret. Required except for PagerDuty.
	URL Secret `mapstructure:"url"`
	// Secret is the key that signs messages (generic, DingTalk, Feishu), or
	// PagerDuty's routing key, which it needs.
	Secret Secret `mapstructure:"secret"`
	// MinInterval is the shortest time between two messages of one group.
	// Default: 5m; at least 1s.
	MinInterval time.Duration `mapstructure:"min_interval"`
	// Reasons are those that the hook is told about, such as "hash.mismatch" or
	// "schema.*". Default: all.
	Reasons []string `mapstructure:"reasons"`
	// Services are those that the hook is told about, such as "chat-api" or
	// "chat-*". Default: all.
	Services []string `mapstructure:"services"`
	// Timeout bounds one try, from connecting to the end of the answer.
	// Default: 10s.
	Timeout time.Duration `mapstructure:"timeout"`
	// Attempts is how often a message is tried before its events are put back
	// and counted into the group's next message. Default: 6.
	Attempts int `mapstructure:"attempts"`
	// MaxGroups bounds the groups that are kept apart; events beyond are merged
	// into one group "other". Default: 500.
	MaxGroups int `mapstructure:"max_groups"`
	// PlainHTTP allows a URL with http:// to another host.
	PlainHTTP bool `mapstructure:"plain_http"`
}

const (
	defaultInterval  = 5 * time.Minute
	defaultTimeout   = 10 * time.Second
	defaultAttempts  = 6
	defaultMaxGroups = 500
	mostGroups       = 10_000
	mostHooks        = 100
	mostPatterns     = 1000
	pagerDutyURL     = "https://events.pagerduty.com/v2/enqueue"
)

// withDefaults returns h with every zero setting at its default.
func (h Hook) withDefaults() Hook {
	if h.MinInterval == 0 {
		h.MinInterval = defaultInterval
	}
	if h.Timeout == 0 {
		h.Timeout = defaultTimeout
	}
	if h.Attempts == 0 {
		h.Attempts = defaultAttempts
	}
	if h.MaxGroups == 0 {
		h.MaxGroups = defaultMaxGroups
	}
	if h.URL == "" && h.Kind == KindPagerDuty {
		h.URL = pagerDutyURL
	}
	return h
}

// Validate says what is wrong with the settings and what to do about it. It
// never shows a URL or a secret.
func (c *Config) Validate() error {
	var errs []error
	if n := len(c.Hooks); n > mostHooks {
		errs = append(errs, fmt.Errorf("there are %d hooks, the limit is %d: tell a relay that spreads the messages", n, mostHooks))
	}
	seen := map[string]bool{}
	for i := range c.Hooks {
		h := &c.Hooks[i]
		if h.Name != "" && seen[h.Name] {
			errs = append(errs, fmt.Errorf("hook %q is there twice: give each its own name", h.Name))
		}
		seen[h.Name] = true
		label := fmt.Sprintf("hook %q", h.Name)
		if h.Name == "" {
			label = fmt.Sprintf("hook %d", i+1)
		}
		for _, err := range h.check() {
			errs = append(errs, fmt.Errorf("%s: %w", label, err))
		}
	}
	return errors.Join(errs...)
}

func (h Hook) check() []error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	switch {
	case h.Name == "":
		bad("it has no name: set name to a short word, it labels logs and metrics")
	case len(h.Name) > 64 || clean(h.Name, 64) != h.Name:
		bad("its name is not one line of at most 64 bytes: shorten it")
	}
	if _, ok := services[h.Kind]; !ok {
		bad("kind %q is unknown: use generic, wecom, dingtalk, feishu, slack or pagerduty", h.Kind)
	}
	h = h.withDefaults()
	if err := h.checkURL(); err != nil {
		errs = append(errs, err)
	}
	if err := h.checkSecret(); err != nil {
		errs = append(errs, err)
	}
	if h.MinInterval < time.Second || h.MinInterval > 7*24*time.Hour {
		bad("min_interval is %s: set it between 1s and 168h", h.MinInterval)
	}
	if h.Timeout < 100*time.Millisecond || h.Timeout > time.Minute {
		bad("timeout is %s: set it between 100ms and 1m", h.Timeout)
	}
	if h.Attempts < 1 || h.Attempts > 20 {
		bad("attempts is %d: set it between 1 and 20", h.Attempts)
	}
	if h.MaxGroups < 1 || h.MaxGroups > mostGroups {
		bad("max_groups is %d: set it between 1 and %d", h.MaxGroups, mostGroups)
	}
	for _, list := range []struct {
		name     string
		patterns []string
	}{{"reasons", h.Reasons}, {"services", h.Services}} {
		if err := checkPatterns(list.name, list.patterns); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

func (h Hook) checkURL() error {
	if h.URL == "" {
		return errors.New("it has no url: copy the robot's webhook address, best from ${env:NAME}")
	}
	u, err := url.Parse(string(h.URL))
	if err != nil { // the error would show the URL
		return errors.New("its url cannot be parsed: copy the robot's webhook address as a whole")
	}
	switch {
	case u.Host == "" || (u.Scheme != "https" && u.Scheme != "http"):
		return errors.New("its url is not of the form https://host/path: copy the robot's webhook address as a whole")
	case u.Fragment != "":
		return errors.New("its url has a part behind #, which would not be sent: remove it")
	case u.Scheme == "http" && !h.PlainHTTP && !loopback(u.Hostname()):
		return errors.New("its url begins with http://, so its secret would travel in the clear: use https://, or set plain_http: true where the network is trusted")
	}
	return nil
}

func (h Hook) checkSecret() error {
	switch h.Kind {
	case KindWeCom, KindSlack:
		if h.Secret != "" {
			return fmt.Errorf("%s signs nothing, its key is in the url: remove secret", h.Kind)
		}
	case KindPagerDuty:
		if h.Secret == "" {
			return errors.New("PagerDuty needs the integration's routing key: set secret")
		}
	}
	return nil
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

func checkPatterns(setting string, patterns []string) error {
	if len(patterns) > mostPatterns {
		return fmt.Errorf("%s has %d patterns, the limit is %d: use *", setting, len(patterns), mostPatterns)
	}
	for _, p := range patterns {
		if p == "" {
			return fmt.Errorf("%s has an empty pattern: remove it, or use * for all", setting)
		}
		if i := strings.IndexByte(p, '*'); i >= 0 && i != len(p)-1 {
			return fmt.Errorf("%s has the pattern %q: * may stand only at the end", setting, p)
		}
	}
	return nil
}

// matches tells whether one of the patterns fits; none fits all.
func matches(patterns []string, s string) bool {
	if len(patterns) == 0 {
		return true
	}
	for _, p := range patterns {
		if prefix, ok := strings.CutSuffix(p, "*"); ok {
			if strings.HasPrefix(s, prefix) {
				return true
			}
		} else if p == s {
			return true
		}
	}
	return false
}
