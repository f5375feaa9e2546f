// Package decision recognises what a program decided on its way: that it took
// an answer from a cache or missed it, fell back, tried again, degraded, or
// switched to something else. It reads log bodies in English and Chinese,
// structured attributes, and names of spans.
//
// What it knows is a table in YAML (decisions.yaml), which a user's own table
// extends or overrides. Matching takes time linear in the length of the text:
// one pass finds the words of the table, and only a line that has the words of
// a pattern is held against its regular expression, which Go's regexp matches
// in linear time.
package decision

import "strings"

// Type is the kind of a decision.
type Type string

// The kinds of decisions.
const (
	Cache    Type = "cache"
	Fallback Type = "fallback"
	Retry    Type = "retry"
	Degrade  Type = "degrade"
	Switch   Type = "switch"
)

// Types lists the kinds.
var Types = []Type{Cache, Fallback, Retry, Degrade, Switch}

// Names of the attributes of a record that tells of a decision.
const (
	AttributeType   = "decision.type"
	AttributeReason = "decision.reason"
	AttributeFrom   = "decision.from"
	AttributeTo     = "decision.to"
	// AttributeSpanType is what spans named for a decision carry.
	AttributeSpanType = "decision_type"
)

// Decision is what was decided. All texts may be empty but Type.
type Decision struct {
	Type Type
	// Reason is why. For the cache it begins with what came of asking it (hit,
	// miss, bypass), and a reason that the text gives follows after ": ".
	Reason string
	// From and To are what was left and what was taken instead.
	From, To string
}

// ParseType reads the name of a type; other words for it are understood.
func ParseType(s string) (Type, bool) {
	if len(s) > 32 {
		return "", false
	}
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "cache", "cached", "caching", "缓存":
		return Cache, true
	case "fallback", "fall_back", "fall-back", "回退", "兜底":
		return Fallback, true
	case "retry", "retries", "retrying", "重试":
		return Retry, true
	case "degrade", "degraded", "degradation", "downgrade", "downgraded", "降级":
		return Degrade, true
	case "switch", "switched", "failover", "fail_over", "reroute", "切换":
		return Switch, true
	}
	return "", false
}
