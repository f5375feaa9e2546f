package redact

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Config says which rules apply.
type Config struct {
	// Off are names of built-in rules that do not apply.
	Off []string `yaml:"off" mapstructure:"off"`
	// Rules are the user's own.
	Rules []Rule `yaml:"rules" mapstructure:"rules"`
}

// Rule takes out what a pattern matches.
type Rule struct {
	Name string `yaml:"name" mapstructure:"name"` // lower-case letters, digits and _
	// Pattern is in RE2 syntax, as Go's regexp knows it. Empty matches are ignored.
	Pattern string `yaml:"pattern" mapstructure:"pattern"`
	// Replacement is literal; default [redacted:NAME]. It has no quotes,
	// backslashes and control characters, so that JSON stays JSON.
	Replacement string `yaml:"replacement" mapstructure:"replacement"`
	// Contains is text that each match has in it. Texts without it are not
	// matched, which saves most of the time.
	Contains string `yaml:"contains" mapstructure:"contains"`
}

// Limits of a configuration.
const (
	maxRules       = 100
	maxPattern     = 2000
	maxReplacement = 100
)

// ParseConfig reads a configuration in YAML. Unknown settings are errors.
func ParseConfig(data []byte) (Config, error) {
	var c Config
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(&c); err != nil {
		return Config{}, fmt.Errorf("cannot read redaction rules: %w", err)
	}
	return c, c.Validate()
}

// Validate says what is wrong.
func (c *Config) Validate() error {
	for _, name := range c.Off {
		if !slices.Contains(BuiltIn(), name) {
			return fmt.Errorf("cannot turn redaction rule %q off: the built-in rules are %s", name, strings.Join(BuiltIn(), ", "))
		}
	}
	if len(c.Rules) > maxRules {
		return fmt.Errorf("%d redaction rules are above the limit of %d: unite some", len(c.Rules), maxRules)
	}
	seen := BuiltIn()
	for _, r := range c.Rules {
		if slices.Contains(seen, r.Name) {
			return fmt.Errorf("redaction rule %q is there twice: give it another name", r.Name)
		}
		seen = append(seen, r.Name)
		if _, err := r.compile(); err != nil {
			return err
		}
	}
	return nil
}

var ruleName = regexp.MustCompile(`^[a-z0-9_]{1,40}$`)

func (r *Rule) compile() (userRule, error) {
	fail := func(err error) (userRule, error) {
		return userRule{}, fmt.Errorf("redaction rule %q: %w", r.Name, err)
	}
	if !ruleName.MatchString(r.Name) {
		return fail(errors.New("a name has 1 to 40 lower-case letters, digits and _"))
	}
	if r.Pattern == "" || len(r.Pattern) > maxPattern {
		return fail(fmt.Errorf("a pattern has 1 to %d bytes", maxPattern))
	}
	re, err := regexp.Compile(r.Pattern)
	if err != nil {
		return fail(err)
	}
	text := r.Replacement
	if text == "" {
		text = defaultReplacement(r.Name)
	}
	bad := func(c rune) bool { return c < ' ' || c == '"' || c == '\\' || c == 0x7f || c == '\uFFFD' }
	if len(text) > maxReplacement || strings.ContainsFunc(text, bad) {
		return fail(fmt.Errorf("a replacement has at most %d bytes, without quotes, backslashes and control characters", maxReplacement))
	}
	return userRule{rule: rule{name: r.Name, replacement: []byte(text)}, re: re, contains: []byte(r.Contains)}, nil
}

// userRule is a [Rule] made ready.
type userRule struct {
	rule     rule
	re       *regexp.Regexp
	contains []byte
}

func (u *userRule) find(text []byte, spans []span) []span {
	if len(u.contains) > 0 && !bytes.Contains(text, u.contains) {
		return spans
	}
	for _, m := range u.re.FindAllIndex(text, -1) {
		if m[0] < m[1] {
			spans = append(spans, span{m[0], m[1], &u.rule})
		}
	}
	return spans
}
