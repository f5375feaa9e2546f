package redact

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// DefaultMaxSize is the largest payload that is captured, in bytes.
const DefaultMaxSize = 1 << 20

// CaptureConfig says whose payloads are kept. Without a policy none are.
type CaptureConfig struct {
	// Policies are asked in order; one that names the service decides, else the
	// first whose pattern matches it.
	Policies []Policy `yaml:"policies" mapstructure:"policies"`
	// Redaction has the rules for all policies.
	Redaction Config `yaml:"redaction" mapstructure:"redaction"`
}

// Policy is the consent to keep payloads of some services.
type Policy struct {
	// Services are exact names, or patterns in which * stands for any text.
	Services []string `yaml:"services" mapstructure:"services"`
	// Redact is on unless it is false.
	Redact *bool `yaml:"redact" mapstructure:"redact"`
	// MaxSize is in bytes, before and after redaction. Of larger payloads only
	// hash and size are kept. Default [DefaultMaxSize].
	MaxSize int `yaml:"max_size" mapstructure:"max_size"`
}

// Validate says what is wrong.
func (c *CaptureConfig) Validate() error {
	for i, p := range c.Policies {
		if len(p.Services) == 0 {
			return fmt.Errorf("capture policy %d names no services: name them, or * for all", i+1)
		}
		if slices.Contains(p.Services, "") {
			return fmt.Errorf("capture policy %d has an empty service", i+1)
		}
		if p.MaxSize < 0 {
			return fmt.Errorf("capture policy %d has a max_size below zero", i+1)
		}
	}
	return c.Redaction.Validate()
}

// Capture decides what is kept of raw payloads. A nil Capture keeps nothing. It
// is safe for concurrent use.
type Capture struct {
	redactor *Redactor
	exact    map[string]*policy
	patterns []pattern
}

type policy struct {
	redact  bool
	maxSize int
}

type pattern struct {
	re *regexp.Regexp
	p  *policy
}

// NewCapture makes a policy ready.
func NewCapture(c CaptureConfig) (*Capture, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	r, err := New(c.Redaction)
	if err != nil {
		return nil, err
	}
	out := &Capture{redactor: r, exact: map[string]*policy{}}
	for _, cp := range c.Policies {
		p := &policy{redact: cp.Redact == nil || *cp.Redact, maxSize: cp.MaxSize}
		if p.maxSize == 0 {
			p.maxSize = DefaultMaxSize
		}
		for _, name := range cp.Services {
			if strings.Contains(name, "*") {
				re, err := regexp.Compile("(?s)^" + strings.ReplaceAll(regexp.QuoteMeta(name), `\*`, ".*") + "$")
				if err != nil {
					return nil, errors.Join(fmt.Errorf("cannot use service pattern %q", name), err)
				}
				out.patterns = append(out.patterns, pattern{re, p})
			} else if out.exact[name] == nil {
				out.exact[name] = p
			}
		}
	}
	return out, nil
}

func (c *Capture) policy(service string) *policy {
	if c == nil {
		return nil
	}
	if p := c.exact[service]; p != nil {
		return p
	}
	for _, p := range c.patterns {
		if p.re.MatchString(service) {
			return p.p
		}
	}
	return nil
}

// Captures tells whether payloads of the service are kept at all.
func (c *Capture) Captures(service string) bool { return c.policy(service) != nil }

// Apply returns what is to be kept of a payload: the content, whether redaction
// changed it, and whether it is kept at all. When it is not, the record's hash
// and size are what stays: the service has no policy, or the payload is too
// large. The content may be raw itself.
func (c *Capture) Apply(service string, raw []byte) (store []byte, redacted, keep bool) {
	p := c.policy(service)
	if p == nil || len(raw) > p.maxSize {
		return nil, false, false
	}
	store = raw
	if p.redact {
		store, redacted = c.redactor.Redact(raw)
	}
	if len(store) > p.maxSize {
		return nil, false, false
	}
	return store, redacted, true
}
